/* SPDX-License-Identifier: MIT
 *
 * Writes into a process's trace how the process ended. This is done by the process that waited for
 * it: a launcher under the shim, although dormant, or tscope-run. Without this, a trace that stops
 * does not say why.
 */
#pragma once

#include <sys/types.h>

/* `child`, for which this process has waited, was ended by `signal`. This is written into its
 * trace, if it has one in a run that this process started or that TSCOPE_RUN names. No other file
 * is changed or created. Safe in signal handlers; errno is preserved. */
void tscope_reaped(pid_t child, int signal);
