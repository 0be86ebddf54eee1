/* SPDX-License-Identifier: MIT
 *
 * What a standing rank is doing, from what its threads are in: for recorded stalls and for
 * processes that are looked at while they run.
 */
#ifndef TSCOPE_STALL_WORDS_H
#define TSCOPE_STALL_WORDS_H

#include "analyses/stalls/stack_tree.h"
#include "model/stalls.h"

/* The thread that stands for its process in the tree: the first one, else the first that Python
 * knows. NULL if there is none. */
const struct stalled_thread *stall_main_thread(const struct rank_stall *stall);

/* Fills in `what`, the place, `system`, `words` and `frames`. `in_collective`: what it has called
 * and that has not finished; NULL. False when memory ran out. */
bool stall_describe(struct arena *arena, const struct rank_stall *stall, const char *in_collective,
                    struct stalled_rank *out);

/* Adds the stacks of a stall's threads to `stacks`, which has room for all of them; returns how
 * many. The first thread's stand for themselves, others below "other threads". */
u32 stall_stacks(const struct rank_stall *stall, u32 rank, struct tree_stack *stacks);

#endif
