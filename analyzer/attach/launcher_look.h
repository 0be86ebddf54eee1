/* SPDX-License-Identifier: MIT
 *
 * A look at a process that the kernel does not let us read, through the tscope-run that started it:
 * see inspect/guarded_access.h.
 */
#ifndef TSCOPE_LAUNCHER_LOOK_H
#define TSCOPE_LAUNCHER_LOOK_H

#include "attach/native_stacks.h"
#include "base/arena.h"
#include "model/stalls.h"

/* As attached_look(), through an ancestor of `pid`. The process id of that tscope-run; -ENOENT when
 * none of its ancestors is one that helps; another negative errno when it could not help. */
int launcher_look(struct arena *arena, pid_t pid, enum native_which which, struct rank_stall *look,
                  struct native_outcome *native);

/* The other side: what tscope-run starts. Looks at `pid` through it and writes what it saw to
 * standard output. 0, or a negative errno. */
int launcher_look_serve(pid_t pid, enum native_which which);

#endif
