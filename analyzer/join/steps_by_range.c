/* SPDX-License-Identifier: MIT
 *
 * Steps from ranges whose names mean a step ("iteration 12"), see preload/nvtx/nvtx_names.def. A
 * step lasts until the next one begins.
 *
 * Some programs call each micro-batch an iteration. If the optimizer's ranges show that there are
 * clearly fewer steps than ranges, the ranges are not used.
 */
#include "base/checked_memory.h"
#include "join/find_steps.h"

/* Ranges on one thread that are not inside another. */
typedef VECTOR(struct rank_step_range) outer_ranges;

/* The thread with most step ranges is the one that trains: another may prefetch or evaluate. */
static u32 busiest_thread(const struct rank_events *events) {
  u32 n = events->step_ranges.n, times;
  SCOPED u64 *threads = memory_array(size_sum(n, 1), sizeof(*threads));
  for (u32 i = 0; i < n; i++)
    threads[i] = events->step_ranges.at[i].thread;
  return n ? (u32)threads[commonest(threads, n, &times)] : INDEX_NONE;
}

static void find_outer(const struct rank_events *events, outer_ranges *outer) {
  u32 thread = busiest_thread(events);
  i64 covered = INT64_MIN;
  FOR_EACH(events->step_ranges.at, events->step_ranges.n, range) {
    if (range->thread != thread || range->start < covered)
      continue;
    if (range->end != NS_UNKNOWN)
      covered = range->end;
    VECTOR_PUSH(outer, *range);
  }
}

/* False where the rank's optimizer ran at least once for every one and a half ranges or not at all.
 */
static bool are_micro_batches(const struct rank_events *events, u32 ranges) {
  SCOPED u32 *phases = memory_array(size_sum(events->phases.n, 1), sizeof(*phases));
  u32 optimizer = list_phases(events, TSCOPE_PHASE_OPTIMIZER, phases);
  return optimizer > 0 && 2 * (u64)ranges > 3 * (u64)optimizer + 2;
}

/* The number of the first range, if all numbers follow each other; else TSCOPE_UNKNOWN. */
static u32 first_number(const outer_ranges *outer) {
  for (u32 i = 0; i < outer->n; i++)
    if (outer->at[i].number == TSCOPE_UNKNOWN || outer->at[i].number != outer->at[0].number + i)
      return TSCOPE_UNKNOWN;
  return outer->n ? outer->at[0].number : TSCOPE_UNKNOWN;
}

static void add_bounds(const struct rank_events *events, const outer_ranges *outer,
                       struct rank_bounds *bounds) {
  FOR_EACH(outer->at, outer->n, one)
    VECTOR_PUSH(&bounds->at, one->start);
  i64 last = outer->at[outer->n - 1].end;
  if (last == NS_UNKNOWN) /* killed in it: it ends with the last event of the rank */
    last = events->end;
  VECTOR_PUSH(&bounds->at, last);
}

static void number_ranks(struct rank_bounds *bounds, const u32 *numbers, u32 n_ranks) {
  u32 least = TSCOPE_UNKNOWN;
  for (u32 r = 0; r < n_ranks; r++) {
    if (bounds[r].at.n && numbers[r] == TSCOPE_UNKNOWN)
      return;
    least = MIN(numbers[r], least);
  }
  for (u32 r = 0; r < n_ranks; r++)
    if (bounds[r].at.n)
      bounds[r].first = numbers[r] - least;
}

bool bounds_by_ranges(const struct model *model, struct rank_bounds *bounds, double *confidence) {
  const struct rank_events *events = internal_of(model)->events;
  SCOPED u32 *numbers = memory_array(size_sum(model->n_ranks, 1), sizeof(*numbers));
  bool believed = true;
  for (u32 r = 0; r < model->n_ranks && believed; r++) {
    SCOPED outer_ranges outer = {0};
    find_outer(&events[r], &outer);
    believed = !are_micro_batches(&events[r], outer.n);
    numbers[r] = first_number(&outer);
    if (believed && outer.n)
      add_bounds(&events[r], &outer, &bounds[r]);
  }
  if (!believed)
    bounds_forget(bounds, model->n_ranks);
  double agreeing = bounds_believed(model, bounds, 3, 0);
  if (agreeing > 0) {
    number_ranks(bounds, numbers, model->n_ranks);
    *confidence = agreeing;
  }
  return agreeing > 0;
}
