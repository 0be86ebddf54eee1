/* SPDX-License-Identifier: MIT */
#include "inspect/memory_window.h"

void memory_window_open(struct memory_window *window, pid_t pid) {
  window->pid = pid;
  memset(window->addresses, 0, sizeof(window->addresses));
}

/* The block that begins at `begin`; NULL where it cannot be read. */
static const u8 *block_at(struct memory_window *window, u64 begin) {
  u64 slot = begin / WINDOW_BLOCK_BYTES % WINDOW_BLOCKS;
  if (window->addresses[slot] != begin) {
    window->addresses[slot] = 0;
    if (tscope_read_memory(window->pid, begin, window->blocks[slot], WINDOW_BLOCK_BYTES) != 0)
      return NULL;
    window->addresses[slot] = begin;
  }
  return window->blocks[slot];
}

bool python_read_window(const void *context, u64 address, void *to, size_t bytes) {
  struct memory_window *window = (struct memory_window *)(uintptr_t)context;
  for (u8 *at = to; bytes;) {
    u64 offset = address % WINDOW_BLOCK_BYTES, here = MIN(bytes, WINDOW_BLOCK_BYTES - offset);
    const u8 *block = address < WINDOW_BLOCK_BYTES ? NULL : block_at(window, address - offset);
    if (!block)
      return false;
    memcpy(at, block + offset, here);
    at += here;
    address += here;
    bytes -= here;
  }
  return true;
}
