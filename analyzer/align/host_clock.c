/* SPDX-License-Identifier: MIT */
#include "host_clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "robust.h"

#define SAME_BOOT_NS 1000000 /* NTP slews CLOCK_REALTIME, but for all processes alike */
#define NOISE_FACTOR 5.0
#define LEAST_TOLERANCE_NS 100e3

static bool same_host(const struct model *model, const struct clock_facts *facts, u32 a, u32 b) {
  i64 apart = facts[a].realtime_minus_monotonic - facts[b].realtime_minus_monotonic;
  return strcmp(model->ranks[a].host, model->ranks[b].host) == 0 && apart > -SAME_BOOT_NS &&
         apart < SAME_BOOT_NS;
}

bool share_host_clock_unchecked(const struct model *model, const struct clock_facts *facts) {
  for (u32 r = 1; r < model->n_ranks; r++)
    if (!same_host(model, facts, 0, r))
      return false;
  return true;
}

bool linked_by_calls(const struct model *model, struct arena *scratch) {
  u32 *top = arena_array(scratch, model->n_ranks, sizeof *top), sets = model->n_ranks;
  if (!top)
    return false;
  for (u32 r = 0; r < model->n_ranks; r++)
    top[r] = r;
  for (u32 c = 0; c < model->n_collectives; c++) {
    const struct collective *collective = &model->collectives[c];
    for (u32 i = 1; i < collective->n_arrivals; i++) {
      u32 a = model->arrivals[collective->first_arrival].rank;
      u32 b = model->arrivals[collective->first_arrival + i].rank;
      while (top[a] != a)
        a = top[a] = top[top[a]];
      while (top[b] != b)
        b = top[b] = top[top[b]];
      sets -= a != b;
      top[a > b ? a : b] = a < b ? a : b;
    }
  }
  return sets == 1;
}

/* The stretch of local time over which a rank's fit was made. */
static struct interval fitted_span(const struct samples *samples, u32 rank) {
  struct interval span = {INT64_MAX, INT64_MIN};
  for (u32 s = 0; s < samples->n; s++) {
    const struct sample *sample = &samples->at[s];
    const u32 *member = NULL;
    for (u32 m = 0; m < sample->n_members && !member; m++)
      if (sample->members[m] == rank)
        member = &sample->members[m];
    for (u32 k = 0; k < sample->n && member; k++) {
      i64 end = sample->ends[(size_t)k * sample->n_members + (size_t)(member - sample->members)];
      if (end == NS_UNKNOWN)
        continue;
      span.start = end < span.start ? end : span.start;
      span.end = end > span.end ? end : span.end;
    }
  }
  return span;
}

/* How far a clock puts `local` from where `common` puts it. */
static double distance(const struct rank_clock *clock, const struct rank_clock *common, i64 local) {
  return fabs((double)(clock_to_axis(clock, local) - clock_to_axis(common, local)));
}

/* The median clock of some ranks of one host: offsets and drift at one instant of its clock. */
static struct rank_clock median_clock(const struct rank_clock *clocks, const u32 *ranks, u32 n,
                                      i64 *offsets, double *drifts) {
  i64 pivot = clocks[ranks[0]].pivot;
  for (u32 i = 0; i < n; i++) {
    offsets[i] = clock_to_axis(&clocks[ranks[i]], pivot) - pivot;
    drifts[i] = clocks[ranks[i]].drift;
  }
  return (struct rank_clock){pivot, median_i64(offsets, n), median_double(drifts, n)};
}

static bool agree(const struct model *model, const struct samples *samples,
                  const struct rank_clock *clocks, const u32 *ranks, u32 n,
                  const struct rank_clock *common) {
  for (u32 i = 0; i < n; i++) {
    struct interval span = fitted_span(samples, ranks[i]);
    double tolerance = NOISE_FACTOR * model->ranks[ranks[i]].clock.residual_us * 1e3;
    if (tolerance < LEAST_TOLERANCE_NS)
      tolerance = LEAST_TOLERANCE_NS;
    if (span.start > span.end || distance(&clocks[ranks[i]], common, span.start) > tolerance ||
        distance(&clocks[ranks[i]], common, span.end) > tolerance)
      return false;
  }
  return true;
}

u32 share_host_clocks(struct model *model, const struct clock_facts *facts,
                      const struct samples *samples, struct rank_clock *clocks) {
  u32 n = model->n_ranks, shared = 0;
  u32 *ranks = calloc(n, sizeof *ranks);
  bool *done = calloc(n, sizeof *done);
  i64 *offsets = calloc(n, sizeof *offsets);
  double *drifts = calloc(n, sizeof *drifts);
  for (u32 first = 0; first < n && ranks && done && offsets && drifts; first++) {
    u32 count = 0;
    for (u32 r = first; r < n; r++)
      if (!done[r] && same_host(model, facts, first, r))
        ranks[count++] = r;
    for (u32 i = 0; i < count; i++)
      done[ranks[i]] = true;
    if (count < 2)
      continue;
    struct rank_clock common = median_clock(clocks, ranks, count, offsets, drifts);
    if (!agree(model, samples, clocks, ranks, count, &common))
      continue;
    for (u32 i = 0; i < count; i++) /* the host of the rank whose clock is the axis */
      if (clocks[ranks[i]].offset == 0 && clocks[ranks[i]].drift == 0)
        common = clocks[ranks[i]];
    for (u32 i = 0; i < count; i++) {
      clocks[ranks[i]] = common;
      model->ranks[ranks[i]].clock.residual_us = (double)facts[ranks[i]].anchor_error_ns / 1e3;
    }
    shared += count;
  }
  free(ranks);
  free(done);
  free(offsets);
  free(drifts);
  return shared;
}
