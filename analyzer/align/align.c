/* SPDX-License-Identifier: MIT */
#include "align/align.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "align/host_clock.h"
#include "align/samples.h"
#include "base/robust.h"

#define LEAST_COLLECTIVES 3u  /* fewer say nothing */
#define MOST_DRIFT 500e-6     /* no working clock drifts more */
#define SANE_RESIDUAL_US 20.0 /* a residual below this never counts against the fit */
#define MOST_OF_TRANSFER 0.5  /* a residual above this share of the quantity to be measured does */
#define REFINEMENTS 2

struct aligner {
  struct model *model;
  const struct clock_facts *facts;
  struct rank_clock *clocks;
  struct arena *arena, scratch;
  struct samples samples;
  bool *placed, *is_new; /* [n_ranks] */
  bool *used;            /* [samples.n] */
  bool by_messages;      /* some ranks are linked by messages only */
  i64 *values;           /* [n_ranks] */
  i64 consensus[MOST_SAMPLES];
  double x[MOST_SAMPLES], y[MOST_SAMPLES], left[MOST_SAMPLES];
};

/* When each sampled collective ended, on the axis: the median over members already placed. */
static void find_consensus(struct aligner *aligner, const struct sample *sample) {
  for (u32 k = 0; k < sample->n; k++) {
    u32 known = 0;
    for (u32 m = 0; m < sample->n_members; m++) {
      i64 end = sample->ends[(size_t)k * sample->n_members + m];
      u32 rank = sample->members[m];
      if (aligner->placed[rank] && end != NS_UNKNOWN)
        aligner->values[known++] = clock_to_axis(&aligner->clocks[rank], end);
    }
    aligner->consensus[k] = known ? median_i64(aligner->values, known) : NS_UNKNOWN;
  }
}

/* Fits member m's clock to the consensus. `pinned` keeps the clock and only measures. */
static bool fit_member(struct aligner *aligner, const struct sample *sample, u32 m, bool pinned) {
  u32 rank = sample->members[m], points = 0;
  struct rank_clock *clock = &aligner->clocks[rank];
  struct clock_fit *fit = &aligner->model->ranks[rank].clock;
  i64 pivot = aligner->facts[rank].begin, offset = 0;
  for (u32 k = 0; k < sample->n; k++) {
    i64 end = sample->ends[(size_t)k * sample->n_members + m];
    if (end == NS_UNKNOWN || aligner->consensus[k] == NS_UNKNOWN)
      continue;
    i64 at = pinned ? clock_to_axis(clock, end) : end;
    if (points == 0)
      offset = pinned ? 0 : aligner->consensus[k] - at;
    aligner->x[points] = (double)(end - pivot);
    aligner->y[points++] = (double)(aligner->consensus[k] - at - offset);
  }
  if (points < LEAST_COLLECTIVES)
    return false;
  struct line line =
      fit_line(aligner->x, aligner->y, points, pinned ? 0 : MOST_DRIFT, aligner->left);
  if (!pinned)
    *clock = (struct rank_clock){.pivot = pivot + (i64)line.x0,
                                 .offset = offset + (i64)llrint(line.at_x0),
                                 .drift = line.slope};
  fit->residual_us = line.mad / 1e3;
  fit->collectives = points;
  return true;
}

/* Places the members of one communicator that are not yet placed, with the help of those that
 * are. */
static void place_members(struct aligner *aligner, const struct sample *sample) {
  bool *is_new = aligner->is_new;
  memset(is_new, 0, aligner->model->n_ranks);
  for (u32 pass = 0; pass <= REFINEMENTS; pass++) {
    find_consensus(aligner, sample);
    for (u32 m = 0; m < sample->n_members; m++) {
      u32 rank = sample->members[m];
      if (pass == 0)
        is_new[rank] = !aligner->placed[rank];
      if (is_new[rank])
        is_new[rank] = fit_member(aligner, sample, m, false);
    }
    for (u32 m = 0; m < sample->n_members; m++)
      aligner->placed[sample->members[m]] |= is_new[sample->members[m]];
  }
}

/* Collectives before messages, then the most members, then the most ends. */
static bool is_better(const struct sample *a, const struct sample *b) {
  if (a->messages != b->messages)
    return b->messages;
  return a->n_members != b->n_members ? a->n_members > b->n_members : a->n > b->n;
}

/* The best one that has a placed and an unplaced member. NULL if no chain leads further. */
static const struct sample *next_sample(struct aligner *aligner) {
  const struct sample *best = NULL;
  for (u32 i = 0; i < aligner->samples.n; i++) {
    const struct sample *sample = &aligner->samples.at[i];
    u32 placed = 0;
    for (u32 m = 0; m < sample->n_members; m++)
      placed += aligner->placed[sample->members[m]];
    if (aligner->used[i] || placed == 0 || placed == sample->n_members)
      continue;
    if (!best || is_better(sample, best))
      best = sample;
  }
  return best;
}

/* Starts from `root`, whose clock becomes the axis, and follows communicators outwards. Returns
 * how many ranks were placed. */
static u32 place_ranks_from(struct aligner *aligner, u32 root) {
  struct model *model = aligner->model;
  memset(aligner->placed, 0, model->n_ranks);
  memset(aligner->used, 0, aligner->samples.n);
  aligner->placed[root] = true;
  aligner->clocks[root] = (struct rank_clock){.pivot = aligner->facts[root].begin};
  model->ranks[root].clock.residual_us = 0;
  bool root_measured = false;
  aligner->by_messages = false;
  for (const struct sample *sample; (sample = next_sample(aligner));) {
    place_members(aligner, sample);
    aligner->by_messages |= sample->messages;
    aligner->used[sample - aligner->samples.at] = true;
    for (u32 m = 0; m < sample->n_members && !root_measured; m++)
      if (sample->members[m] == root) {
        find_consensus(aligner, sample);
        root_measured = fit_member(aligner, sample, m, true);
      }
  }
  u32 placed = 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    placed += aligner->placed[r];
  return placed;
}

/* A wall clock this far from the time since boot means that the file is damaged. The limit ensures
 * that the difference of two valid ones fits into the type. */
#define MOST_REALTIME 4000000000000000000ll /* ns, the year 2096 */

i64 clock_realtime_difference(const struct clock_facts *a, const struct clock_facts *b) {
  i64 x = a->realtime_minus_monotonic, y = b->realtime_minus_monotonic;
  bool sane =
      x >= -MOST_REALTIME && x <= MOST_REALTIME && y >= -MOST_REALTIME && y <= MOST_REALTIME;
  return sane ? x - y : NS_UNKNOWN;
}

/* Ranks that collectives do not reach follow CLOCK_REALTIME, relative to rank `root`. */
static void follow_realtime(struct aligner *aligner, u32 root) {
  for (u32 r = 0; r < aligner->model->n_ranks; r++) {
    if (aligner->placed[r])
      continue;
    i64 apart = clock_realtime_difference(&aligner->facts[r], &aligner->facts[root]);
    aligner->clocks[r] = (struct rank_clock){.pivot = aligner->facts[r].begin,
                                             .offset = apart == NS_UNKNOWN ? 0 : apart};
    aligner->model->ranks[r].clock = (struct clock_fit){.residual_us = NAN};
  }
}

static const char *describe_unplaced(struct aligner *aligner, u32 root) {
  char text[256];
  size_t length = 0;
  u32 count = 0;
  for (u32 r = 0; r < aligner->model->n_ranks; r++) {
    if (aligner->placed[r])
      continue;
    if (count++ < 8)
      length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u",
                                 count > 1 ? ", " : "", aligner->model->ranks[r].rank);
  }
  return arena_printf(aligner->arena,
                      "refused: rank%s %s%s (%u of %u) %s not linked to rank %u by at least %u "
                      "collectives, or messages in both directions, with known ends",
                      count > 1 ? "s" : "", text, count > 8 ? ", ..." : "", count,
                      aligner->model->n_ranks, count > 1 ? "are" : "is",
                      aligner->model->ranks[root].rank, LEAST_COLLECTIVES);
}

/* Whether a rank's residual is comparable to the transfers it would be used to measure. */
static const char *describe_bad_residual(struct aligner *aligner, double transfer_us) {
  struct model *model = aligner->model;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct clock_fit *fit = &model->ranks[r].clock;
    if (fit->residual_us > SANE_RESIDUAL_US && fit->residual_us > MOST_OF_TRANSFER * transfer_us)
      return arena_printf(aligner->arena,
                          "refused: collective ends of rank %u vary by %.0f us, more than half of "
                          "the transfer time (median %.0f us)",
                          model->ranks[r].rank, fit->residual_us, transfer_us);
  }
  return NULL;
}

static void report_fits(struct aligner *aligner) {
  struct model *model = aligner->model;
  model->clock_residual_us = model->clock_aligned ? 0 : NAN;
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct clock_fit *fit = &model->ranks[r].clock;
    fit->aligned = aligner->placed[r] && model->clock_aligned;
    fit->offset_ns = aligner->clocks[r].offset;
    fit->drift_ppm = aligner->clocks[r].drift * 1e6;
    if (!fit->aligned)
      fit->residual_us = NAN;
    else if (fit->residual_us > model->clock_residual_us)
      model->clock_residual_us = fit->residual_us;
  }
}

/* Processes of one booted machine share its clock. This is also used if no collective's end can
 * confirm it, as long as calls (including a send and its receive) connect them all. */
static bool use_host_clock(struct aligner *aligner, const char *method) {
  struct model *model = aligner->model;
  if (!linked_by_calls(model, &aligner->scratch) ||
      !share_host_clock_unchecked(model, aligner->facts))
    return false;
  for (u32 r = 0; r < model->n_ranks; r++) {
    aligner->placed[r] = true;
    aligner->clocks[r] = (struct rank_clock){.pivot = aligner->facts[r].begin};
    model->ranks[r].clock.residual_us = (double)aligner->facts[r].anchor_error_ns / 1e3;
  }
  model->clock_aligned = true;
  model->clock_method = method;
  return true;
}

/* No collective's end is known. The host's calls are asynchronous and say nothing about clocks. */
static void align_without_ends(struct aligner *aligner) {
  struct model *model = aligner->model;
  if (!use_host_clock(aligner, "same host clock, not checked: no collective has a known end"))
    model->clock_method = linked_by_calls(model, &aligner->scratch)
                              ? "refused: no collective has a known end (no GPU times), and each "
                                "host has its own clock"
                              : "refused: no collective joins all ranks";
  follow_realtime(aligner, 0);
}

/* The first rank of the largest set of ranks that chains together. */
static u32 choose_root(struct aligner *aligner) {
  u32 best = 0, most = 0;
  bool *seen = arena_alloc(&aligner->scratch, aligner->model->n_ranks);
  for (u32 r = 0; r < aligner->model->n_ranks && seen; r++) {
    if (seen[r])
      continue;
    u32 placed = place_ranks_from(aligner, r);
    for (u32 i = 0; i < aligner->model->n_ranks; i++)
      seen[i] |= aligner->placed[i];
    if (placed > most) {
      most = placed;
      best = r;
    }
    if (placed * 2 >= aligner->model->n_ranks)
      break;
  }
  return best;
}

static void align_by_ends(struct aligner *aligner) {
  struct model *model = aligner->model;
  u32 root = choose_root(aligner);
  u32 placed = place_ranks_from(aligner, root);
  double transfer_us = samples_transfer_us(&aligner->samples);
  u32 shared = share_host_clocks(model, aligner->facts, &aligner->samples, aligner->placed, root,
                                 aligner->clocks);
  if (placed < model->n_ranks) {
    /* the ends that exist must not contradict the host's clock */
    if (shared < model->n_ranks ||
        !use_host_clock(aligner, "same host clock; not confirmed for all ranks by collective ends"))
      model->clock_method = describe_unplaced(aligner, root);
  } else {
    const char *problem = describe_bad_residual(aligner, transfer_us);
    model->clock_aligned = problem == NULL;
    model->clock_method =
        problem                    ? problem
        : shared == model->n_ranks ? "same host clock, confirmed by collective ends"
        : aligner->by_messages     ? "collective ends, and messages in both directions"
        : shared > 0               ? "collective ends, and host clocks confirmed by them"
                                   : "collective ends";
  }
  follow_realtime(aligner, root);
}

int align_clocks(struct model *model, const struct clock_facts *facts, struct rank_clock *clocks,
                 struct arena *arena) {
  struct aligner aligner = {.model = model, .facts = facts, .clocks = clocks, .arena = arena};
  u32 n = model->n_ranks;
  int result = samples_collect(&aligner.samples, model, &aligner.scratch);
  aligner.placed = arena_alloc(&aligner.scratch, n);
  aligner.used = arena_alloc(&aligner.scratch, aligner.samples.n + 1);
  aligner.is_new = arena_alloc(&aligner.scratch, n);
  aligner.values = arena_array(&aligner.scratch, n, sizeof(i64));
  if (result < 0 || !aligner.placed || !aligner.is_new || !aligner.used || !aligner.values) {
    arena_release(&aligner.scratch);
    return -ENOMEM;
  }
  model->clock_aligned = false;
  if (n == 1) {
    model->clock_aligned = true;
    model->clock_method = "one rank";
    aligner.placed[0] = true;
    clocks[0] = (struct rank_clock){.pivot = facts[0].begin};
  } else if (aligner.samples.n == 0) {
    align_without_ends(&aligner);
  } else {
    align_by_ends(&aligner);
  }
  report_fits(&aligner);
  arena_release(&aligner.scratch);
  return model->clock_method ? 0 : -ENOMEM;
}
