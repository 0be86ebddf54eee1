/* SPDX-License-Identifier: MIT
 *
 * How the process ends, as far as it can be seen from inside. It is kept in the trace's header
 * page, where it survives whatever comes next. What only others can see, such as a signal, is
 * written there by the process that waits for this one (reaped.c).
 */
#pragma once

#include "record/hook.h"

/* The process is about to end in this way. Only the first call counts. Does nothing in fork
 * children, also if they still share memory. Safe in signal handlers. */
void tscope_end_record(enum tscope_end how, i32 status);

/* A thread of tscope that wakes ten times a second did not run for so long: its process did not. */
enum { TSCOPE_GAP_S = 5 };

/* The process is alive now; a thread of tscope calls this about every 100 ms. */
void tscope_end_alive(void);

/* Counts the processes that the kernel killed in this cgroup because memory ran out. On the helper,
 * which has its own descriptors. The first call finds the file. */
void tscope_end_count_oom_kills(void);

/* Reads what Python wrote to standard error, to find the last exception in it. */
void tscope_end_read_stderr(const char *text, size_t bytes);
