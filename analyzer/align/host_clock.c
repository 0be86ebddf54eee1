/* SPDX-License-Identifier: MIT */
#include "align/host_clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/robust.h"

#define SAME_BOOT_NS 1000000 /* NTP slews CLOCK_REALTIME, but for all processes alike */
#define NOISE_FACTOR 3.0
#define LEAST_TOLERANCE_NS 50e3

static bool same_host(const struct model *model, const struct clock_facts *facts, u32 a, u32 b) {
  if (!model->ranks[a].host || !model->ranks[b].host)
    return false;
  i64 apart = clock_realtime_difference(&facts[a], &facts[b]);
  return strcmp(model->ranks[a].host, model->ranks[b].host) == 0 && apart != NS_UNKNOWN &&
         apart > -SAME_BOOT_NS && apart < SAME_BOOT_NS;
}

bool share_host_clock_unchecked(const struct model *model, const struct clock_facts *facts) {
  for (u32 r = 1; r < model->n_ranks; r++)
    if (!same_host(model, facts, 0, r))
      return false;
  return true;
}

bool linked_by_calls(const struct model *model, struct arena *scratch) {
  u32 *top = arena_array(scratch, model->n_ranks, sizeof(*top)), sets = model->n_ranks;
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

/* When each sampled collective ended, on the axis: the median over its members that are placed. */
static void find_consensus(const struct sample *sample, const struct rank_clock *clocks,
                           const bool *placed, i64 *scratch, i64 *consensus) {
  for (u32 k = 0; k < sample->n; k++) {
    u32 known = 0;
    for (u32 m = 0; m < sample->n_members; m++) {
      i64 end = sample->ends[(size_t)k * sample->n_members + m];
      if (end != NS_UNKNOWN && placed[sample->members[m]])
        scratch[known++] = clock_to_axis(&clocks[sample->members[m]], end);
    }
    consensus[k] = known ? median_i64(scratch, known) : NS_UNKNOWN;
  }
}

struct evidence {
  const struct samples *samples;
  i64 (*consensus)[MOST_SAMPLES]; /* [samples.n] */
  u32 (*places)[2]; /* [n_ranks] the sample with the most ends of this rank, and its member number
                      there */
};

/* Median distance of a rank's ends from the consensus, for a given clock. */
static double median_distance(const struct evidence *evidence, u32 rank,
                              const struct rank_clock *clock) {
  const struct sample *sample = &evidence->samples->at[evidence->places[rank][0]];
  const i64 *consensus = evidence->consensus[evidence->places[rank][0]];
  double apart[MOST_SAMPLES];
  u32 n = 0;
  for (u32 k = 0; k < sample->n; k++) {
    i64 end = sample->ends[(size_t)k * sample->n_members + evidence->places[rank][1]];
    if (end != NS_UNKNOWN && consensus[k] != NS_UNKNOWN)
      apart[n++] = fabs((double)(clock_to_axis(clock, end) - consensus[k]));
  }
  return median_double(apart, n);
}

static bool collect_evidence(struct evidence *evidence, const struct samples *samples, u32 n_ranks,
                             const struct rank_clock *clocks, const bool *placed,
                             struct arena *scratch) {
  i64 *values = arena_array(scratch, n_ranks, sizeof(*values));
  *evidence =
      (struct evidence){.samples = samples,
                        .consensus = arena_array(scratch, samples->n, sizeof(*evidence->consensus)),
                        .places = arena_array(scratch, n_ranks, sizeof(*evidence->places))};
  if (!values || !evidence->consensus || !evidence->places)
    return false;
  for (u32 s = 0; s < samples->n; s++) {
    const struct sample *sample = &samples->at[s];
    find_consensus(sample, clocks, placed, values, evidence->consensus[s]);
    for (u32 m = 0; m < sample->n_members; m++) {
      u32 *place = evidence->places[sample->members[m]];
      bool first = samples->at[place[0]].members[place[1]] != sample->members[m];
      if (first || sample->n > samples->at[place[0]].n) {
        place[0] = s;
        place[1] = m;
      }
    }
  }
  return true;
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

/* Ends confirm a common clock if they scatter little more around it than around the best fit. The
 * best fit can follow anything that delays a rank's ends (a busy CPU), but is not the clock. The
 * ranks share the CPUs of one host, so the busiest rank determines how much scatter is allowed for
 * all. The rank that is the axis has no residual of its own. */
static bool ends_confirm_clock(const struct model *model, const struct evidence *evidence,
                               const bool *placed, const u32 *ranks, u32 n,
                               const struct rank_clock *common) {
  double residual_us = 0;
  for (u32 i = 0; i < n; i++)
    if (placed[ranks[i]])
      residual_us = fmax(residual_us, model->ranks[ranks[i]].clock.residual_us);
  double tolerance = NOISE_FACTOR * residual_us * 1e3;
  for (u32 i = 0; i < n; i++) {
    if (!placed[ranks[i]])
      continue;
    if (median_distance(evidence, ranks[i], common) > tolerance + LEAST_TOLERANCE_NS)
      return false;
  }
  return true;
}

u32 share_host_clocks(struct model *model, const struct clock_facts *facts,
                      const struct samples *samples, const bool *placed, u32 root,
                      struct rank_clock *clocks) {
  u32 n = model->n_ranks, shared = 0;
  u32 *ranks = calloc(n, sizeof(*ranks));
  bool *done = calloc(n, sizeof(*done));
  i64 *offsets = calloc(n, sizeof(*offsets));
  double *drifts = calloc(n, sizeof(*drifts));
  struct arena scratch = {0};
  struct evidence evidence;
  bool room = ranks && done && offsets && drifts &&
              collect_evidence(&evidence, samples, n, clocks, placed, &scratch);
  for (u32 first = 0; first < n && room; first++) {
    u32 count = 0;
    for (u32 r = first; r < n; r++)
      if (!done[r] && same_host(model, facts, first, r))
        ranks[count++] = r;
    for (u32 i = 0; i < count; i++)
      done[ranks[i]] = true;
    if (count < 2)
      continue;
    struct rank_clock common = median_clock(clocks, ranks, count, offsets, drifts);
    for (u32 i = 0; i < count; i++) /* the host of the rank whose clock is the axis */
      if (ranks[i] == root)
        common = clocks[root];
    if (!ends_confirm_clock(model, &evidence, placed, ranks, count, &common))
      continue;
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
  arena_release(&scratch);
  return shared;
}
