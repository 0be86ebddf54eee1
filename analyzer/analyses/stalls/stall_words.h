/* SPDX-License-Identifier: MIT
 *
 * What a rank that stalls is doing, from the state of its threads: for recorded stalls and
 * for processes that are read while they run.
 */
#pragma once

#include "analyses/stalls/stack_tree.h"
#include "model/stalls.h"

struct analysis;

/* The thread that represents its process in the tree: the first one, else the first that Python
 * knows. NULL if there is none. */
const struct stalled_thread *stall_main_thread(const struct rank_stall *stall);

/* Fills in `what`, the place, `system`, `words` and `frames`. `in_collective`: the call that has
 * not finished; NULL. */
void stall_describe(struct arena *arena, const struct rank_stall *stall, const char *in_collective,
                    struct stalled_rank *out);

/* "train.py:12 (load), called from train.py:3 (main)"; NULL if the place is not known. */
char *stall_place(struct arena *arena, const struct stalled_rank *rank);

/* "asleep", "stopped by a debugger": a thread's state in /proc; NULL if it says nothing. */
const char *stall_state_words(char state);

/* Whether both are known to be at one place, in one call; and do the same there. */
bool stall_same_place(const struct stalled_rank *a, const struct stalled_rank *b);
bool stall_does_the_same(const struct stalled_rank *a, const struct stalled_rank *b);

/* Adds the stacks of a stall's threads to `stacks`, which has room for all of them; returns how
 * many. The stack of the first thread stands by itself, the others below "other threads". */
u32 stall_stacks(const struct rank_stall *stall, u32 rank, struct tree_stack *stacks);

/* "train.py:12 (load)": the user's line at which the last sample of a rank (index into
 * model.ranks) saw its first thread; NULL if there is none. */
char *stack_last_sampled(const struct analysis *a, u32 rank);
