/* SPDX-License-Identifier: MIT
 *
 * Step time, and whether its change is more than the runs' own noise.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diff/diff.h"

/* Below a hundredth a change is not worth a word, however certain it is. */
#define LEAST_CHANGE 0.01
#define SIGNIFICANCE 0.01

/* The known step times without warm-up, in order. The caller frees; NULL without memory. */
static double *step_times(const struct results *r, u32 *n) {
  double *values = malloc((r->n_step_ms + 1) * sizeof(*values));
  u32 first = r->warmup_excluded > 0 ? (u32)r->warmup_excluded : 0;
  *n = 0;
  for (u32 i = first; values && i < r->n_step_ms; i++)
    if (!isnan(r->step_ms[i]))
      values[(*n)++] = r->step_ms[i];
  return values;
}

int diff_steps(struct diffing *d) {
  struct diff_result *out = d->out;
  u32 n_before, n_after;
  double *before = step_times(d->before, &n_before), *after = step_times(d->after, &n_after);
  int error = before && after ? 0 : -ENOMEM;
  if (!error) {
    out->step_before_ms = d->before->step_median_ms;
    out->step_after_ms = d->after->step_median_ms;
    out->step_change = out->step_after_ms / out->step_before_ms - 1;
    out->step_p_value = diff_noise(before, n_before, after, n_after, &out->step_noise_ms);
    out->reason = NULL;
    if (isnan(out->step_p_value))
      out->reason =
          arena_printf(d->arena, "%u and %u steps: each run must have %d for its noise to be known",
                       n_before, n_after, (int)DIFF_LEAST_STEPS);
    else if (out->step_p_value >= SIGNIFICANCE || fabs(out->step_change) < LEAST_CHANGE)
      out->verdict = "no change beyond noise";
    else
      out->verdict = out->step_change > 0 ? "slower" : "faster";
  }
  free(before);
  free(after);
  return error;
}
