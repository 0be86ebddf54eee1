/* SPDX-License-Identifier: MIT
 *
 * Parts of training that only every n-th step holds. Their steps count as training, but must not be
 * called slow: they are longer by what the job does in turn. Three things are such parts:
 * collectives that move parameters in a job whose other steps have no collective at all (training
 * that synchronises every tenth step), values that are read from the GPU (a loss that is logged),
 * and steps that are longer at a distance too short for checkpoints or validation (data is
 * collected before every fourth update; four loader workers).
 */
#include <math.h>

#include "analyses/queries.h"
#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/quantity.h"
#include "base/statistics.h"

#define MOST_TURNS 8u

/* An all_reduce of a loss or of counts is smaller, and parameters are larger. */
#define PARAMETERS_BYTES 4096u

u32 analysis_turn_of(const struct analysis *a, u32 step) {
  return a->turn_of ? a->turn_of[step] : 0;
}

struct turn {
  u32 *steps; /* that hold it, indices into model.steps */
  u32 n, period;
  const char *what;
  double least_ms; /* that it must take longer */
};

const char *describe_period(struct arena *arena, u32 period) {
  static const char *const ends[] = {"th", "st", "nd", "rd"};
  bool teen = period / 10 % 10 == 1;
  return arena_printf(arena, "every %u%s step", period,
                      ends[teen || period % 10 > 3 ? 0 : period % 10]);
}

static const char *name_turn(struct arena *arena, const struct turn *turn, double ms) {
  const char *which = turn->period ? describe_period(arena, turn->period)
                                   : arena_printf(arena, "each of %u steps", turn->n);
  return arena_printf(arena, "%s takes %s longer, %s", which, duration_ms(ms).text, turn->what);
}

/* What is left of a step may be work of another kind, if it is long by itself. */
static void take_turn_away(struct long_steps *steps, u32 step, double ms) {
  steps->excess_ms[step - steps->first] -= ms;
  struct long_step *one = FIND(steps->at, steps->n, any, any->step == step);
  if (!one)
    return;
  one->excess_ms -= ms;
  one->is_long = one->excess_ms >= OTHER_WORK_OF_STEP * fmax(steps->typical_ms, ms);
}

/* False where it does not take long enough to be told. */
static bool add_turn(struct analysis *a, struct arena *scratch, struct long_steps *steps,
                     const struct turn *turn) {
  double *excess = arena_array(scratch, turn->n, sizeof(double));
  u32 n = LIST_KNOWN(excess, 0, turn->n, i, steps->excess_ms[turn->steps[i] - steps->first]);
  double sum = TOTAL(double, excess, n, one, *one);
  double ms = median_of(excess, n);
  if (!(ms > turn->least_ms) || a->results->n_turns == MOST_TURNS)
    return false;
  struct step_turn *out = &a->results->turns[a->results->n_turns++];
  *out = (struct step_turn){.name = name_turn(a->arena, turn, ms),
                            .period = turn->period ? turn->period : (double)NAN,
                            .count = turn->n,
                            .ms = ms,
                            .sum_s = sum / 1e3,
                            .what = turn->what};
  FOR_EACH(turn->steps, turn->n, each) {
    a->turn_of[*each] = (u8)a->results->n_turns;
    take_turn_away(steps, *each, ms);
  }
  return true;
}

/* Collectives that move parameters, of steps that alone have any. */
static void find_synchronisation(struct analysis *a, struct step_extras *extras,
                                 struct arena *scratch, struct long_steps *steps) {
  const struct step_extra *extra =
      LARGEST(extras->at, extras->n, one, one->bytes >= PARAMETERS_BYTES, one->n);
  if (!extra || extras->usual_calls)
    return;
  extras->in_turn |= 1ull << (extra - extras->at);
  add_turn(a, scratch, steps,
           &(struct turn){
               extra->steps, extra->n, extra->period,
               arena_printf(a->arena, "with %s that other steps do not have", op_name(extra->op)),
               0});
}

/* Values that the program reads, such as a loss that it logs: the host then waits for its GPU. */
static void find_reads(struct analysis *a, struct step_extras *extras, struct arena *scratch,
                       struct long_steps *steps) {
  for (u32 i = 0; i < extras->n; i++) {
    const struct step_extra *extra = &extras->at[i];
    struct turn turn = {extra->steps, extra->n, extra->period,
                        "with a wait of the host for the GPU that other steps do not have",
                        OTHER_WORK_OF_CONTENT * steps->typical_ms};
    bool reads = extra->meets && !(extra->meets & MEETING_COPY_IN) &&
                 extra->copied < CHECKPOINT_BYTES && !extra->op && !extra->forward;
    if (reads && add_turn(a, scratch, steps, &turn))
      extras->in_turn |= 1ull << i;
  }
}

/* The content of most of the steps that are long. */
static u8 content_of(const struct long_steps *steps, const struct recurrence *r) {
  u32 times[CONTENTS] = {0};
  FOR_EACH(steps->at, steps->n, one)
    times[one->content] += one->is_long && recurrence_has(r, one->step);
  return (u8)NUMBER_OF_LARGEST(0, CONTENTS, content, times[content]);
}

static void find_short_periods(struct analysis *a, struct arena *scratch,
                               struct long_steps *steps) {
  const struct recurrence_wanted wanted = {2, OTHER_WORK_PERIOD - 1, 0, OTHER_WORK_SIGNIFICANCE};
  struct recurrence r;
  for (u32 found = 0; found < MOST_TURNS && other_find_recurrence(steps, &wanted, &r); found++) {
    struct turn turn = {arena_array(scratch, a->n_steps, sizeof(u32)), 0, r.period,
                        describe_content(content_of(steps, &r)), 0};
    for (u32 step = r.first; step < steps->end; step += r.period)
      turn.steps[turn.n++] = step;
    add_turn(a, scratch, steps, &turn);
  }
}

void turns_find(struct analysis *a, struct step_extras *extras, struct arena *scratch,
                struct long_steps *steps) {
  a->turn_of = arena_array(a->arena, a->model->steps.n, sizeof(*a->turn_of));
  a->results->turns = arena_array(a->arena, MOST_TURNS, sizeof(struct step_turn));
  find_synchronisation(a, extras, scratch, steps);
  find_reads(a, extras, scratch, steps);
  find_short_periods(a, scratch, steps);
}
