/* SPDX-License-Identifier: MIT */
#include "analyses/steps/step_kernels.h"

#include <math.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"

void step_kernels_prepare(struct analysis *a) {
  size_t cells = size_product(a->model->n_ranks, a->n_steps);
  a->kernels_in = arena_array(a->arena, cells, sizeof(*a->kernels_in));
  FILL(a->kernels_in, cells, NAN);
}

void step_kernels_rank(struct analysis *a, const struct timeline *t) {
  float *kernels = &a->kernels_in[(size_t)t->rank * a->n_steps];
  for (u32 i = 0, span = 0; i < a->n_steps && t->on_gpu && !a->whole_run; i++) {
    struct window window;
    u32 step = a->first_step + i, n = 0;
    if (!analysis_window(a, t->rank, step, &window) ||
        analysis_gpu_step(a, t->rank, t, &window) != GPU_STEP_KNOWN)
      continue;
    span = FIRST_NOT_NEAR(span, 0, t->n_spans, k, t->spans[k].start < window.begin);
    for (; span < t->n_spans && t->spans[span].start < window.end; span++)
      n += t->spans[span].kind == SPAN_KERNEL;
    kernels[i] = (float)n;
  }
}

void step_kernels_carry(struct analysis *a, u32 rank, struct carrier *c) {
  float *kernels = &a->kernels_in[(size_t)rank * a->n_steps];
  u32 n = carry_count(c, a->n_steps, 1);
  for (u32 i = 0; i < n; i++) {
    i64 number = c->reads || i >= a->n_steps || isnan(kernels[i]) ? -1 : (i64)kernels[i];
    CARRY(c, &number);
    if (c->reads && i < a->n_steps)
      kernels[i] = number < 0 ? NAN : (float)number;
  }
}

/* `before`: or in the step before each, where that is more. */
static double median_of_steps(const struct analysis *a, const float *of_steps, const bool *them,
                              bool in, bool before, double *values) {
  u32 n = LIST_WHERE(values, 0, a->n_steps, i,
                     !isnan(of_steps[i]) && them[a->first_step + i] == in &&
                         (in || analysis_is_training(a, a->first_step + i)),
                     before && i && of_steps[i - 1] > of_steps[i] ? of_steps[i - 1] : of_steps[i]);
  return median_of(values, n);
}

static struct more_kernels more_of_rank(const struct analysis *a, const bool *them,
                                        double longer_ms, u32 rank, bool before, double *values) {
  const float *kernels = &a->kernels_in[(size_t)rank * a->n_steps];
  double in_them = median_of_steps(a, kernels, them, true, before, values),
         usual = median_of_steps(a, kernels, them, false, before, values);
  if (isnan(in_them) || !(usual > 0))
    return (struct more_kernels){NAN, NAN, false};
  const float *compute_ms = &a->compute_ms[(size_t)rank * a->n_steps];
  double of_more = (in_them / usual - 1) * MEAN_KNOWN(0, a->n_steps, k, compute_ms[k]);
  return (struct more_kernels){in_them, usual, of_more >= REASON_SHARE * longer_ms};
}

struct more_kernels find_more_kernels(const struct analysis *a, const bool *them, double longer_ms,
                                      u32 rank) {
  struct more_kernels least = {NAN, NAN, false};
  SCOPED double *values = memory_array(size_sum(a->n_steps, 1), sizeof(*values));
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    if (rank != INDEX_NONE && i != rank)
      continue;
    struct more_kernels one = more_of_rank(a, them, longer_ms, i, false, values);
    if (isnan(one.usual))
      return one;
    if (isnan(least.usual) || one.in_them / one.usual < least.in_them / least.usual)
      least = one;
  }
  return least;
}

u32 ranks_that_compute_longer(const struct analysis *a, const bool *them, double longer_ms,
                              u32 *ranks, struct longer_compute *found) {
  SCOPED double *values = memory_array(size_sum(a->n_steps, 1), sizeof(*values));
  u32 n = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const float *compute_ms = &a->compute_ms[(size_t)i * a->n_steps];
    double in_them = a->ranks[i].on_gpu ? median_of_steps(a, compute_ms, them, true, true, values)
                                        : (double)NAN,
           usual = median_of_steps(a, compute_ms, them, false, true, values);
    if (!(in_them - usual >= REASON_SHARE * longer_ms))
      continue;
    if (n == 0 || in_them > found->in_them_ms)
      *found = (struct longer_compute){in_them, usual,
                                       more_of_rank(a, them, longer_ms, i, true, values)};
    ranks[n++] = a->model->ranks[i].rank;
  }
  return n;
}
