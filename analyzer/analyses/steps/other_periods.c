/* SPDX-License-Identifier: MIT
 *
 * Long steps that come at a fixed distance. If the m longest of n steps were anywhere by chance, k
 * given steps would be among them with the probability m/n (m-1)/(n-1) ...; this is multiplied by
 * the number of progressions with k members.
 */
#include <math.h>

#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/statistics.h"

/* Fewer than three steps make no period. */
#define LEAST_HITS 3u
#define STARTS_TRIED 64u

static bool may_recur(const struct long_step *step, u32 leave_out) {
  return step->is_long && !(leave_out >> step->content & 1);
}

/* Progressions over n steps with k members. */
static double count_progressions(const struct recurrence_wanted *wanted, u32 n, u32 k) {
  double sum = 0;
  for (u32 period = wanted->shortest; period <= n && period <= wanted->longest; period++) {
    /* offsets o < period with (k - 1) period <= n - 1 - o < k period */
    double last = (double)n - 1 - (double)(k - 1) * period;
    double first = fmax(0, last - period + 1);
    last = fmin(last, period - 1.0);
    sum += last >= first ? last - first + 1 : 0;
  }
  return sum;
}

static double chance_of_period(const struct recurrence_wanted *wanted, u32 n, u32 m, u32 hits,
                               u32 misses) {
  double chance = log(count_progressions(wanted, n, hits + misses));
  for (u32 i = 0; i < hits; i++)
    chance += log((double)(m - i) / (n - i));
  for (u32 i = 0; i < misses; i++)
    chance += log((double)(hits + i + 1) / (i + 1));
  return exp(chance);
}

/* A step that also belongs to another period counts neither for nor against this one. */
static bool check_period(const struct long_steps *steps, const struct recurrence_wanted *wanted,
                         struct recurrence *r) {
  u32 shared = 0, members = 0;
  double least = INFINITY;
  r->hits = 0;
  for (u32 step = r->first; step < steps->end; step += r->period)
    members++;
  FOR_EACH(steps->at, steps->n, step) {
    if (!recurrence_has(r, step->step) || !may_recur(step, wanted->leave_out))
      continue;
    shared += step->group != 0;
    r->hits += step->group == 0;
    least = step->group ? least : fmin(least, step->excess_ms);
  }
  u32 misses = members - shared - r->hits;
  if (r->hits < LEAST_HITS || 10 * misses > r->hits)
    return false;
  u32 as_long =
      NUMBER_OF(steps->at, steps->n, one,
                may_recur(one, wanted->leave_out) && !one->group && one->excess_ms >= least);
  r->chance = chance_of_period(wanted, steps->end - steps->first, as_long, r->hits, misses);
  return true;
}

/* Between the steps of a period lie others that have known work, and may have this work besides: if
 * what they have more is as long in each of them, the period is half of that. The chance stays that
 * of the period that was found. */
static void halve(const struct long_steps *steps, struct recurrence *r) {
  if (r->period % 2)
    return;
  u32 half = r->period / 2, between = 0, all = 0;
  double least = INFINITY;
  FOR_EACH(steps->at, steps->n, step)
    least = recurrence_has(r, step->step) && step->is_long ? fmin(least, step->excess_ms) : least;
  struct recurrence of_half = {.first = r->first, .period = half};
  while (of_half.first >= steps->first + half)
    of_half.first -= half;
  FOR_EACH(steps->at, steps->n, step)
    between += step->has_known && !step->group && recurrence_has(&of_half, step->step) &&
               !recurrence_has(r, step->step) && step->excess_ms >= least / 2;
  for (u32 step = of_half.first; step < steps->end; step += half)
    all += !recurrence_has(r, step);
  if (between > 1 && between == all) {
    r->first = of_half.first;
    r->period = half;
    r->hits += between;
  }
}

bool other_find_recurrence(const struct long_steps *steps, const struct recurrence_wanted *wanted,
                           struct recurrence *found) {
  u32 starts[STARTS_TRIED], n = 0;
  *found = (struct recurrence){.chance = wanted->most_chance};
  for (u32 i = 0; i < steps->n && n < STARTS_TRIED; i++)
    if (may_recur(&steps->at[i], wanted->leave_out) && !steps->at[i].group)
      starts[n++] = steps->at[i].step;
  for (u32 i = 0; i < n; i++)
    for (u32 k = i + 1; k < n; k++) {
      struct recurrence r = {.period = starts[k] - starts[i]};
      if (r.period < wanted->shortest || r.period > wanted->longest)
        continue;
      r.first = starts[i] - (starts[i] - steps->first) / r.period * r.period;
      if (check_period(steps, wanted, &r) && r.chance < found->chance)
        *found = r;
    }
  if (found->hits && found->period / 2 >= wanted->shortest)
    halve(steps, found);
  return found->hits > 0;
}

u32 period_of_steps(const u32 *steps, u32 n, u32 of, struct arena *scratch,
                    struct recurrence *found) {
  struct recurrence best = {.chance = STRAGGLER_SIGNIFICANCE};
  double mean = (double)of / n;
  u32 longest = (u32)(mean / STRETCH_INSIDE) + 1;
  u32 *times = arena_array(scratch, longest, sizeof(u32));
  for (u32 period = 2; period <= longest; period++) {
    u32 first = 0;
    FILL(times, period, 0);
    FOR_EACH(steps, n, one)
      first = ++times[*one % period] > times[first] ? *one % period : first;
    u32 most = times[first];
    double all = (double)of / period;
    if (most < STRETCH_INSIDE * n || most < STRETCH_INSIDE * floor(all))
      continue;
    double p = binomial_tail(most, n, 1.0 / period) * period * longest;
    if (p < best.chance)
      best = (struct recurrence){first, period, most, p};
  }
  if (!best.period)
    best.chance = 1;
  if (found)
    *found = best;
  return best.period;
}
