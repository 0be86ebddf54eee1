/* SPDX-License-Identifier: MIT
 *
 * The two threads of tscope's own in an awake process. The helper keeps chunks ready and writes
 * totals. The ticker runs the families' ticks, which may take long (flushing the GPU's records) and
 * must not keep the helper from its work; it has the job's descriptors, the helper its own. Both
 * have all signals blocked.
 */
#ifndef TSCOPE_WORKERS_H
#define TSCOPE_WORKERS_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Starts both, and has the helper wake the process, on its own stack: the job's threads may have
 * little. Waits until that is done, at most ten seconds. False when it has not been, with the
 * reason in `why`, empty where nothing is to be said. */
bool tscope_workers_start(const char **why);

/* Wakes the helper before its time, because chunks run low. A system call only if it sleeps. */
void tscope_helper_call(void);

/* Asks one to stop and waits until it has, at most a second. False when it has not. */
bool tscope_ticker_stop(void);
bool tscope_helper_stop(void);

/* CPU time of both so far. */
u64 tscope_workers_cpu_ns(void);

#pragma GCC visibility pop

#endif
