/* SPDX-License-Identifier: MIT
 *
 * Reading a process's memory a block at a time: a walk over Python's frames reads a few bytes here
 * and there, mostly near what it has just read, and each reading through the kernel is a system
 * call.
 */
#pragma once

#include <stdbool.h>

#include "inspect/python_memory.h"

enum { WINDOW_BLOCK_BYTES = 512, WINDOW_BLOCKS = 32 }; /* a block is within one page */

/* What was read; all blocks are of one process, and of about one moment. */
struct memory_window {
  pid_t pid;
  u64 addresses[WINDOW_BLOCKS]; /* 0: nothing */
  u8 blocks[WINDOW_BLOCKS][WINDOW_BLOCK_BYTES];
};

/* Forgets what was read, and reads from `pid` from now on. */
void memory_window_open(struct memory_window *window, pid_t pid);

/* A python_read; `context` is a struct memory_window, which it changes. Preserves errno. */
bool python_read_window(const void *context, u64 address, void *to, size_t bytes);
