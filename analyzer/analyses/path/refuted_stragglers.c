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

enum { MOST_GROUPS = 8 }; /* of stragglers, which are judged; of more all stay */

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

static struct saving saving_of_group(const struct trial *t, const bool *group, bool anywhere) {
  struct saving saving;
  const struct cure_change change = {.kind = CHANGE_RANKS, .of = anywhere, .ranks = group};
  replay_savings(t->a, &(struct cure){&change, 1}, 1, false, &saving);
  return saving;
}

/* What the step saves without a group, as it is or where no other keeps it waiting; the better. */
static struct saving best_saving(struct trial *t, u32 i, bool anywhere) {
  u32 n_ranks = t->a->model->n_ranks;
  struct saving alone = saving_of_group(t, t->group[i], anywhere);
  if (t->n == 1)
    return alone;
  bool *others = arena_array(t->a->arena, size_sum(n_ranks, 1), sizeof(bool));
  for (u32 rank = 0; rank < n_ranks; rank++)
    others[rank] = t->all[rank] && !t->group[i][rank];
  struct saving both = saving_of_group(t, t->all, anywhere);
  double more = both.ms - saving_of_group(t, others, anywhere).ms;
  return more > alone.ms ? (struct saving){.ms = more, .error_ms = both.error_ms} : alone;
}

/* Without launches the replay cannot tell what a GPU and its host wait for. */
static bool is_tied(const struct analysis *a, u32 rank) {
  return !a->ranks[rank].on_gpu || a->model->ranks[rank].launches;
}

/* Saves less than the replay can tell. Peers that a busy host makes as slow in other work do not
 * count for that: what a rank does slowly, it does. Of slow input half of the wait must go: a
 * moment later the peers' own may be no sooner. What a rank saves that is late in some steps only
 * scatters by that, and is no less for it. */
static bool is_refuted(struct trial *t, u32 i) {
  const struct results *r = t->a->results;
  const struct rank_result *of = &r->ranks[t->worst[i]];
  bool input = of->reason == STRAGGLER_SLOW_INPUT;
  if (!straggler_is_sampled(t->a, t->worst[i]) || !is_tied(t->a, t->worst[i]))
    return false;
  struct saving saving = best_saving(t, i, !input);
  double least_ms =
      input ? fmax(LATE_LEAST * r->step_mean_ms, of->imposed_wait_ms / 2)
            : fmax(REPLAY_TOLERANCE * r->step_mean_ms, of->n_late ? 0 : saving.error_ms);
  return saving.ms < least_ms;
}

static void try_groups(struct trial *t) {
  struct results *r = t->a->results;
  bool refuted[MOST_GROUPS];
  for (u32 i = 0; i < t->n; i++)
    for (u32 rank = 0; rank < r->n_ranks; rank++)
      t->all[rank] |= t->group[i][rank];
  for (u32 i = 0; i < t->n; i++)
    refuted[i] = is_refuted(t, i);
  for (u32 i = 0; i < t->n; i++)
    for (u32 rank = 0; rank < r->n_ranks && refuted[i]; rank++)
      if (t->group[i][rank]) {
        r->ranks[rank].straggler = false;
        r->ranks[rank].refuted = true;
        r->ranks[rank].n_late = 0;
        r->ranks[rank].late_at_times = false;
        r->ranks[rank].late_every = NAN;
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
