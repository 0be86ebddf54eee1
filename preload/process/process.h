/* SPDX-License-Identifier: MIT
 *
 * The life of tscope in a process: dormant, awake from the first call that only training makes, and
 * off for good at the process's end or after a failure. A fork child of an awake process is off.
 */
#ifndef TSCOPE_PROCESS_H
#define TSCOPE_PROCESS_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Whether the process may wake, by its privileges and its environment. */
bool tscope_may_wake(void);

/* Wakes the process, which began at `began_ns` of CLOCK_MONOTONIC; called once, on a thread of
 * tscope's own. The thread whose call woke the process may hold the dynamic linker's lock and waits
 * meanwhile: nothing here may look up a symbol. False with the reason in `why`. */
bool tscope_wake(u64 began_ns, char *why, size_t bytes);

/* Has the process's orderly end run before the ends of whatever registered so far. */
void tscope_register_end(void);

#pragma GCC visibility pop

#endif
