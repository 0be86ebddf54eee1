/* SPDX-License-Identifier: MIT
 *
 * How a process ended, told to its trace by whoever waited for it: a launcher that runs under the
 * shim, dormant as it is, or tscope-run. Without this, a trace that stops does not say why.
 */
#ifndef TSCOPE_REAPED_H
#define TSCOPE_REAPED_H

#include <sys/types.h>

#pragma GCC visibility push(hidden)

/* `child`, for which this process has waited, was ended by `signal`. Where it has a trace, of a run
 * that this process started or that TSCOPE_RUN names, it is written there; no other file is touched
 * or made. Safe in signal handlers; errno is preserved. */
void tscope_reaped(pid_t child, int signal);

#pragma GCC visibility pop

#endif
