/* SPDX-License-Identifier: MIT
 *
 * Who takes longest with work that all ranks do in some steps, such as a validation or the
 * collection of data: the rank for which the others wait in more of these steps than chance would
 * have it.
 */
#include <math.h>

#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/statistics.h"

/* The rank that is last in most of the steps. */
static u32 most_often_last(const struct long_steps *steps, const u32 *own, u32 n, u32 *times) {
  u32 best = INDEX_NONE;
  FOR_EACH(own, n, one) {
    u32 last = steps->at[*one].last;
    if (last != INDEX_NONE && (++times[last], best == INDEX_NONE || times[last] > times[best]))
      best = last;
  }
  return best;
}

void find_slowest_in_work(const struct model *model, const struct long_steps *steps, const u32 *own,
                          u32 n, struct slowest_in_work *out) {
  SCOPED_ARENA struct arena scratch = {0};
  u32 *times = arena_array(&scratch, model->n_ranks, sizeof(*times));
  u32 known = NUMBER_OF(own, n, one, steps->at[*one].last != INDEX_NONE);
  double *values = arena_array(&scratch, n, sizeof(*values));
  *out = (struct slowest_in_work){.rank = INDEX_NONE, .ms = NAN};
  u32 rank = most_often_last(steps, own, n, times);
  if (rank != INDEX_NONE) {
    u32 last =
        LIST_WHERE(values, 0, n, i, steps->at[own[i]].last == rank, steps->at[own[i]].wait_ms);
    double ms = median_of(values, last); /* that the others wait where it is last */
    double chance = binomial_tail(times[rank], known, 1.0 / model->n_ranks) * model->n_ranks;
    double rare = ms < STRAGGLER_SMALL * steps->typical_ms ? STRAGGLER_SMALL_SIGNIFICANCE
                                                           : STRAGGLER_SIGNIFICANCE;
    if (ms > 0 && chance < rare)
      *out = (struct slowest_in_work){.rank = rank, .steps = times[rank], .of = known, .ms = ms};
  }
}
