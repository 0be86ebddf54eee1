/* SPDX-License-Identifier: MIT
 *
 * Reading an interpreter's memory. The caller chooses how:
 *
 *   directly        one's own memory, for a thread's own frames while it is inside a call
 *   from a process  its memory through the kernel, one's own among them: a bad address is then an
 *                   error and no fault. For what may change while it is read.
 */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "format/tscope_format.h"
#include "inspect/memory_read.h"

/* Copies `bytes` from `address`; false when they cannot be read. */
typedef bool python_read(const void *context, u64 address, void *to, size_t bytes);

__attribute__((always_inline)) static inline bool
python_read_directly(const void *context, u64 address, void *to, size_t bytes) {
  (void)context;
  if (address < 4096)
    return false;
  memcpy(to, (const void *)(uintptr_t)address, bytes);
  return true;
}

/* A process to read from; zero-initialised but for `pid`, which may be one's own. */
struct python_process {
  pid_t pid;
};

/* `context` is a struct python_process. Preserves errno. */
static inline bool python_read_process(const void *context, u64 address, void *to, size_t bytes) {
  const struct python_process *process = context;
  return tscope_read_memory(process->pid, address, to, bytes) == 0;
}
