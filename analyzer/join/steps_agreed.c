/* SPDX-License-Identifier: MIT
 *
 * Whether ranks mean the same steps: by the collectives and messages that they share, each of which
 * lies in one step of the job. A rank may have been recorded later than its peers, so that its
 * first step is not theirs; or it steps an optimizer that they do not have.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "join/find_steps.h"

enum { FIRST_LOOK = 8, SECOND_LOOK = 512 }; /* calls of a rank, spread evenly over all */

static const double same_share = 0.5;  /* of them: in the same step as for the peers */
static const double shift_share = 0.9; /* as many steps later or earlier */

/* How far the steps of a rank are from those of its peers. */
struct apart {
  i64 steps;    /* in most of its calls */
  double share; /* of these calls; NAN: none can be compared */
};

/* The most common of some values, of equally common ones the least; sorts them. */
static i64 most_common(i64 *values, u32 n, u32 *times) {
  SORT(values, n, by_i64);
  u32 first = commonest((u64 *)values, n, times);
  return n ? values[first] : 0;
}

static u32 usual_bounds(const struct model *model, const struct rank_bounds *bounds) {
  SCOPED i64 *numbers = memory_array(size_sum(model->n_ranks, 1), sizeof(*numbers));
  u32 times;
  u32 n = LIST_WHERE(numbers, 0, model->n_ranks, r, bounds[r].at.n > 1, bounds[r].at.n);
  return (u32)most_common(numbers, n, &times);
}

/* The step of a collective for the first of its members that agree; -1: for none. */
static i32 agreed_step(const struct model *model, const struct rank_bounds *bounds,
                       const bool *agrees, u32 collective) {
  const struct collective *of = &model->collectives[collective];
  FOR_EACH_MEMBER(model, of, arrival) {
    if (agrees[arrival->rank])
      return bounds_step_at(&bounds[arrival->rank], arrival->call_start);
  }
  return -1;
}

static struct apart look_at(const struct model *model, const struct rank_bounds *bounds,
                            const bool *agrees, u32 rank, u32 looks) {
  const struct rank_events *events = model_events(model, rank);
  i64 apart[SECOND_LOOK];
  u32 n = 0, times;
  for (u32 k = 0; k < looks && k < events->calls.n; k++) {
    u32 of = MIN(events->calls.n, looks);
    const struct rank_call *call = &events->calls.at[(u64)k * events->calls.n / of];
    if (call->arrival == INDEX_NONE)
      continue;
    const struct arrival *arrival = &model->arrivals[call->arrival];
    i32 own = bounds_step_at(&bounds[rank], arrival->call_start);
    i32 theirs = own < 0 || arrival->collective == INDEX_NONE
                     ? -1
                     : agreed_step(model, bounds, agrees, arrival->collective);
    if (theirs >= 0)
      apart[n++] = theirs - own;
  }
  i64 steps = most_common(apart, n, &times);
  return (struct apart){steps, n ? (double)times / n : NAN};
}

static bool is_same(struct apart apart) {
  return isnan(apart.share) || (apart.steps == 0 && apart.share >= same_share);
}

/* Gives a rank other numbers for its steps; if it began before the others, the others. */
static void shift(const struct model *model, struct rank_bounds *bounds, u32 rank, i64 steps) {
  for (u32 r = 0; r < model->n_ranks && steps < 0; r++)
    if (r != rank)
      bounds[r].first += (u32)-steps;
  if (steps > 0)
    bounds[rank].first += (u32)steps;
}

/* Whether the rank has the steps of those that agree, perhaps with other numbers. */
static bool settle(const struct model *model, struct rank_bounds *bounds, const bool *agrees,
                   u32 rank) {
  struct apart apart = look_at(model, bounds, agrees, rank, FIRST_LOOK);
  if (!is_same(apart))
    apart = look_at(model, bounds, agrees, rank, SECOND_LOOK);
  if (is_same(apart))
    return true;
  if (apart.share < shift_share)
    return false;
  shift(model, bounds, rank, apart.steps);
  return true;
}

void bounds_agree(const struct model *model, struct rank_bounds *bounds, double *confidence) {
  SCOPED bool *agrees = memory_zeroed(model->n_ranks, sizeof(*agrees));
  u32 usual = usual_bounds(model, bounds), without = 0;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 r = 0; r < model->n_ranks; r++)
      if (bounds[r].at.n > 1 && (bounds[r].at.n == usual) == (pass == 0))
        agrees[r] = settle(model, bounds, agrees, r);
  for (u32 r = 0; r < model->n_ranks; r++)
    if (bounds[r].at.n > 1 && !agrees[r]) {
      bounds[r].at.n = 0;
      bounds[r].open = false;
      without++;
    }
  if (without)
    *confidence = 1 - (double)without / model->n_ranks;
}
