/* SPDX-License-Identifier: MIT
 *
 * What one rank alone does, by line: in every so many steps, in a stretch of steps, or in all.
 * Where ranks come late for other reasons too, as on a busy machine, their arrivals do not show it;
 * samples do: chance does not put one rank so often at a line at which its peers are not.
 *
 * Ranks that have different parts, such as stages of a pipeline, are at different lines in most of
 * their steps anyway: of those only what comes at a fixed distance is told. Nor is a line told
 * where the thread mostly has no core: that may be short on all ranks.
 */
#include <math.h>

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"
#include "base/sorting.h"

static const double mostly_without_core = 0.9, nearly_as_long = 0.5;

/* A stay of so many samples is seen on every rank that makes it. */
static const double samples_of_seen = 5;

/* A sample stands for the time before it, so the beginning of a stay may count in the step before.
 */
static const double share_of_stay = 0.3;

/* Time at a line, in steps of training. */
struct stay {
  double ns;
  u32 seen, n, *slices; /* steps with a sample; slices with a whole stay, if they are wanted */
};

static bool is_training_slice(const struct part_time *time) {
  return time->slice < TRAINING_SLICES && time->steps > 0;
}

static struct stay stay_at(const struct sampled_part *part, struct arena *scratch) {
  struct stay stay = {0};
  u32 slices = NUMBER_OF(part->times, part->n_times, time, is_training_slice(time));
  FOR_EACH(part->times, part->n_times, time) {
    stay.ns += is_training_slice(time) ? (double)time->ns : 0;
    stay.seen += is_training_slice(time) ? time->steps : 0;
  }
  if (!scratch || !slices)
    return stay;
  stay.slices = arena_array(scratch, slices, sizeof(u32));
  stay.n = LIST_WHERE(stay.slices, 0, part->n_times, i,
                      is_training_slice(&part->times[i]) &&
                          (double)part->times[i].ns >= share_of_stay * stay.ns / slices,
                      part->times[i].slice);
  return stay;
}

/* All ranks at a line. */
struct everyone {
  u64 key;
  double ns, longest, second; /* of all, and of the two that are there longest */
  u32 seen;                   /* steps, of all */
};

struct everywhere {
  struct everyone *at; /* by key */
  u32 n, ranks, tests; /* ranks that have samples; lines of ranks */
};

ORDER_BY(by_key, struct everyone, UP(key))

static void add_rank(struct everyone *all, const struct everyone *one) {
  double shorter = fmin(all->longest, one->longest);
  all->ns += one->ns;
  all->longest = fmax(all->longest, one->longest);
  all->second = fmax(all->second, shorter);
  all->seen += one->seen;
}

/* Each line once: a sum for each pair of ranks and lines would take minutes where ranks are many.
 */
static struct everywhere add_up(const struct analysis *a, struct arena *arena) {
  struct everywhere sums = {0};
  size_t most = 0;
  FOR_EACH(a->line_sums, a->model->n_ranks, item) {
    most += item->parts.n;
    sums.ranks += item->parts.n > 0;
  }
  sums.at = arena_array(arena, most, sizeof(*sums.at));
  FOR_EACH(a->line_sums, a->model->n_ranks, line_sum)
    FOR_EACH(line_sum->parts.at, line_sum->parts.n, part) {
      struct stay stay = part->kind == OWN_LINE ? stay_at(part, NULL) : (struct stay){0};
      if (stay.seen)
        sums.at[sums.tests++] = (struct everyone){
            .key = part->key, .ns = stay.ns, .longest = stay.ns, .seen = stay.seen};
    }
  sums.n = SORT_AND_JOIN(sums.at, sums.tests, by_key, all, one, add_rank(all, one));
  return sums;
}

/* Whether the rank is there alone: its peers are hardly there, and none of them is there nearly as
 * long, as the first rank of each host might be. Sets by what chance any one is. */
static bool is_alone(const struct everywhere *sums, const struct sampled_part *part,
                     const struct stay *own, struct lone_line *found) {
  u32 at = FIRST_NOT(0, sums->n, i, sums->at[i].key < part->key);
  const struct everyone *all = &sums->at[at];
  if (sums->ranks < 2 || (all->ns - own->ns) / (sums->ranks - 1) >= LINE_OF_ONE * own->ns ||
      all->second >= nearly_as_long * own->ns)
    return false;
  found->seen = own->seen;
  found->peers_seen = all->seen - own->seen;
  found->chance = chance_of_count(own->seen, all->seen, 1.0 / sums->ranks, 0) * sums->tests;
  return true;
}

/* Whether all ranks have the same part in the job, as far as their communicators show it. */
static bool ranks_are_alike(const struct analysis *a) {
  return !(a->results->pipeline_stages > 1) &&
         ALL(a->model->comms, a->model->n_comms, one,
             one->size <= 1 || one->size == a->model->n_ranks);
}

/* In which steps it is, in words; sets how many. NULL if in none of these ways. Stays that are long
 * enough to be seen come neither on one rank nor at a fixed distance by chance: the few checkpoints
 * of one of two ranks are no chance, though each of them alone is as likely on the other. */
static const char *find_steps(struct analysis *a, const struct sampled_part *part,
                              const struct stay *own, double sample_ns, struct arena *scratch,
                              double *steps, double *chance) {
  bool single = a->n_steps <= TRAINING_SLICES;
  struct recurrence of_period = {.chance = 1};
  u32 period = single ? period_of_steps(own->slices, own->n, a->n_steps, scratch, &of_period) : 0;
  *chance *= own->ns >= samples_of_seen * sample_ns * own->n ? of_period.chance : 1;
  double turns = (double)a->n_training / MAX(period, 1);
  u32 first = own->slices[0], last = own->slices[own->n - 1];
  *steps = fmax(period ? own->n : own->seen, turns);
  if (period)
    return describe_period(a->arena, period);
  if (!ranks_are_alike(a) || !(no_core_share(part) < mostly_without_core))
    return NULL;
  if (own->seen >= STRETCH_INSIDE * a->n_training)
    return say(a, "%u of %u steps", own->seen, a->n_training);
  *steps = last - first + 1;
  if (!single || *steps < STRETCH_MIN_STEPS || own->seen < STRETCH_INSIDE * *steps)
    return NULL;
  u32 first_step = a->model->steps.first + a->first_step;
  return say(a, "steps %u to %u", first_step + first, first_step + last);
}

static void find_of_rank(struct analysis *a, u32 rank, const struct everywhere *sums,
                         struct lone_line *found) {
  const struct rank_parts *parts = &a->line_sums[rank].parts;
  const struct sampled_part *best = NULL;
  SCOPED_ARENA struct arena scratch = {0};
  double most = 0, step_ns = a->results->step_median_ms * 1e6;
  FOR_EACH(parts->at, parts->n, part) {
    struct lone_line now = {0};
    struct stay own = part->kind == OWN_LINE ? stay_at(part, &scratch) : (struct stay){0};
    if (!own.n || own.ns <= most || own.ns < STRETCH_OF_RUN * step_ns * a->n_training ||
        !is_alone(sums, part, &own, &now))
      continue;
    double steps;
    now.when = find_steps(a, part, &own, parts->sample_ns, &scratch, &steps, &now.chance);
    if (!now.when || now.chance >= STRAGGLER_SIGNIFICANCE ||
        own.ns / steps < WORTH_MENTIONING * step_ns)
      continue;
    now.ms = ns_to_ms(own.ns / steps);
    now.run_ns = own.ns;
    most = own.ns;
    best = part;
    *found = now;
  }
  if (best)
    found->line = line_of_part(a, best);
}

const struct lone_line *lone_lines(struct analysis *a) {
  SCOPED_ARENA struct arena scratch = {0};
  if (a->lone_lines)
    return a->lone_lines;
  a->lone_lines = arena_array(a->arena, a->model->n_ranks, sizeof(*a->lone_lines));
  if (!a->whole_run) {
    struct everywhere sums = add_up(a, &scratch);
    for (u32 i = 0; i < a->model->n_ranks; i++)
      find_of_rank(a, i, &sums, &a->lone_lines[i]);
  }
  return a->lone_lines;
}
