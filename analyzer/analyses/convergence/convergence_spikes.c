/* SPDX-License-Identifier: MIT
 *
 * Values that stand out from the values before them, and signals that do so together.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/convergence/convergence.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"

/* The expected value at `at`: the median of the last few finite values before it, so that one spike
 * does not hide the next; and how far neighbours scatter. Scatter is measured by differences of
 * neighbours, so that a trend does not count as scatter; their standard deviation is that of the
 * values times the square root of 2. Returns how many values there are. */
static u32 median_before(const double *values, u32 at, const bool *marks, double *median,
                         double *scatter) {
  double last[SPIKE_WINDOW], steps[SPIKE_WINDOW];
  u32 n = 0;
  for (u32 i = at; i-- > 0 && n < SPIKE_WINDOW;)
    if (isfinite(values[i]) && !marks[i])
      last[n++] = values[i];
  if (n < 2)
    return n;
  for (u32 i = 0; i + 1 < n; i++)
    steps[i] = fabs(last[i] - last[i + 1]);
  *scatter = NORMAL_OF_MAD * median_of(steps, n - 1) / sqrt(2);
  *median = median_of(last, MIN(n, SPIKE_NEAR));
  return n;
}

void find_spikes(const double *values, u32 n, double share, bool *marks, double *typical) {
  u32 run = 0;
  for (u32 i = 0; i < n; i++) {
    double median = NAN, scatter = NAN;
    u32 before = median_before(values, i, marks, &median, &scatter);
    typical[i] = median;
    marks[i] = before >= SPIKE_LEAST_BEFORE && isfinite(values[i]) &&
               values[i] - median > SPIKE_SCATTER * scatter &&
               values[i] - median > share * fabs(median);
    run = marks[i] ? run + 1 : 0;
    if (run <= SPIKE_LONGEST)
      continue;
    /* If the values do not come back, it is a new level and not a spike. */
    for (; run > 0; run--)
      marks[i + 1 - run] = false;
  }
}

/* Steps at which a signal has a spike, several in a row counted once. */
static u32 list_onsets(const struct signal_spikes *signal, double *out) {
  return LIST_WHERE(out, 0, signal->n, i,
                    !i || signal->steps[i] - signal->steps[i - 1] > INSTABILITY_STEPS,
                    signal->steps[i]);
}

/* Probability that, by chance, this many of the n spikes of one signal have one of the m spikes of
 * the other near them. It is the smallest value over several definitions of "near", times the
 * number of definitions. */
static double chance_of_coincidence(const double *left, u32 n, const double *right, u32 m,
                                    double steps) {
  double least = 1;
  u32 tried = 0;
  for (double within = 0; within <= INSTABILITY_STEPS; within++, tried++) {
    u32 near = NUMBER_OF(left, n, one, ANY_NUMBER(0, m, i, fabs(*one - right[i]) <= within));
    double each = fmin(1, m * (2 * within + 1) / steps);
    if (near)
      least = fmin(least, binomial_tail(near, n, each));
  }
  return fmin(1, least * tried);
}

static void fill_instability_p(struct convergence_result *result,
                               const struct signal_spikes signals[SIGNALS]) {
  double least = 1;
  u32 pairs = 0;
  for (u32 a = 0; a < SIGNALS; a++)
    for (u32 b = a + 1; b < SIGNALS; b++) {
      if (!signals[a].known || !signals[b].known)
        continue;
      pairs++;
      double from = fmax(signals[a].from, signals[b].from);
      double steps = fmin(signals[a].to, signals[b].to) - from + 1;
      SCOPED double *left =
          memory_array(size_sum(size_sum(signals[a].n, signals[b].n), 2), sizeof(*left));
      double *right = left + signals[a].n + 1;
      u32 n = list_onsets(&signals[a], left), m = list_onsets(&signals[b], right);
      if (steps > 0 && n && m)
        least = fmin(least, n < m ? chance_of_coincidence(left, n, right, m, steps)
                                  : chance_of_coincidence(right, m, left, n, steps));
    }
  result->instability_p = pairs ? fmin(1, least * pairs) : NAN;
}

ORDER_BY(by_step, struct convergence_spike, UP(step))

static void name_signals(struct analysis *a, struct convergence_cluster *cluster) {
  cluster->signals = "";
  for (u32 s = 0; s < SIGNALS; s++)
    if (cluster->kinds >> s & 1) {
      cluster->signals = arena_list(a->arena, cluster->signals, ", ", "%s", signal_kind_words[s]);
      cluster->n_signals++;
    }
}

void find_instability(struct analysis *a, const struct signal_spikes signals[SIGNALS]) {
  struct convergence_result *result = &a->results->convergence;
  u32 n = TOTAL(u32, signals, SIGNALS, one, one->n), clusters = 0;
  result->spikes = arena_array(a->arena, n, sizeof(*result->spikes));
  result->clusters = arena_array(a->arena, n, sizeof(*result->clusters));
  for (u32 s = 0; s < SIGNALS; s++)
    for (u32 i = 0; i < signals[s].n; i++)
      result->spikes[result->n_spikes++] = (struct convergence_spike){
          (enum signal_kind)s, signals[s].steps[i], signals[s].values[i], signals[s].typical[i]};
  SORT(result->spikes, n, by_step);
  struct convergence_cluster open = {0};
  for (u32 i = 0; i <= n; i++) {
    const struct convergence_spike *spike = &result->spikes[i];
    if (i < n && open.kinds && spike->step - open.last_step <= INSTABILITY_STEPS) {
      open.last_step = spike->step;
      open.kinds |= 1u << spike->signal;
      continue;
    }
    if (open.kinds & (open.kinds - 1)) {
      name_signals(a, &open);
      result->clusters[clusters++] = open;
    }
    if (i < n)
      open = (struct convergence_cluster){spike->step, spike->step, NULL, 1u << spike->signal, 0};
  }
  result->n_clusters = clusters;
  fill_instability_p(result, signals);
}
