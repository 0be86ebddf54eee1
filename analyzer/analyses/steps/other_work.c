/* SPDX-License-Identifier: MIT
 *
 * Steps that contain something other than training. They are left out of figures about training, so
 * there must be no doubt. Either the records show it: forward passes without backward, or calls
 * that other steps do not have, at a fixed distance. Such a step belongs to its kind however long
 * it took. Or only the time shows it: steps that are long, at a fixed distance, and what they have
 * more of is neither backward nor optimizer nor input.
 */
#include "analyses/steps/other_work.h"

#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "analyses/steps/step_kernels.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/statistics.h"

#define MOST_KINDS 16u
#define STEPS_NAMED 3u

bool analysis_is_training(const struct analysis *a, u32 step) {
  return !a->other_work_of || !a->other_work_of[step];
}

const char *describe_steps(struct arena *arena, const double *step, u32 n) {
  const char *text = n == 1 ? "step" : "steps";
  u32 shown = n <= STEPS_NAMED + 1 ? n : STEPS_NAMED;
  for (u32 i = 0; i < shown; i++)
    text = arena_printf(arena, "%s%s %.0f", text, i ? "," : "", step[i]);
  return shown < n ? arena_printf(arena, "%s and %u more", text, n - shown) : text;
}

const char *describe_content(u8 content) {
  static const char *const words[CONTENTS] = {
      [CONTENT_UNKNOWN] = "in what is not known",
      [CONTENT_TRAINING] = "in backward, optimizer or input",
      [CONTENT_FORWARD] = "forward only",
      [CONTENT_ONE_RANK] = "on one rank while the others wait",
      [CONTENT_ONE_HOST] = "on one host while the others wait",
      [CONTENT_OUTSIDE] = "outside forward, backward and optimizer",
      [CONTENT_CALLS] = "with collectives that other steps do not have",
      [CONTENT_MEETINGS] = "with copies to or from the GPU that other steps do not have"};
  return words[content];
}

static const char *describe_work(struct arena *arena, const struct other_work *work, u8 content) {
  if (content == CONTENT_ONE_RANK && work->rank != INDEX_NONE)
    return arena_printf(arena, "on rank %u alone while the others wait", work->rank);
  if (content == CONTENT_ONE_HOST && work->host)
    return arena_printf(arena, "on %s alone while the other hosts wait", work->host);
  if (content == CONTENT_CALLS && work->collective)
    return arena_printf(arena, "with %s that other steps do not have", work->collective);
  if (content == CONTENT_MEETINGS && work->copied_bytes >= CHECKPOINT_BYTES)
    return arena_printf(arena, "with %s copied from the GPU that other steps do not copy",
                        byte_size(work->copied_bytes).text);
  if (content == CONTENT_MEETINGS && work->meets & MEETING_COPY_IN)
    return "with copies to the GPU that other steps do not have";
  if (content == CONTENT_MEETINGS && work->meets)
    return "with a wait of the host for the GPU that other steps do not have";
  return describe_content(content);
}

static const char *work_name(struct arena *arena, const struct other_work *work) {
  const char *every =
      isnan(work->period) ? "" : arena_printf(arena, " every %.0f steps", work->period);
  if (!work->steps || !work->what)
    return NULL;
  return arena_printf(arena, "%s: something that takes %s%s, %s", work->steps,
                      duration_ms(work->ms).text, every, work->what);
}

/* One kind of other work, before it is described. */
struct kind {
  const u32 *steps; /* all that have it */
  u32 n, period;    /* period 0: none */
  const u32
      *own; /* indices into steps->at of those that have no other kind, or none that is known */
  u32 n_own;
  double ms, sum_ms;
  u8 content, op; /* op 0: no collective of its own */
  u8 meets;
  u64 copied;
  u32 rank; /* that does it alone, or whose host; INDEX_NONE */
};

/* Sets the content that most of the kind's own steps have, and the rank if it is always the same,
 * or of the same host. */
static void find_content(const struct model *model, const struct long_steps *steps,
                         struct kind *kind) {
  u32 times[CONTENTS] = {0};
  FOR_EACH(kind->own, kind->n_own, each)
    times[steps->at[*each].content] += steps->at[*each].times != TIMES_LEFT_OUT;
  kind->content = (u8)NUMBER_OF_LARGEST(0, CONTENTS, content, times[content]);
  kind->rank = INDEX_NONE;
  bool first = true, same = true;
  FOR_EACH(kind->own, kind->n_own, one) {
    const struct long_step *step = &steps->at[*one];
    if (step->content != kind->content)
      continue;
    same &= first || step->rank == kind->rank ||
            (kind->content == CONTENT_ONE_HOST && model_same_host(model, step->rank, kind->rank));
    kind->rank = step->rank;
    first = false;
  }
  kind->rank = same ? kind->rank : INDEX_NONE;
}

static void add_host(struct analysis *a, u32 rank, struct other_work *work) {
  const struct model *model = a->model;
  work->host = model->ranks[rank].host;
  work->of_host = arena_array(a->arena, model->n_ranks, sizeof(u32));
  work->n_of_host = LIST_WHERE(work->of_host, 0, model->n_ranks, i, model_same_host(model, rank, i),
                               model->ranks[i].rank);
}

/* All ranks do it: one may take longer than the others. */
static void add_slowest(struct analysis *a, const struct long_steps *steps, const struct kind *kind,
                        struct other_work *work) {
  struct slowest_in_work slowest;
  find_slowest_in_work(a->model, steps, kind->own, kind->n_own, &slowest);
  if (slowest.rank == INDEX_NONE)
    return;
  work->slowest = a->model->ranks[slowest.rank].rank;
  work->slowest_ms = slowest.ms;
  work->slowest_steps = slowest.steps;
  work->slowest_of = slowest.of;
}

static void add_work(struct analysis *a, struct long_steps *steps, const struct kind *kind) {
  struct results *r = a->results;
  struct other_work *work = &r->other_work[r->n_other_work++];
  *work = (struct other_work){.period = kind->period ? kind->period : (double)NAN,
                              .n_steps = kind->n,
                              .ms = kind->ms,
                              .sum_s = kind->sum_ms / 1e3,
                              .forward_only = kind->content == CONTENT_FORWARD,
                              .outside = kind->content == CONTENT_OUTSIDE,
                              .meets = kind->content == CONTENT_MEETINGS ? kind->meets : 0,
                              .copied_bytes = kind->meets ? (double)kind->copied : 0,
                              .rank = INDEX_NONE,
                              .slowest = INDEX_NONE,
                              .slowest_ms = NAN,
                              .kernels = NAN,
                              .usual_kernels = NAN};
  work->step = arena_array(a->arena, kind->n, sizeof(double));
  for (u32 i = 0; i < kind->n; i++) {
    work->step[i] = a->model->steps.first + kind->steps[i];
    if (!a->other_work_of[kind->steps[i]])
      a->other_work_of[kind->steps[i]] = (u8)r->n_other_work;
  }
  for (u32 i = 0, k = 0; i < steps->n; i++) {
    while (k < kind->n && kind->steps[k] < steps->at[i].step)
      k++;
    if (k < kind->n && kind->steps[k] == steps->at[i].step && !steps->at[i].group)
      steps->at[i].group = (u8)r->n_other_work;
  }
  if (kind->rank != INDEX_NONE && kind->content == CONTENT_ONE_HOST)
    add_host(a, kind->rank, work);
  else if (kind->rank != INDEX_NONE)
    work->rank = a->model->ranks[kind->rank].rank;
  else
    add_slowest(a, steps, kind, work);
  work->collective = kind->op ? op_name(kind->op) : NULL;
  work->what = describe_work(a->arena, work, kind->content);
  work->steps = describe_steps(a->arena, work->step, kind->n);
}

/* Kinds that the records show by what the steps contain. */
struct judging {
  struct analysis *a;
  struct long_steps *steps;
  const struct step_extras *extras;
  u64 open, accepted; /* bits of extras */
  double *values;     /* [n_steps] */
  u32 *own;           /* [n_steps] indices into steps->at */
  struct kind kinds[MOST_EXTRAS];
};

static u64 kinds_of(const struct judging *j, const struct long_step *step) {
  return j->extras->of_step[step->step];
}

static double time_of_kinds(const struct judging *j, u64 kinds) {
  double ms = 0;
  for (u32 i = 0; i < j->extras->n; i++)
    ms += kinds >> i & 1 ? j->kinds[i].ms : 0;
  return ms;
}

/* The steps of a kind that have none of the kinds in `others`. */
static u32 list_own(const struct judging *j, u32 extra, u64 others, u32 *own) {
  u64 this = 1ull << extra;
  return LIST_WHERE(own, 0, j->steps->n, i,
                    (kinds_of(j, &j->steps->at[i]) & (others | this)) == this, i);
}

/* What a step takes longer, less what its other known kinds take. */
static double excess_of(const struct judging *j, u32 extra, const struct long_step *step) {
  u64 others = kinds_of(j, step) & j->accepted & ~(1ull << extra);
  return step->excess_ms - time_of_kinds(j, others);
}

/* What one in ten usual steps takes longer than the typical one. */
static double tail_of_usual(const struct judging *j) {
  const struct long_steps *steps = j->steps;
  u32 n = LIST_WHERE(j->values, 0, steps->end - steps->first, i,
                     !isnan(steps->excess_ms[i]) && !j->extras->of_step[steps->first + i],
                     steps->excess_ms[i]);
  return quantile_of(j->values, n, 0.9);
}

/* Whether usual steps are hardly as long, or a rank is in these collectives alone for long. */
static bool stands_out(const struct judging *j, const struct step_extra *extra,
                       const struct kind *kind) {
  return kind->ms > tail_of_usual(j) || extra->ms >= OTHER_WORK_OF_STEP * j->steps->typical_ms;
}

/* A kind counts as other work if it takes a noticeable part of a step. Where only calls show it, it
 * must stand out; at no fixed distance, it must take as long as a step. */
static bool is_other_work(const struct judging *j, const struct step_extra *extra,
                          struct kind *kind) {
  double least = extra->period || extra->forward ? OTHER_WORK_OF_CONTENT : 1;
  if (!extra->forward && !stands_out(j, extra, kind))
    return false;
  find_content(j->a->model, j->steps, kind);
  if (extra->forward)
    kind->content = CONTENT_FORWARD;
  else if (extra->meets && !extra->op && kind->content != CONTENT_ONE_RANK &&
           kind->content != CONTENT_ONE_HOST) /* the host's phases do not show the GPU's time */
    kind->content = CONTENT_MEETINGS;
  else if (kind->content == CONTENT_UNKNOWN)
    kind->content = CONTENT_CALLS;
  return kind->n_own && kind->content != CONTENT_TRAINING &&
         kind->ms >= least * j->steps->typical_ms;
}

static bool judge_next(struct judging *j) {
  u32 n = 0, best = INDEX_NONE, most = 0;
  for (u64 others = j->open | j->accepted;; others = 0) {
    for (u32 i = 0; i < j->extras->n; i++) {
      n = j->open >> i & 1 ? list_own(j, i, others, j->own) : 0;
      best = n > most ? i : best;
      most = MAX(n, most);
    }
    if (best != INDEX_NONE || !others) {
      n = best == INDEX_NONE ? 0 : list_own(j, best, others, j->own);
      break;
    }
  }
  if (best == INDEX_NONE)
    return false;
  const struct step_extra *extra = &j->extras->at[best];
  struct kind *kind = &j->kinds[best];
  u32 *own = arena_array(j->a->arena, n, sizeof(*own));
  memcpy(own, j->own, n * sizeof(*own));
  for (u32 i = 0; i < n; i++)
    j->values[i] = excess_of(j, best, &j->steps->at[own[i]]);
  *kind = (struct kind){.own = own,
                        .n_own = n,
                        .ms = median_of(j->values, n),
                        SAME(extra, steps, n, period, op, meets, copied)};
  j->open &= ~(1ull << best);
  if (is_other_work(j, extra, kind))
    j->accepted |= 1ull << best;
  return true;
}

/* A step's extra time is divided among its kinds as these take time. */
static double sum_of(const struct judging *j, u32 extra) {
  double sum = 0;
  FOR_EACH(j->steps->at, j->steps->n, step) {
    u64 has = kinds_of(j, step) & j->accepted;
    if (has >> extra & 1)
      sum += step->excess_ms * j->kinds[extra].ms / time_of_kinds(j, has);
  }
  return fmax(sum, 0);
}

/* What remains of steps when their known kinds are taken away may be of another kind. */
static void take_away(const struct judging *j) {
  struct long_steps *steps = j->steps;
  FOR_EACH_CHANGED(steps->at, steps->n, step) {
    u64 has = kinds_of(j, step) & j->accepted;
    double around_ms = steps->around_ms[step->step - steps->first];
    double known = time_of_kinds(j, has) * around_ms / steps->typical_ms;
    if (!has)
      continue;
    step->has_known = true;
    step->excess_ms = steps->excess_ms[step->step - steps->first] -= known;
    step->is_long = step->excess_ms >= OTHER_WORK_OF_STEP * fmax(around_ms, known);
    step->group = step->is_long ? 0 : step->group;
  }
}

static void add_contained_work(struct analysis *a, struct arena *scratch, struct long_steps *steps,
                               const struct step_extras *extras) {
  struct judging *j = arena_alloc(scratch, sizeof(*j));
  *j = (struct judging){.a = a,
                        .steps = steps,
                        .extras = extras,
                        .open = (extras->n == MOST_EXTRAS ? ~0ull : (1ull << extras->n) - 1) &
                                ~extras->in_turn,
                        .values = arena_array(scratch, a->n_steps, sizeof(double)),
                        .own = arena_array(scratch, a->n_steps, sizeof(u32))};
  while (judge_next(j))
    ;
  for (u32 i = 0; i < extras->n && a->results->n_other_work < MOST_KINDS; i++)
    if (j->accepted >> i & 1) {
      j->kinds[i].sum_ms = sum_of(j, i);
      add_work(a, steps, &j->kinds[i]);
    }
  take_away(j);
}

/* The steps of a period that are long, or have half of what its long steps have more. */
static void list_recurring(const struct long_steps *steps, const struct recurrence *r, double ms,
                           u32 *members, u32 *n) {
  double least = fmin(ms / 2, OTHER_WORK_OF_STEP * steps->typical_ms);
  for (u32 step = r->first; step < steps->end; step += r->period)
    if (steps->excess_ms[step - steps->first] >= least)
      members[(*n)++] = step;
}

/* Whether a rank or a host works alone in most of its steps of such a length outside of the period
 * too: it is then late at times, in training. */
static bool is_of_one_at_times(const struct long_steps *steps, const struct kind *kind) {
  u32 all = NUMBER_OF(steps->at, steps->n, one,
                      one->is_long && !one->group && one->content == kind->content &&
                          one->excess_ms >= kind->ms / 2);
  return (kind->content == CONTENT_ONE_RANK || kind->content == CONTENT_ONE_HOST) &&
         kind->n_own < PERIOD_OF_ONE * all;
}

/* Kinds that only their time shows. */
static void add_recurring_work(struct analysis *a, struct arena *scratch,
                               struct long_steps *steps) {
  struct recurrence_wanted wanted = {OTHER_WORK_PERIOD, UINT32_MAX,
                                     1u << CONTENT_UNKNOWN | 1u << CONTENT_TRAINING,
                                     OTHER_WORK_SIGNIFICANCE};
  struct recurrence r;
  u32 *own = arena_array(scratch, a->n_steps, sizeof(u32));
  double *excess = arena_array(scratch, a->n_steps, sizeof(double));
  while (a->results->n_other_work < MOST_KINDS && other_find_recurrence(steps, &wanted, &r)) {
    struct kind kind = {.period = r.period, .own = own};
    u32 *members = arena_array(a->arena, a->n_steps, sizeof(u32));
    kind.n_own =
        LIST_WHERE(own, 0, steps->n, i,
                   recurrence_has(&r, steps->at[i].step) && steps->at[i].is_long &&
                       !steps->at[i].group && !(wanted.leave_out >> steps->at[i].content & 1),
                   i);
    kind.ms = median_of(excess, LIST_KNOWN(excess, 0, kind.n_own, i, steps->at[own[i]].excess_ms));
    list_recurring(steps, &r, kind.ms, members, &kind.n);
    kind.steps = members;
    for (u32 i = 0; i < kind.n; i++)
      kind.sum_ms += excess[i] = steps->excess_ms[members[i] - steps->first];
    kind.ms = median_of(excess, kind.n);
    find_content(a->model, steps, &kind);
    if (is_of_one_at_times(steps, &kind))
      wanted.leave_out |= 1u << kind.content;
    else
      add_work(a, steps, &kind);
  }
}

/* What so many steps have is part of how this job trains. */
static void remove_if_usual(struct analysis *a) {
  u32 n = NUMBER_OF(a->other_work_of + a->first_step, a->n_steps, one, *one);
  if (n <= OTHER_WORK_MOST_STEPS * a->n_steps) {
    a->n_training = a->n_steps - n;
    return;
  }
  a->other_work_of = NULL;
  a->results->n_other_work = 0;
}

void other_work_prepare(struct analysis *a) {
  SCOPED_ARENA struct arena scratch = {0};
  struct step_extras *extras = arena_alloc(&scratch, sizeof(*extras));
  struct long_steps steps;
  a->n_training = a->n_steps;
  if (a->whole_run) {
    return;
  }
  a->other_work_of = arena_array(a->arena, a->model->steps.n, sizeof(*a->other_work_of));
  a->results->other_work = arena_array(a->arena, MOST_KINDS, sizeof(struct other_work));
  step_extras_list(a, &scratch, extras);
  other_content_list(a, extras, &scratch, &steps);
  turns_find(a, extras, &scratch, &steps);
  add_contained_work(a, &scratch, &steps, extras);
  add_recurring_work(a, &scratch, &steps);
  remove_if_usual(a);
}

/* Host phases do not show what the devices do: kernels that only these steps run. */
void other_work_summarise(struct analysis *a) {
  struct results *r = a->results;
  SCOPED bool *them = memory_array(size_sum(a->model->steps.n, 1), sizeof(*them));
  FOR_EACH_CHANGED(r->other_work, r->n_other_work, work) {
    memset(them, 0, a->model->steps.n * sizeof(*them));
    FOR_EACH(work->step, work->n_steps, one)
      them[(u32)*one - a->model->steps.first] = true;
    struct more_kernels found =
        find_more_kernels(a, them, work->ms, model_rank_index(a->model, work->rank));
    work->kernels = found.more ? found.in_them : NAN;
    work->usual_kernels = found.more ? found.usual : NAN;
    if (found.more && work->outside)
      work->what = "with more kernels than other steps have, on all devices";
    work->name = work_name(a->arena, work);
  }
}
