/* SPDX-License-Identifier: MIT
 *
 * How many steps, how long, how even. A step's wall time is the mean over ranks of its own.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis.h"
#include "statistics.h"

static double step_wall_ms(const struct analysis *a, u32 step) {
  i64 sum = 0;
  u32 n = 0;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    struct window window;
    if (!analysis_window(a, rank, step, &window))
      continue;
    sum += window.end - window.begin;
    n++;
  }
  return n ? ns_to_ms(sum) / n : NAN;
}

static int whole_run(struct analysis *a) {
  struct results *r = a->results;
  a->whole_run = r->whole_run = true;
  a->first_step = 0;
  a->n_steps = 1;
  r->step_count = a->model->n_ranks ? 0 : NAN;
  r->warmup_excluded = NAN;
  r->step_median_ms = r->step_p95_ms = r->step_mean_ms = r->step_cv = NAN;
  return 0;
}

int steps_analyse(struct analysis *a) {
  const struct steps *steps = &a->model->steps;
  struct results *r = a->results;
  if (steps->n == 0)
    return whole_run(a);
  a->first_step = steps->warmup < steps->n ? steps->warmup : 0;
  a->n_steps = steps->n - a->first_step;
  r->step_count = steps->n;
  r->warmup_excluded = a->first_step;
  r->step_ms = arena_array(a->arena, steps->n, sizeof(double));
  double *looked_at = arena_array(a->arena, a->n_steps, sizeof(double));
  if (!r->step_ms || !looked_at)
    return -ENOMEM;
  r->n_step_ms = steps->n;
  u32 n = 0;
  for (u32 step = 0; step < steps->n; step++) {
    r->step_ms[step] = step_wall_ms(a, step);
    if (step >= a->first_step && !isnan(r->step_ms[step]))
      looked_at[n++] = r->step_ms[step];
  }
  r->step_mean_ms = mean_of(looked_at, n);
  r->step_cv = variation_of(looked_at, n);
  r->step_median_ms = median_of(looked_at, n);
  r->step_p95_ms = quantile_of(looked_at, n, 0.95);
  return 0;
}
