/* SPDX-License-Identifier: MIT
 *
 * Whether a straggler is one, and what it costs: both by the same replay. A rank behind a slow link
 * comes last for what it waits for itself; and where two loaders are equally slow, one may always
 * come last by little. If such a rank were as fast as its peers, the step would take as long: it is
 * then no straggler. Of ranks that are slow together each is also judged by what it adds to the
 * others, since the step is as long as the slowest leaves it.
 */
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/path/path_graph.h"
#include "analyses/path/path_replay.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/rank_list.h"

enum {
  MOST_GROUPS = 8, /* the last one has all others */
  TRIALS = 3       /* of each */
};

/* Whether any step in which the rank is late is in a sample. */
static bool is_sampled(const struct analysis *a, u32 rank) {
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

bool replay_knows_waits(const struct analysis *a, u32 rank) {
  return !a->ranks[rank].on_gpu || a->model->ranks[rank].launches;
}

static bool in_stage(const struct pipeline_stage *stage, u32 global) {
  return ranks_have(stage->ranks, stage->n_ranks, global);
}

static bool same_stage(const struct results *r, u32 one, u32 other) {
  return ANY(r->pipeline_stage, r->n_pipeline_stage, stage,
             in_stage(stage, r->ranks[one].rank) && in_stage(stage, r->ranks[other].rank));
}

/* Which stragglers are in a group with the worst of them. */
enum grouping { WITH_ITS_HOST, WITH_ALL_ALIKE, WITH_ALL };

/* Late for the same reason, in the same steps as far as that is known, and by a like time. */
static bool are_alike(const struct rank_result *one, const struct rank_result *other) {
  double less = fmin(one->late_a_step_ms, other->late_a_step_ms);
  return one->reason == other->reason && (one->n_late > 0) == (other->n_late > 0) &&
         (one->late_every == other->late_every ||
          (isnan(one->late_every) && isnan(other->late_every))) &&
         2 * less >= fmax(one->late_a_step_ms, other->late_a_step_ms);
}

/* The straggler and those of its stage of a pipeline; if the job has other hosts, those of its own.
 * Those that are in a group already are in no other. */
static void fill_group(const struct analysis *a, u32 worst, const bool *listed,
                       enum grouping grouping, struct straggler_group *group) {
  const struct model *model = a->model;
  const struct rank_result *ranks = a->results->ranks;
  *group = (struct straggler_group){.ranks = arena_array(a->arena, model->n_ranks, sizeof(bool)),
                                    .worst = worst};
  for (u32 i = 0; i < model->n_ranks; i++) {
    if (listed[i] || !ranks[i].straggler ||
        (i != worst && grouping != WITH_ALL &&
         !(grouping == WITH_ALL_ALIKE && are_alike(&ranks[worst], &ranks[i])) &&
         !(model->n_hosts > 1 && model_same_host(model, worst, i)) &&
         !same_stage(a->results, worst, i)))
      continue;
    group->first = group->n++ ? group->first : i;
    group->ranks[i] = true;
  }
}

/* Where stragglers are on many hosts, those that are alike are one group. False if they are on too
 * many for the other way. */
static bool list_groups(struct analysis *a, bool alike) {
  struct results *r = a->results;
  bool *listed = arena_array(a->arena, r->n_ranks, sizeof(bool));
  u32 n = NUMBER_OF(r->ranks, r->n_ranks, one, one->straggler);
  r->n_straggler_groups = 0;
  while (n) {
    const struct rank_result *worst = LARGEST(
        r->ranks, r->n_ranks, one, one->straggler && !listed[one - r->ranks], one->imposed_wait_ms);
    if (!alike && r->n_straggler_groups == MOST_GROUPS)
      return false;
    struct straggler_group *group = &r->straggler_groups[r->n_straggler_groups++];
    fill_group(a, (u32)(worst - r->ranks), listed,
               !alike                                 ? WITH_ITS_HOST
               : r->n_straggler_groups == MOST_GROUPS ? WITH_ALL
                                                      : WITH_ALL_ALIKE,
               group);
    for (u32 i = 0; i < r->n_ranks; i++)
      listed[i] |= group->ranks[i];
    n -= group->n;
  }
  return true;
}

struct judge {
  struct analysis *a;
  bool *all;
  struct cure cures[MOST_GROUPS * TRIALS];
};

static struct cure cure_of(const struct judge *j, const bool *ranks) {
  return cure_by(j->a, (struct cure_change){.kind = CHANGE_RANKS, .ranks = ranks});
}

/* A group is tried as it is; and, since other groups may keep the step as long, all with and
 * without it. */
static void add_trials(struct judge *j, const struct straggler_group *group, struct cure *trials) {
  u32 n_ranks = j->a->model->n_ranks;
  bool *others = arena_array(j->a->arena, n_ranks, sizeof(bool)), any = false;
  for (u32 rank = 0; rank < n_ranks; rank++)
    any |= others[rank] = j->all[rank] && !group->ranks[rank];
  trials[0] = cure_of(j, group->ranks);
  trials[1] = cure_of(j, j->all);
  trials[2] = any ? cure_of(j, others) : (struct cure){0};
}

static struct saving beyond(struct saving all, struct saving others) {
  struct saving more = {.ms = fmax(0, all.ms - others.ms), .error_ms = all.error_ms};
  more.low_ms = fmin(more.ms, fmax(0, all.low_ms - others.low_ms));
  more.high_ms = fmax(more.ms, all.high_ms - others.high_ms);
  more.hidden_ms = NAN;
  return more;
}

/* What a rank saves that is late in some steps only scatters by that, and is no less for it. */
static void set_saving(const struct judge *j, struct straggler_group *group,
                       const struct cure *trials, const struct saving *savings) {
  struct saving added = beyond(savings[1], savings[2]);
  group->with_others = savings[0].ms < added.ms / 2;
  group->cure = trials[group->with_others];
  group->saving = group->with_others ? added : savings[0];
  if (j->a->results->ranks[group->worst].n_late)
    group->saving.error_ms = 0;
}

/* Of its ranks: the chance that explains one of them least. */
static double chance_of_group(const struct results *r, const struct straggler_group *group) {
  double least = 1;
  for (u32 i = 0; i < r->n_ranks; i++)
    least = group->ranks[i] ? fmin(least, r->ranks[i].p_value) : least;
  return least;
}

/* Saves less than the replay can tell; or little, and chance does that in one report of a thousand.
 * Of slow input half of the wait must go: a moment later the peers' own may be no sooner. */
static bool is_refuted(const struct judge *j, const struct straggler_group *group) {
  const struct results *r = j->a->results;
  const struct rank_result *worst = &r->ranks[group->worst];
  bool half =
      worst->reason == STRAGGLER_SLOW_INPUT && group->saving.ms < worst->imposed_wait_ms / 2;
  bool doubtful = group->saving.ms < STRAGGLER_SMALL * r->step_mean_ms &&
                  chance_of_group(r, group) >= STRAGGLER_SMALL_SIGNIFICANCE;
  bool pays = saving_pays(&group->saving, r->step_mean_ms);
  return group->cure.n && (half || doubtful || !pays);
}

/* Whether the critical path has time on these ranks for which no reason is recorded. A replay keeps
 * it as it was, so that it does not tell what they would save. */
static bool lack_reasons(const struct analysis *a, const bool *ranks) {
  double unknown_ms = 0;
  FOR_EACH(a->graph->outcomes, a->graph->n_samples, out)
    FOR_EACH(out->segments.at, out->segments.n, segment)
      unknown_ms += segment->category == PATH_UNKNOWN && ranks[segment->rank]
                        ? ns_to_ms(segment->end - segment->start)
                        : 0;
  return unknown_ms >= WORTH_MENTIONING * a->results->path_length_ms * a->results->path_steps_used;
}

static void refute(const struct analysis *a, const struct straggler_group *group) {
  struct results *r = a->results;
  bool waits = lack_reasons(a, group->ranks);
  for (u32 i = 0; i < r->n_ranks; i++) {
    struct rank_result *rank = &r->ranks[i];
    if (!group->ranks[i])
      continue;
    rank->straggler = rank->late_at_times = false;
    rank->refuted = true;
    rank->no_straggler = waits ? "what it waits for itself is not recorded"
                               : "if it were as fast as its peers, steps would hardly be shorter";
    rank->n_late = 0;
    rank->late_every = rank->longer_compute_steps = NAN;
  }
}

/* False if a group was refuted: then the others must be judged without it. */
static bool judge_groups(struct judge *j) {
  struct results *r = j->a->results;
  struct saving savings[MOST_GROUPS * TRIALS];
  u32 kept = 0, n = r->n_straggler_groups;
  j->all = arena_array(j->a->arena, r->n_ranks, sizeof(bool));
  FOR_EACH(r->straggler_groups, n, straggler_group)
    for (u32 rank = 0; rank < r->n_ranks; rank++)
      j->all[rank] |= straggler_group->ranks[rank];
  for (u32 i = 0; i < n; i++)
    add_trials(j, &r->straggler_groups[i], &j->cures[i * TRIALS]);
  replay_savings(j->a, j->cures, n * TRIALS, false, savings);
  for (u32 i = 0; i < n; i++) {
    struct straggler_group *group = &r->straggler_groups[i];
    if (is_sampled(j->a, group->worst) && replay_knows_waits(j->a, group->worst) &&
        !isnan(savings[i * TRIALS].ms))
      set_saving(j, group, &j->cures[i * TRIALS], &savings[i * TRIALS]);
    if (is_refuted(j, group))
      refute(j->a, group);
    else
      r->straggler_groups[kept++] = *group;
  }
  r->n_straggler_groups = kept;
  return kept == n;
}

static bool belong_together(const struct analysis *a, const struct straggler_group *one,
                            const struct straggler_group *other) {
  const struct rank_result *ranks = a->results->ranks;
  bool hosts_apart = ranks[one->worst].host && !model_same_host(a->model, one->worst, other->worst);
  return one->with_others && other->with_others && !hosts_apart &&
         are_alike(&ranks[one->worst], &ranks[other->worst]);
}

/* What was asked keeps its ranks: those of both are new. */
static void join_groups(struct analysis *a, struct straggler_group *one,
                        const struct straggler_group *other) {
  bool *ranks = arena_array(a->arena, a->model->n_ranks, sizeof(bool));
  for (u32 rank = 0; rank < a->model->n_ranks; rank++)
    ranks[rank] = one->ranks[rank] || other->ranks[rank];
  one->ranks = ranks;
  one->n += other->n;
  one->first = MIN(other->first, one->first);
}

/* Groups that are late alike, not on hosts of their own as far as is known, and of which each keeps
 * the step as long without the others, are one.
 * Returns whether there are any. */
static bool join_alike(struct analysis *a) {
  struct results *r = a->results;
  u32 n = r->n_straggler_groups;
  for (u32 i = 0; i < r->n_straggler_groups; i++) {
    struct straggler_group *one = &r->straggler_groups[i], *other = one + 1;
    while (other < &r->straggler_groups[r->n_straggler_groups]) {
      if (!belong_together(a, one, other)) {
        other++;
        continue;
      }
      join_groups(a, one, other);
      r->n_straggler_groups--;
      memmove(other, other + 1,
              (size_t)(&r->straggler_groups[r->n_straggler_groups] - other) * sizeof(*other));
    }
  }
  return r->n_straggler_groups < n;
}

static void say_why_not(struct rank_result *rank) {
  if (rank->straggler || rank->refuted || !(rank->p_value < STRAGGLER_SIGNIFICANCE))
    return;
  rank->no_straggler = rank->slowest_fraction <= STRAGGLER_MAJORITY
                           ? "not in most steps"
                           : "the wait of its peers is too short to matter";
}

void judged_stragglers_analyse(struct analysis *a) {
  struct judge j = {.a = a};
  bool judged = a->results->path_steps_used && !what_if_unreliable(a);
  a->results->straggler_groups =
      arena_array(a->arena, MOST_GROUPS, sizeof(*a->results->straggler_groups));
  if (!list_groups(a, false))
    list_groups(a, true);
  while (judged && a->results->n_straggler_groups && !judge_groups(&j))
    ;
  if (judged && join_alike(a))
    while (a->results->n_straggler_groups && !judge_groups(&j))
      ;
  if (judged && !a->results->n_straggler_groups && name_straggler_of_path(a)) {
    list_groups(a, false);
    judge_groups(&j);
  }
  FOR_EACH_CHANGED(a->results->ranks, a->results->n_ranks, rank)
    say_why_not(rank);
}
