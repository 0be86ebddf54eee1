/* SPDX-License-Identifier: MIT
 *
 * The threads of an interpreter, as it lists them itself. Read without its lock: of a list
 * that changes meanwhile, a part may be missing, but all that is returned was there.
 */
#pragma once

#include "inspect/python_frames.h"

struct python_thread {
  u64 state; /* address of its PyThreadState */
  u32 tid;   /* of the kernel; 0 if it is not known */
  bool holds_gil;
};

/* Lists the threads of all interpreters of the process whose _PyRuntime is at `runtime`: at most
 * `most` into `threads`, of an interpreter's the oldest, as the first thread is. Returns how many
 * there are: perhaps more. */
u32 python_threads(const struct python *python, python_read *read, const void *context, u64 runtime,
                   struct python_thread *threads, u32 most);
