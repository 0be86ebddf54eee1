/* SPDX-License-Identifier: MIT
 *
 * Growth: the slope of what each step leaves allocated. For a step, the least that was allocated at
 * any moment counts, so it does not matter where in its rise and fall a step begins. The slope is
 * the median over pairs of steps (Theil-Sen), so a few odd steps do not cause one.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyses/memory/memory.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/robust.h"

/* Least allocated in each step and the event at which it was; NAN where a step has no event. */
static u32 find_lowest(const struct memory_history *history, double *floors, u32 *at) {
  u32 seen = 0;
  for (u32 s = 0; s < history->n_steps; s++)
    floors[s] = NAN;
  for (u32 i = 0; i < history->n_events; i++) {
    const struct memory_event *event = &history->events[i];
    if (event->step < 0 || (u32)event->step >= history->n_steps || event->allocated < 0)
      continue;
    double *least = &floors[event->step];
    seen += isnan(*least);
    if (isnan(*least) || (double)event->allocated < *least) {
      *least = (double)event->allocated;
      at[event->step] = i + 1;
    }
  }
  return seen;
}

static int live_by_source(struct memory_replay *replay, double *bytes, double sign) {
  for (u32 i = 0; i < replay->live.room; i++) {
    const struct live_block *block = &replay->live.slots[i];
    if (block->used && block->bytes > 0)
      bytes[block->source] += sign * (double)block->bytes;
  }
  return 0;
}

/* The source with most of what was added between two moments. */
static void find_growth_source(const struct memory_history *history, u32 from, u32 to,
                               struct arena *arena, struct memory_result *result) {
  double *bytes = memory_zeroed(size_sum(history->n_sources, 1), sizeof(*bytes));
  struct memory_replay replay;
  memory_replay_begin(&replay, history);
  memory_replay_to(&replay, from);
  live_by_source(&replay, bytes, -1);
  memory_replay_to(&replay, to);
  live_by_source(&replay, bytes, 1);
  u32 most = 0;
  double added = 0;
  for (u32 s = 0; s < history->n_sources; s++) {
    added += bytes[s] > 0 ? bytes[s] : 0;
    most = bytes[s] > bytes[most] ? s : most;
  }
  if (most && bytes[most] > 0) {
    const struct memory_source *source = &history->sources[most];
    result->growth_source = source->place ? arena_text(arena, source->place) : NULL;
    result->growth_category = allocation_category_name(source->category);
    result->growth_source_share = bytes[most] / added;
  }
  memory_replay_free(&replay);
  free(bytes);
}

/* A single jump has a slope too. Real growth is in each third. */
static bool rises_throughout(const double *y, u32 n) {
  double rise = y[n - 1] - y[0];
  for (u32 third = 0; third < 3; third++) {
    u32 from = (n - 1) * third / 3, to = (n - 1) * (third + 1) / 3;
    if (y[to] - y[from] < GROWTH_THIRD * rise)
      return false;
  }
  return rise > 0;
}

static void fit_growth(const struct memory_history *history, const double *floors, const u32 *at,
                       double *scratch, struct arena *arena, struct memory_result *result) {
  double *x = scratch, *y = x + history->n_steps, *rest = y + history->n_steps;
  u32 n = 0, first = INDEX_NONE, last = 0;
  /* The first step allocates what stays: gradients, the optimizer's state, workspaces. */
  for (u32 s = GROWTH_WARMUP_STEPS; s < history->n_steps; s++) {
    if (isnan(floors[s]))
      continue;
    first = first == INDEX_NONE ? s : first;
    last = s;
    x[n] = s;
    y[n++] = floors[s];
  }
  if (n < GROWTH_LEAST_STEPS) {
    result->growth_reason = "too few steps with events";
    return;
  }
  struct line line = fit_line(x, y, n, INFINITY, rest);
  if (line.slope > 0 && !rises_throughout(y, n))
    line.slope = 0;
  result->growth_bytes_per_step = line.slope;
  result->growth_steps = n;
  result->growth_from_bytes = floors[first];
  result->growth_to_bytes = floors[last];
  if (line.slope > 0)
    find_growth_source(history, at[first], at[last], arena, result);
}

/* Steps of a snapshot are its own; those of a trace are the report's. */
static void keep_peaks(const struct memory_history *history, struct arena *arena,
                       struct memory_result *result) {
  result->step_peak_bytes = arena_array(arena, size_sum(history->n_steps, 1), sizeof(double));
  result->n_step_peaks = history->n_steps;
  for (u32 s = 0; s < history->n_steps; s++)
    result->step_peak_bytes[s] = NAN;
  for (u32 i = 0; i < history->n_events; i++) {
    const struct memory_event *event = &history->events[i];
    if (event->step >= 0 && (u32)event->step < history->n_steps && event->allocated >= 0)
      result->step_peak_bytes[event->step] =
          fmax(result->step_peak_bytes[event->step], (double)event->allocated);
  }
}

void memory_find_growth(const struct memory_history *history, struct arena *arena,
                        struct memory_result *result) {
  result->growth_bytes_per_step = result->growth_steps = NAN;
  result->growth_from_bytes = result->growth_to_bytes = result->growth_source_share = NAN;
  if (!history->n_steps) {
    result->growth_reason = "no steps were found in the recording";
    return;
  }
  keep_peaks(history, arena, result);
  double *floors = memory_array(size_product(4, size_sum(history->n_steps, 1)), sizeof(*floors));
  u32 *at = memory_array(size_sum(history->n_steps, 1), sizeof(*at));
  if (find_lowest(history, floors, at) < GROWTH_LEAST_STEPS + GROWTH_WARMUP_STEPS)
    result->growth_reason = "too few steps to distinguish growth from chance";
  else
    fit_growth(history, floors, at, floors + history->n_steps, arena, result);
  free(floors);
  free(at);
}
