/* SPDX-License-Identifier: MIT
 *
 * Steps that contain something other than training. They are left out of figures about training, so
 * there must be no doubt: such a step is long, what it has more of is neither backward nor
 * optimizer nor input, and it comes at a fixed distance, or has collectives that hardly any other
 * step has.
 */
#include "analyses/steps/other_work.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
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
  for (u32 i = 0; i < shown && text; i++)
    text = arena_printf(arena, "%s%s %.0f", text, i ? "," : "", step[i]);
  return text && shown < n ? arena_printf(arena, "%s and %u more", text, n - shown) : text;
}

static const char *describe_content(struct arena *arena, const struct other_work *work,
                                    u8 content) {
  switch (content) {
  case CONTENT_FORWARD:
    return "forward only";
  case CONTENT_ONE_RANK:
    return work->rank == INDEX_NONE
               ? "on one rank while the others wait"
               : arena_printf(arena, "on rank %u alone while the others wait", work->rank);
  case CONTENT_CALLS:
    return arena_printf(arena, "with %s that other steps do not have",
                        work->collective ? work->collective : "collectives");
  default:
    return "outside forward, backward and optimizer";
  }
}

static const char *work_name(struct arena *arena, const struct other_work *work) {
  const char *every =
      isnan(work->period) ? "" : arena_printf(arena, " every %.0f steps", work->period);
  if (!every || !work->steps || !work->what)
    return NULL;
  return arena_printf(arena, "%s: something that takes %s%s, %s", work->steps,
                      duration_ms(work->ms).text, every, work->what);
}

struct group {
  u8 content;
  u32 rank; /* INDEX_NONE: not always the same */
  u8 op;
  u32 hits;
};

/* What most members have in common. */
static struct group common_content(const struct long_steps *steps, const u32 *members, u32 n) {
  struct group g = {.rank = INDEX_NONE};
  u32 times[CONTENTS] = {0}, with_op = 0;
  for (u32 i = 0; i < n; i++)
    times[steps->at[members[i]].content]++;
  for (u8 content = 0; content < CONTENTS; content++)
    if (times[content] > times[g.content])
      g.content = content;
  bool first = true, same = true;
  for (u32 i = 0; i < n; i++) {
    const struct long_step *step = &steps->at[members[i]];
    with_op += step->op != 0;
    g.op = step->op ? step->op : g.op;
    if (step->content != g.content)
      continue;
    same &= first || step->rank == g.rank;
    g.rank = step->rank;
    first = false;
  }
  g.rank = same ? g.rank : INDEX_NONE;
  g.op = 2 * with_op > n ? g.op : 0;
  return g;
}

/* Adds what the members of one kind (indices into steps->at) contain; those that no other kind has
 * yet belong to it. */
static int add_work(struct analysis *a, struct long_steps *steps, const u32 *members, u32 n,
                    double period) {
  struct results *r = a->results;
  struct other_work *work = &r->other_work[r->n_other_work++];
  double *excess = arena_array(a->arena, n + 1u, sizeof(double));
  u32 own = 0, *own_members = arena_array(a->arena, n + 1u, sizeof(u32));
  *work = (struct other_work){.period = period, .n_steps = n, .rank = INDEX_NONE};
  work->step = arena_array(a->arena, n + 1u, sizeof(double));
  if (!excess || !own_members || !work->step)
    return -ENOMEM;
  for (u32 i = 0; i < n; i++) {
    struct long_step *step = &steps->at[members[i]];
    work->step[i] = a->model->steps.first + step->step;
    if (step->group)
      continue;
    own_members[own] = members[i];
    excess[own++] = step->excess_ms;
    work->sum_s += step->excess_ms / 1e3;
    step->group = (u8)r->n_other_work;
    a->other_work_of[step->step] = step->group;
  }
  struct group g = common_content(steps, own_members, own);
  work->ms = median_of(excess, own);
  if (g.rank != INDEX_NONE)
    work->rank = a->model->ranks[g.rank].rank;
  work->collective = g.op ? op_name(g.op) : NULL;
  work->what = describe_content(a->arena, work, g.content);
  work->forward_only = g.content == CONTENT_FORWARD;
  work->steps = describe_steps(a->arena, work->step, n);
  work->name = work_name(a->arena, work);
  return work->name ? 0 : -ENOMEM;
}

static int add_recurring_work(struct analysis *a, struct long_steps *steps, u32 *members) {
  const u32 leave_out = 1u << CONTENT_UNKNOWN | 1u << CONTENT_TRAINING;
  struct recurrence r;
  int error = 0;
  while (!error && a->results->n_other_work < MOST_KINDS &&
         other_find_recurrence(steps, leave_out, OTHER_WORK_SIGNIFICANCE, &r)) {
    u32 n = 0;
    for (u32 i = 0; i < steps->n; i++)
      if (recurrence_has(&r, steps->at[i].step) && !(leave_out >> steps->at[i].content & 1))
        members[n++] = i;
    error = add_work(a, steps, members, n, r.period);
  }
  return error;
}

/* At no fixed distance: steps at least twice as long that have calls of their own, grouped by these
 * calls. */
static int add_rare_work(struct analysis *a, struct long_steps *steps, u32 *members) {
  int error = 0;
  for (u32 first = 0; first < steps->n && !error && a->results->n_other_work < MOST_KINDS;
       first++) {
    u32 n = 0;
    for (u32 i = first; i < steps->n; i++) {
      const struct long_step *step = &steps->at[i];
      if (!step->group && step->op && step->op == steps->at[first].op &&
          step->content > CONTENT_TRAINING && step->content == steps->at[first].content &&
          step->excess_ms >= steps->typical_ms)
        members[n++] = i;
    }
    if (n && members[0] == first)
      error = add_work(a, steps, members, n, NAN);
  }
  return error;
}

/* What so many steps have is part of how this job trains. */
static void remove_if_usual(struct analysis *a) {
  u32 n = 0;
  for (u32 i = 0; i < a->n_steps; i++)
    n += !analysis_is_training(a, a->first_step + i);
  if (n <= OTHER_WORK_MOST_STEPS * a->n_steps) {
    a->n_training = a->n_steps - n;
    return;
  }
  a->other_work_of = NULL;
  a->results->n_other_work = 0;
}

int other_work_prepare(struct analysis *a) {
  struct arena scratch = {0};
  struct long_steps steps;
  a->n_training = a->n_steps;
  if (a->whole_run)
    return 0;
  a->other_work_of = arena_array(a->arena, a->model->steps.n + 1u, sizeof(*a->other_work_of));
  a->results->other_work = arena_array(a->arena, MOST_KINDS, sizeof(struct other_work));
  u32 *members = arena_array(&scratch, a->n_steps + 1u, sizeof(u32));
  int error = a->other_work_of && a->results->other_work && members ? 0 : -ENOMEM;
  if (!error)
    error = other_content_list(a, &scratch, &steps);
  if (!error)
    error = add_recurring_work(a, &steps, members);
  if (!error)
    error = add_rare_work(a, &steps, members);
  if (!error)
    remove_if_usual(a);
  arena_release(&scratch);
  return error;
}
