/* SPDX-License-Identifier: MIT
 *
 * How the process ends, as far as it can be seen from inside: kept in the trace's header page,
 * where it stays whatever comes next. What only others can see, such as a signal, is written there
 * by whoever waits for the process (reaped.c).
 */
#ifndef TSCOPE_PROCESS_END_H
#define TSCOPE_PROCESS_END_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* The process is about to end in this way. The first word counts. Nothing in fork children, also
 * those that still share memory. Safe in signal handlers. */
void tscope_end_note(enum tscope_end how, i32 status);

/* The process is alive now; called about every 100 ms by a thread of tscope's own. */
void tscope_end_alive(void);

/* Has the processes that the kernel killed in this cgroup for want of memory counted; on the
 * helper, whose descriptors are its own. The first call finds out where. */
void tscope_end_look_at_memory(void);

/* What Python wrote to standard error, to find the last exception in it. */
void tscope_end_read_stderr(const char *text, size_t bytes);

#pragma GCC visibility pop

#endif
