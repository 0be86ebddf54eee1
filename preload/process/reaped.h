/* SPDX-License-Identifier: MIT
 *
 * Writes into a process's trace how the process ended. This is done by the process that waited for
 * it: a launcher under the shim, although dormant, or tscope-run. Without this, a trace that stops
 * does not say why.
 */
#pragma once

#include <sys/types.h>

/* `child`, for which this process has waited, was ended by `signal`. This is written into its
 * trace, if it has one in a folder of its run (run_folders.h). No other file
 * is changed or created. If the file system does not answer within some 100 ms, it is written when
 * that does: it is not waited for, and deaths until then are not written. Safe in signal handlers;
 * errno is preserved. */
void tscope_reaped(pid_t child, int signal);

/* The same on a thread that may wait for the file system. For one thread of a process. */
void tscope_reaped_here(pid_t child, int signal);

/* In an awake process: leaves it to the helper. Safe in signal handlers. */
void tscope_reaped_later(pid_t child, int signal);

/* On the helper: writes what was left to it. */
void tscope_reaped_do(void);
