/* SPDX-License-Identifier: MIT
 *
 * Steps of jobs that run no optimizer and hardly communicate, or not in turn: one pass through the
 * model after the other, backward where there are any, else forward; else what the host launches
 * again and again. Such steps must be alike, or there are none: passes may also be those of layers,
 * of a validation, or of tokens of an answer.
 */

#include "base/checked_memory.h"
#include "base/period.h"
#include "base/robust.h"
#include "join/find_steps.h"

#define ALIKE_FACTOR 2.0
#define LEAST_ALIKE 0.5   /* of forward passes */
#define LEAST_DONE 1000.0 /* ns: what is shorter is nothing */
#define NOTHING_DONE 0.01 /* of the time from pass to pass, after which no parameters changed */
#define MOSTLY 0.9
#define LEAST_MATCH 0.8 /* of launches: these do not depend on how busy the machine is */

/* Share of a rank's steps that take about as long as its usual one: on a busy machine not all do.
 */
static double share_alike(const struct rank_bounds *bounds) {
  u32 n = bounds->at.n - 1, alike = 0;
  SCOPED i64 *lengths = memory_array(n, sizeof(*lengths));
  for (u32 i = 0; i < n; i++)
    lengths[i] = bounds->at.at[i + 1] - bounds->at.at[i];
  double usual = (double)lower_median_i64(lengths, n);
  for (u32 i = 0; i < n; i++) {
    double length = (double)(bounds->at.at[i + 1] - bounds->at.at[i]);
    alike += length <= ALIKE_FACTOR * usual && usual <= ALIKE_FACTOR * length;
  }
  return (double)alike / n;
}

/* Whether the bounds are believed, by how alike steps are and how many ranks have as many. Takes
 * back those that are not. */
static bool settle(const struct model *model, struct rank_bounds *bounds, double alike,
                   double least, double *confidence) {
  /* one may have ended in the middle of a step */
  double agreeing = bounds_believed(model, bounds, LEAST_STEPS + 1, 1), sure = alike * agreeing;
  bool believed = agreeing > 0 && sure >= least;
  if (believed)
    *confidence = sure;
  else
    bounds_forget(bounds, model->n_ranks);
  return believed;
}

/* Where the step of a pass ends: where the next one begins to load or to compute, so that what
 * follows the pass, such as an update by hand, belongs to it. If nothing says so, with the pass. */
static i64 end_of_pass(const struct rank_events *events, u32 pass, u32 next) {
  i64 end = events->phases.at[pass].end;
  for (u32 i = pass + 1; i < next; i++) {
    const struct rank_phase *phase = &events->phases.at[i];
    bool begins = phase->kind == TSCOPE_PHASE_DATA || phase->kind == TSCOPE_PHASE_FORWARD;
    if (begins && phase->start >= end)
      return phase->start;
  }
  return next < events->phases.n && events->phases.at[pass].kind == TSCOPE_PHASE_FORWARD &&
                 events->phases.at[next].start >= end
             ? events->phases.at[next].start
             : end;
}

/* After how many passes something is done before the next batch, and nothing after the others: that
 * is an update by hand. 1 if that does not show. */
static u32 passes_per_update(const double *after, u32 n, double pass_to_pass, u32 *place) {
  u32 merged = find_gap_period(after, n, place);
  u32 nothing = NUMBER_OF(after, n, one, *one < NOTHING_DONE * pass_to_pass);
  return merged > 1 && nothing * merged >= MOSTLY * n * (merged - 1) ? merged : 1;
}

/* Gradients that are accumulated: the pauses between steps are longer than those in them; or all
 * pauses are alike, since a batch is loaded in each, but for what is done before that. */
static u32 passes_per_step(const struct rank_events *events, const u32 *passes, u32 n, u32 *first) {
  u32 each = phases_per_step(events, passes, n), groups = n / each, place = 0;
  SCOPED double *pauses = memory_array(size_sum(groups, 1), sizeof(*pauses));
  SCOPED double *after = memory_array(size_sum(groups, 1), sizeof(*after));
  for (u32 k = 1; k < groups; k++) {
    u32 pass = passes[k * each - 1], next = passes[k * each];
    i64 end = events->phases.at[pass].end;
    pauses[k - 1] = (double)(events->phases.at[next].start - end);
    after[k - 1] = (double)(end_of_pass(events, pass, next) - end) + LEAST_DONE;
  }
  const struct rank_phase *begin = &events->phases.at[passes[0]],
                          *last = &events->phases.at[passes[n - 1]];
  u32 merged = groups > 1 ? find_gap_period(pauses, groups - 1, &place) : 1;
  if (merged == 1 && groups > 1 && begin->kind == TSCOPE_PHASE_BACKWARD)
    merged =
        passes_per_update(after, groups - 1, (double)(last->end - begin->start) / groups, &place);
  *first = merged > 1 ? (place + 1) % merged * each : 0;
  return each * merged;
}

static void add_passes(const struct rank_events *events, u8 kind, struct rank_bounds *bounds) {
  SCOPED u32 *passes = memory_array(size_sum(events->phases.n, 1), sizeof(*passes));
  u32 first;
  u32 n = list_phases(events, kind, passes);
  u32 each = n ? passes_per_step(events, passes, n, &first) : 1;
  for (u32 i = n ? first : 0; i + each <= n; i += each) {
    u32 last = passes[i + each - 1];
    if (!bounds->at.n)
      VECTOR_PUSH(&bounds->at, i ? end_of_pass(events, passes[i - 1], passes[i])
                                 : begin_of_phases(events, passes[0]));
    VECTOR_PUSH(&bounds->at,
                end_of_pass(events, last, i + each < n ? passes[i + each] : events->phases.n));
  }
}

bool bounds_by_passes(const struct model *model, u8 kind, struct rank_bounds *bounds,
                      double *confidence) {
  for (u32 r = 0; r < model->n_ranks; r++)
    add_passes(model_events(model, r), kind, &bounds[r]);
  double alike = 0;
  u32 with = 0;
  FOR_EACH(bounds, model->n_ranks, bound) {
    alike += bounds_has_steps(bound) ? share_alike(bound) : 0;
    with += bounds_has_steps(bound);
  }
  /* Who goes backward trains, however long that takes on a busy machine; who only goes forward may
   * also answer, one token after the other. */
  return settle(model, bounds, with ? alike / with : 0,
                kind == TSCOPE_PHASE_BACKWARD ? 0 : LEAST_ALIKE, confidence);
}

bool bounds_by_launches(const struct model *model, struct rank_bounds *bounds, double *confidence) {
  double match = 0;
  u64 n = 0;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = model_events(model, r);
    for (u32 i = 0; i < events->rounds.n; i++) {
      match += events->rounds.at[i].match;
      if (i == 0)
        VECTOR_PUSH(&bounds[r].at, events->rounds.at[i].start);
      VECTOR_PUSH(&bounds[r].at, events->rounds.at[i].end);
    }
    n += events->rounds.n;
  }
  match = n ? match / (double)n : 0;
  return settle(model, bounds, match, LEAST_MATCH, confidence);
}
