/* SPDX-License-Identifier: MIT
 *
 * The life of tscope in a process: dormant, awake from the first call that only training makes, and
 * off for good at the process's end or after a failure. A fork child of an awake process is off.
 */
#ifndef TSCOPE_PROCESS_H
#define TSCOPE_PROCESS_H

#include "hook.h"

#pragma GCC visibility push(hidden)

/* Wakes the process; called once. The reason why not in `why`, empty where nothing is to be said.
 */
bool tscope_wake(char *why, size_t bytes);

/* Moves what was lost before there was a trace into it. */
void tscope_lose_early(void);

/* Has the process's orderly end run before the ends of whatever registered so far. */
void tscope_register_end(void);

#pragma GCC visibility pop

#endif
