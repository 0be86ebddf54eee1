/* SPDX-License-Identifier: MIT
 *
 * The one thread of tscope's own in an awake process. It keeps chunks ready, ticks the families,
 * and writes clock anchors and running totals.
 */
#ifndef TSCOPE_HELPER_H
#define TSCOPE_HELPER_H

#include "hook.h"

#pragma GCC visibility push(hidden)

/* Starts it; 0 or a negative errno. `startup_ns` is what waking took so far. */
int tscope_helper_start(u64 startup_ns);

/* Wakes it before its time, because chunks run low. A system call only if it sleeps. */
void tscope_helper_call(void);

/* Asks it to stop and waits until it has, at most a second. False when it has not. */
bool tscope_helper_stop(void);

/* Writes an anchor and the running totals of cost and loss. */
void tscope_helper_write_totals(void);

/* Ticks that the job's threads have spent off the fast path; added to by them. */
extern u64 tscope_slow_path_ticks;

#pragma GCC visibility pop

#endif
