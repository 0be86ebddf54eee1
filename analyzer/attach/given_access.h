/* SPDX-License-Identifier: MIT
 *
 * What the kernel guards of a process, had from tscope-run, which is its ancestor: see
 * inspect/guarded_access.h. For tscope-stacks when tscope-run started it.
 */
#ifndef TSCOPE_GIVEN_ACCESS_H
#define TSCOPE_GIVEN_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

#include "format/tscope_format.h"

/* From now on the memory of `pid` and the calls of its threads are read through tscope-run. 0; a
 * negative errno when that does not give them. */
int given_access_begin(pid_t pid);

/* Whether it is `pid` that is read so. */
bool given_access_covers(pid_t pid);

/* Stops a thread; it goes on with given_access_continue(), and after GUARDED_MAX_STOP_MS in any
 * case. 0; -ETIMEDOUT when it did not stop; another negative errno. */
int given_access_stop(u32 tid, struct user_regs_struct *registers);

/* 0: it was stopped until now. Negative errno: what was copied since the stop may not fit together.
 */
int given_access_continue(u32 tid);

#endif
