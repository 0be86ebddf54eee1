/* SPDX-License-Identifier: MIT
 *
 * Reads the stacks of a process that the kernel does not let us read, through the tscope-run that
 * started it: see inspect/guarded_access.h.
 */
#ifndef TSCOPE_LAUNCHER_STACKS_H
#define TSCOPE_LAUNCHER_STACKS_H

#include "attach/native_stacks.h"
#include "base/arena.h"
#include "model/stalls.h"

/* As attached_read_stacks(), through an ancestor of `pid`. The process id of that tscope-run;
 * -ENOENT when none of its ancestors is one that helps; another negative errno when it could not
 * help. */
int launcher_read_stacks(struct arena *arena, pid_t pid, enum native_which which,
                         struct rank_stall *stacks, struct native_outcome *native);

/* The other side: what tscope-run starts. Reads the stacks of `pid` through it and writes
 * them to standard output. 0, or a negative errno. */
int launcher_serve_stacks(pid_t pid, enum native_which which);

#endif
