/* SPDX-License-Identifier: MIT
 *
 * The life of tscope in a process: dormant; awake from the first call that only training makes;
 * finally off, at the end of the process or after a failure. A fork child of an awake process is
 * off.
 */
#pragma once

#include "record/hook.h"

/* Whether the process may wake; depends on its privileges and its environment. */
bool tscope_may_wake(void);

/* Wakes the process; the waking began at `began_ns` of CLOCK_MONOTONIC. Called once, on a thread of
 * tscope. The thread whose call wakes the process waits meanwhile, and may hold the dynamic
 * linker's lock: so nothing here may look up a symbol. False with the reason in `why`. */
bool tscope_wake(u64 began_ns, char *why, size_t bytes);

/* Registers tscope's end of the process so that it runs before all exit handlers registered so
 * far. */
void tscope_register_end(void);
