/* SPDX-License-Identifier: MIT
 *
 * Ranks without steps of their own, such as a server of parameters, or a teacher: they work for
 * those of the ranks that they meet in collectives and messages. A step of theirs ends when the
 * last meeting of that step does. Also ranks whose recording ends before their steps are marked: in
 * the last step they meet less often than in the one before.
 */
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "join/find_steps.h"

/* In a step, on the host. */
struct met {
  i64 first, last; /* NS_UNKNOWN: it met nobody */
  u32 times;
};

/* The step of each collective for those of its members that have steps; -1 for none. */
static i32 *list_steps(const struct model *model, const struct rank_bounds *bounds) {
  i32 *steps = memory_array(size_sum(model->n_collectives, 1), sizeof(*steps));
  for (u32 c = 0; c < model->n_collectives; c++) {
    const struct collective *collective = &model->collectives[c];
    steps[c] = -1;
    FOR_EACH_MEMBER(model, collective, member)
      if (steps[c] < 0 && bounds_has_steps(&bounds[member->rank]))
        steps[c] = bounds_step_at(&bounds[member->rank], member->call_start);
  }
  return steps;
}

/* What a host has called may run on its GPU later. */
static i64 end_on_host(const struct arrival *arrival) {
  i64 end = arrival->stream == TSCOPE_NO_STREAM ? arrival->end : NS_UNKNOWN;
  return end == NS_UNKNOWN ? arrival->call_end : end;
}

static void list_meetings(const struct model *model, const struct rank_events *events,
                          const i32 *steps, struct met *met, u32 n) {
  FOR_EACH_CHANGED(met, n, one)
    *one = (struct met){NS_UNKNOWN, NS_UNKNOWN, 0};
  FOR_EACH(events->calls.at, events->calls.n, call) {
    if (call->arrival == INDEX_NONE || call->collective == INDEX_NONE)
      continue;
    const struct arrival *arrival = &model->arrivals[call->arrival];
    i32 step = arrival->collective == INDEX_NONE ? -1 : steps[arrival->collective];
    if (step < 0 || arrival->times == TIMES_LEFT_OUT || end_on_host(arrival) == NS_UNKNOWN)
      continue;
    met[step].times++;
    met[step].first = least_known(arrival->call_start, met[step].first);
    met[step].last = MAX(end_on_host(arrival), met[step].last);
  }
}

/* The last step may be cut: it is none where the rank meets less often in it. */
static u32 without_cut_step(const struct met *met, u32 n) {
  while (n && !met[n - 1].times)
    n--;
  return n > 1 && met[n - 1].times < met[n - 2].times ? n - 1 : n;
}

/* In how many steps the rank was recorded: as long ones as those between its first meeting and its
 * last. A recording may be of a part of the run. */
static double recorded_steps(const struct rank *rank, const struct met *first,
                             const struct met *last) {
  double met_ns = (double)(last->last - first->first);
  return (double)(rank->end - rank->begin) * (double)(last - first + 1) / met_ns;
}

/* Steps without a meeting divide the time between those with one evenly. False if the rank meets
 * its peers in less than half of those in which it was recorded, or in another order than that of
 * the steps. */
static bool bound_by_meetings(const struct rank *rank, struct rank_bounds *bounds,
                              const struct met *met, u32 n) {
  u32 first = n, before = 0, known = 0, end = without_cut_step(met, n);
  for (u32 s = 0; s < end; s++) {
    if (met[s].last == NS_UNKNOWN)
      continue;
    if (!known++) {
      first = s;
      VECTOR_PUSH(&bounds->at, met[s].first);
    } else {
      i64 from = bounds->at.at[bounds->at.n - 1];
      for (u32 k = before + 1; k < s; k++)
        VECTOR_PUSH(&bounds->at, from + (met[s].last - from) / (s - before) * (k - before));
    }
    if (met[s].last <= bounds->at.at[bounds->at.n - 1])
      return false;
    VECTOR_PUSH(&bounds->at, met[s].last);
    before = s;
  }
  bounds->first = first;
  return known &&
         (2 * known >= n ||
          (known >= LEAST_STEPS && 2 * known >= recorded_steps(rank, &met[first], &met[before])));
}

void bounds_of_peers(const struct model *model, struct rank_bounds *bounds) {
  u32 n = bounds_steps(bounds, model->n_ranks);
  if (!n || ALL(bounds, model->n_ranks, one, bounds_has_steps(one)))
    return;
  SCOPED i32 *steps = list_steps(model, bounds);
  SCOPED struct met *met = memory_array(n, sizeof(*met));
  SCOPED struct rank_bounds *found = memory_zeroed(model->n_ranks, sizeof(*found));
  for (u32 r = 0; r < model->n_ranks; r++) {
    if (bounds_has_steps(&bounds[r]))
      continue;
    list_meetings(model, model_events(model, r), steps, met, n);
    if (!bound_by_meetings(&model->ranks[r], &found[r], met, n))
      found[r].at.n = 0;
  }
  for (u32 r = 0; r < model->n_ranks; r++) {
    if (bounds_has_steps(&bounds[r]))
      continue;
    free(bounds[r].at.at);
    bounds[r] = found[r];
  }
}
