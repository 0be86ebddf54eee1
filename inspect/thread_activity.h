/* SPDX-License-Identifier: MIT
 *
 * What a thread, of this process or of a child, does at a moment, from what the kernel says under
 * /proc, cheaply enough to be asked a hundred times a second: some 2 us for a thread that is
 * blocked, some 7 us for one that is not. Files stay open between two questions, in the calling
 * thread's table of descriptors.
 *
 * A thread that is blocked is in a system call: the call, and the file it is about, say for what it
 * waits. If it is blocked outside any, it waits for a page. A thread that is not blocked runs, or
 * waits for a core. The kernel counts both times; a moment is one or the other such that as much of
 * the moments are without a core as of the time.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "format/tscope_format.h"

struct thread_activity {
  pid_t pid;
  u32 tid; /* 0: not open */
  int call, times, counts;
  u64 looked_ns;             /* the last time it was asked */
  u64 cpu_ns, wait_ns, runs; /* as the kernel counted them at the last question */
  i64 owed_ns;               /* without a core, and not yet said of any moment */
  u64 faults, faults_cpu_ns; /* page faults, and the CPU time until then */
  bool has_times, has_faults;
};

/* False if the thread has ended, or its files cannot be opened. */
bool thread_activity_open(struct thread_activity *activity, pid_t pid, u32 tid);
void thread_activity_close(struct thread_activity *activity);

/* Its enum tscope_activity. The lock of a GIL is in the `gil_bytes` at `gil`, 0 for none. False if
 * the thread has ended. Preserves errno. */
bool thread_activity_read(struct thread_activity *activity, u64 now_ns, u64 gil, u32 gil_bytes,
                          u8 *what);
