/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "analyses/analyses.h"

void rank_summaries_prepare(struct analysis *a) {
  const struct model *model = a->model;
  size_t cells = (size_t)model->n_ranks * a->n_steps;
  a->ranks = arena_array(a->arena, model->n_ranks, sizeof(*a->ranks));
  a->compute_ms = arena_array(a->arena, cells, sizeof(*a->compute_ms));
  a->time_in_other_comms = arena_array(a->arena, model->n_arrivals, sizeof(i64));
  FILL(a->compute_ms, cells, NAN);
}

void rank_summaries_free(struct analysis *a) {
  FOR_EACH_CHANGED(a->ranks, a->model->n_ranks, rank) {
    free(rank->by_op.at);
    memset(&rank->by_op, 0, sizeof(rank->by_op));
  }
}
