/* SPDX-License-Identifier: MIT
 *
 * Who comes last, but keeps nobody waiting. A rank behind a slow link comes last for what it waits
 * for itself; and where two loaders are equally slow, one may always come last by little. The
 * replay tells: if such a rank were as fast as its peers, the step would take as long. It is then
 * no straggler. Of ranks that are slow together each is also judged without the others, since the
 * step is as long as the slowest leaves it.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/path/path_graph.h"
#include "analyses/path/path_replay.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"

enum {
  MOST_GROUPS = 8, /* of stragglers, which are judged; of more all stay */
  TRIALS = 3       /* of each */
};

bool straggler_is_sampled(const struct analysis *a, u32 rank) {
  const struct rank_result *of = &a->results->ranks[rank];
  bool sampled = of->n_late == 0;
  for (u32 s = 0; a->graph && s < a->graph->n_samples; s++) {
    double first = a->graph->samples[s].first + a->model->steps.first;
    double last = first + a->graph->samples[s].n - 1;
    for (u32 i = 0; i < of->n_late; i++)
      sampled |= of->late_from[i] <= last && first <= of->late_to[i];
  }
  return sampled;
}

u32 straggler_group(const struct analysis *a, u32 rank, bool *group) {
  const struct model *model = a->model;
  bool others = false;
  u32 n = 0;
  for (u32 i = 0; i < model->n_ranks; i++)
    others |= !model_same_host(model, rank, i);
  for (u32 i = 0; i < model->n_ranks; i++)
    n += group[i] =
        i == rank || (others && a->results->ranks[i].straggler && model_same_host(model, rank, i));
  return n;
}

struct trial {
  struct analysis *a;
  u32 n;
  bool *group[MOST_GROUPS], *all;
  u32 worst[MOST_GROUPS]; /* of each group, the rank for which its peers wait longest */
  struct cure_change changes[MOST_GROUPS * TRIALS];
  struct cure cures[MOST_GROUPS * TRIALS];
  u32 n_cures;
};

static bool in_group(const struct trial *t, u32 rank) {
  for (u32 i = 0; i < t->n; i++)
    if (t->group[i][rank])
      return true;
  return false;
}

static void list_groups(struct trial *t) {
  const struct results *r = t->a->results;
  size_t n_ranks = size_sum(r->n_ranks, 1);
  t->all = arena_array(t->a->arena, n_ranks, sizeof(bool));
  while (t->n < MOST_GROUPS) {
    u32 worst = INDEX_NONE;
    for (u32 i = 0; i < r->n_ranks; i++)
      if (r->ranks[i].straggler && !in_group(t, i) &&
          (worst == INDEX_NONE || r->ranks[i].imposed_wait_ms > r->ranks[worst].imposed_wait_ms))
        worst = i;
    if (worst == INDEX_NONE)
      return;
    t->group[t->n] = arena_array(t->a->arena, n_ranks, sizeof(bool));
    straggler_group(t->a, worst, t->group[t->n]);
    t->worst[t->n++] = worst;
  }
}

/* Without launches the replay cannot tell what a GPU and its host wait for. */
static bool is_tied(const struct analysis *a, u32 rank) {
  return !a->ranks[rank].on_gpu || a->model->ranks[rank].launches;
}

static bool has_slow_input(const struct trial *t, u32 i) {
  return t->a->results->ranks[t->worst[i]].reason == STRAGGLER_SLOW_INPUT;
}

/* Peers that a busy host makes as slow in other work do not count for a rank: what it does slowly,
 * it does. */
static void add_trial(struct trial *t, u32 i, const bool *ranks) {
  struct cure_change *change = &t->changes[t->n_cures];
  *change = (struct cure_change){.kind = CHANGE_RANKS, .of = !has_slow_input(t, i), .ranks = ranks};
  t->cures[t->n_cures++] = (struct cure){change, 1};
}

/* A group is tried as it is; and, since other groups may keep the step as long, all with and
 * without it. */
static void add_trials(struct trial *t, u32 i) {
  u32 n_ranks = t->a->model->n_ranks;
  add_trial(t, i, t->group[i]);
  if (t->n == 1)
    return;
  bool *others = arena_array(t->a->arena, size_sum(n_ranks, 1), sizeof(bool));
  for (u32 rank = 0; rank < n_ranks; rank++)
    others[rank] = t->all[rank] && !t->group[i][rank];
  add_trial(t, i, t->all);
  add_trial(t, i, others);
}

/* Saves less than the replay can tell. Of slow input half of the wait must go: a moment later the
 * peers' own may be no sooner. What a rank saves that is late in some steps only scatters by that,
 * and is no less for it. */
static bool is_refuted(const struct trial *t, u32 i, const struct saving *trials) {
  const struct results *r = t->a->results;
  const struct rank_result *of = &r->ranks[t->worst[i]];
  struct saving best = trials[0];
  double more_ms = t->n == 1 ? 0 : trials[1].ms - trials[2].ms;
  if (more_ms > best.ms)
    best = (struct saving){.ms = more_ms, .error_ms = trials[1].error_ms};
  double least_ms = has_slow_input(t, i)
                        ? fmax(LATE_LEAST * r->step_mean_ms, of->imposed_wait_ms / 2)
                        : fmax(REPLAY_TOLERANCE * r->step_mean_ms, of->n_late ? 0 : best.error_ms);
  return best.ms < least_ms;
}

static void try_groups(struct trial *t) {
  struct results *r = t->a->results;
  struct saving savings[MOST_GROUPS * TRIALS];
  u32 first[MOST_GROUPS];
  for (u32 i = 0; i < t->n; i++)
    for (u32 rank = 0; rank < r->n_ranks; rank++)
      t->all[rank] |= t->group[i][rank];
  for (u32 i = 0; i < t->n; i++) {
    bool tried = straggler_is_sampled(t->a, t->worst[i]) && is_tied(t->a, t->worst[i]);
    first[i] = tried ? t->n_cures : INDEX_NONE;
    if (tried)
      add_trials(t, i);
  }
  replay_savings(t->a, t->cures, t->n_cures, false, savings);
  for (u32 i = 0; i < t->n; i++) {
    bool refuted = first[i] != INDEX_NONE && is_refuted(t, i, &savings[first[i]]);
    for (u32 rank = 0; rank < r->n_ranks && refuted; rank++)
      if (t->group[i][rank]) {
        r->ranks[rank].straggler = false;
        r->ranks[rank].refuted = true;
        r->ranks[rank].n_late = 0;
        r->ranks[rank].late_at_times = false;
        r->ranks[rank].late_every = NAN;
      }
  }
}

static void say_why_not(struct rank_result *rank) {
  if (rank->straggler || !(rank->p_value < STRAGGLER_SIGNIFICANCE))
    return;
  rank->no_straggler = rank->refuted ? "if it were as fast as its peers, no step would be shorter"
                       : rank->slowest_fraction <= STRAGGLER_MAJORITY
                           ? "not in most steps"
                           : "the wait of its peers is too short to matter";
}

void refuted_stragglers_analyse(struct analysis *a) {
  struct trial t = {.a = a};
  if (a->results->path_steps_used && !what_if_unreliable(a)) {
    list_groups(&t);
    try_groups(&t);
  }
  for (u32 i = 0; i < a->results->n_ranks; i++)
    say_why_not(&a->results->ranks[i]);
}
