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
  i64 batch_of_peers; /* how long the workers of the median rank take from one to the next */
  u32 n_steps;
  i64 *step_ends; /* [n_steps] without changes */
  i64 exposed;    /* communication of all ranks, without changes; -1: not yet known */
  u64 contradictions;
};

/* So many cures are replayed side by side: what must be fetched of a node serves all of them. */
#define MOST_SIDE_BY_SIDE 2u

/* One replay with a cure. */
struct run {
  const struct replay *r;
  const struct cure *cure;
  const float *factor; /* of the ranks that work as fast as others; NULL: none */
  bool even;           /* and an equal share of the work of each step */
  const bool *ranks;   /* which these are; NULL: all */
  float *own_factor;   /* if it was made for this cure */
  const double *awake; /* [rank] what stays outside the phases; NULL: as `host_left` says */
  float *by_name;      /* [key] what work with such names keeps; NULL: no name is changed */
  double launches_left, away_left;
  double kind_left[NODE_COLLECTIVE + 1], host_left[2][HOST_KEYS]; /* by kind; on a GPU, by phase */
  bool special;                                                   /* some changes depend on more */
  /* Times of nodes, joins and ranks. Those of runs side by side are next to each other, so from one
   * to the next it is MOST_SIDE_BY_SIDE. */
  i64 *times, *arrived;
  i64 *batch_ready; /* of each batch */
  i64 *device_done; /* when all of its device's work is done that the sample does not cut */
};

/* A thread's runs, kept from question to question: new memory costs as much as a replay. */
struct runs {
  struct run at[MOST_SIDE_BY_SIDE];
  const struct sample_graph *g; /* that they have room for */
};

/* At most MOST_SIDE_BY_SIDE replays, in runs->at. */
void runs_cure(struct runs *runs, u32 n, const struct replay *r, const struct cure *cures);
void runs_free(struct runs *runs);

static inline i64 *run_start_at(const struct run *run, u32 node) {
  return &run->times[2 * (size_t)node * MOST_SIDE_BY_SIDE];
}

static inline i64 *run_end_at(const struct run *run, u32 node) {
  return run_start_at(run, node) + MOST_SIDE_BY_SIDE;
}

static inline i64 run_start(const struct run *run, u32 node) {
  return *run_start_at(run, node);
}

static inline i64 run_end(const struct run *run, u32 node) {
  return *run_end_at(run, node);
}

/* Where each step of the sample ends, on the rank that is done last: [n_steps]. */
void run_step_ends(const struct run *run, i64 *ends);

static inline i64 later(i64 a, i64 b) {
  return a > b ? a : b;
}

#endif
