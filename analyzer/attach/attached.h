/* SPDX-License-Identifier: MIT
 *
 * A running process, read from outside: the state of its threads, and their Python frames. Nothing
 * of it is stopped, except for native frames; what changes while it is read is marked.
 */
#pragma once

#include <sys/types.h>

#include "attach/native_stacks.h"
#include "base/arena.h"
#include "model/stalls.h"

/* Fills in the threads of `pid`; everything lives in `arena`. Where frames cannot be read,
 * `stacks->no_python` says why, and the rest is valid. Native frames come with them as `which`
 * says; `native` is the result of that. 0, or -ESRCH. */
int attached_read_stacks(struct arena *arena, pid_t pid, enum native_which which,
                         struct rank_stall *stacks, struct native_outcome *native);
