/* SPDX-License-Identifier: MIT
 *
 * Time by the whole stack that it comes from: the frames of all ranks as one tree, for a flame
 * graph. The cost of a frame includes all that it calls.
 */
#pragma once

#include "analyses/analysis.h"
#include "model/span_call_sites.h"

/* The cost of the calls of one stack, each counted for all calls that it stands for. ns. */
struct stack_cost {
  i64 host, idle, exposed, gpu;
  i64 sampled; /* of the threads that train, while they do not wait */
};

struct line_tree;

struct line_tree *line_tree_new(void);
void line_tree_free(struct line_tree *tree);

/* Adds a rank's: [sites->n_stacks] costs. From any thread. */
void line_tree_add(struct line_tree *tree, u32 rank, const struct call_sites *sites,
                   const struct stack_cost *costs);

/* What line_tree_add() is given, for a rank that is reduced; and that, read and added. */
struct carrier;
void line_tree_write(const struct call_sites *sites, const struct stack_cost *costs,
                     struct carrier *c);
void line_tree_read(struct line_tree *tree, u32 rank, struct carrier *c);

/* Steps of the ranks that know a figure of lines: the sums of all ranks are divided by these. NAN:
 * none knows it. */
struct line_steps {
  double all, calls, idle, comm, exposed, on_gpu;
};

/* Sets results->lines.stacks, and of what was sampled also a straggler's beside its peers'. */
void line_tree_list(struct line_tree *tree, struct analysis *a, const struct line_steps *steps);
