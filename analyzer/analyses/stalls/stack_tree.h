/* SPDX-License-Identifier: MIT
 *
 * Stacks of many ranks as one tree, with the set of ranks at each node, as STAT of LLNL shows them.
 * Stacks share a node as long as all frames from the outermost on are the same.
 */
#pragma once

#include "analyses/stalls/stall_result.h"
#include "base/arena.h"
#include "model/span_call_sites.h"

/* One thread's. */
struct tree_stack {
  u32 rank;           /* global */
  const char *folder; /* that the process was started in; NULL if not known */
  const char *thread; /* a heading above its frames, such as "other threads"; NULL: nothing */
  const struct call_frame *const *frames; /* innermost first */
  u32 n;
};

struct stack_tree {
  struct stack_node *nodes; /* stall_result.def */
  u32 n;
};

/* Makes the tree in `arena` and sorts `stacks`. */
void stack_tree_make(struct arena *arena, struct tree_stack *stacks, u32 n,
                     struct stack_tree *tree);

/* A part of the tree without a fork, in words: "main job.py:15 > all_reduce c10d.py:3075". */
struct stack_line {
  unsigned depth; /* forks above it */
  const char *ranks;
  double n_ranks;
  char *text;
};

/* The tree as lines, at most `most`; *n is how many. */
struct stack_line *stack_tree_lines(struct arena *arena, const struct stack_tree *tree, u32 most,
                                    u32 *n);
