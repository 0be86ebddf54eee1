/* SPDX-License-Identifier: MIT
 *
 * A prepared sample and one replay of it: shared by path_replay.c, which replays, and
 * path_questions.c, which asks.
 */
#ifndef TSCOPE_PATH_RUN_H
#define TSCOPE_PATH_RUN_H

#include "analyses/path/path_graph.h"
#include "analyses/path/path_peers.h"

/* Events that must be put in order. The start of node n is event n. Its end is event n too, unless
 * other events decide it: then it is V + n. Join m is 2V + m. */
struct replay {
  const struct analysis *a;
  const struct sample_graph *g;
  u32 *order, n_order;
  struct peers peers;
  i64 batch_of_peers; /* how long workers of the median rank take for one, as far as known */
  u32 n_steps;
  i64 *step_ends; /* [n_steps] without changes */
  i64 exposed;    /* communication of all ranks, without changes; -1: not yet known */
  u64 contradictions;
};

/* One replay with a cure. */
struct run {
  const struct replay *r;
  const struct cure *cure;
  const float *factor; /* of the ranks that work as fast as others; NULL: none */
  const bool *ranks;   /* which these are; NULL: all */
  float *own_factor;   /* if it was made for this cure */
  float *by_name;      /* [key] what work with such names keeps; NULL: no name is changed */
  double launches_left;
  double kind_left[NODE_COLLECTIVE + 1], host_left[2][HOST_KEYS]; /* by kind; on a GPU, by phase */
  bool special;                                                   /* some changes depend on more */
  i64 *start, *end, *arrived;
  i64 *batch_ready; /* [n_ranks] the last batch that was waited for */
};
/* One run serves for several cures. */
void run_begin(struct run *run, const struct sample_graph *g);
void run_cure(struct run *run, const struct replay *r, const struct cure *cure);
void run_end(struct run *run);

/* Where each step of the sample ends, on the rank that is done last: [n_steps]. */
void run_step_ends(const struct run *run, i64 *ends);

static inline i64 later(i64 a, i64 b) {
  return a > b ? a : b;
}

#endif
