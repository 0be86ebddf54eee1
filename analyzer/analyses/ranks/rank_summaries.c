/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>

#include "analyses/analyses.h"

int rank_summaries_prepare(struct analysis *a) {
  const struct model *model = a->model;
  size_t cells = (size_t)model->n_ranks * a->n_steps;
  a->ranks = arena_array(a->arena, model->n_ranks + 1u, sizeof(*a->ranks));
  a->compute_ms = arena_array(a->arena, cells + 1, sizeof(*a->compute_ms));
  a->time_in_other_comms = arena_array(a->arena, model->n_arrivals + 1u, sizeof(i64));
  if (!a->ranks || !a->compute_ms || !a->time_in_other_comms)
    return -ENOMEM;
  for (size_t i = 0; i < cells; i++)
    a->compute_ms[i] = NAN;
  return 0;
}
