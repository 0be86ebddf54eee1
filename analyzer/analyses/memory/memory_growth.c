/* SPDX-License-Identifier: MIT
 *
 * Growth: the slope of what each step leaves allocated. For a step, the least that was allocated at
 * any moment counts, so it does not matter where in its rise and fall a step begins. The slope is
 * the median over pairs of steps (Theil-Sen), so a few odd steps do not cause one.
 */
#include <math.h>

#include "analyses/memory/memory.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/robust.h"

/* Least and most allocated in each step, and the event at which it was least; NAN where a step has
 * no event. How many have one. */
static u32 find_extremes(const struct memory_history *history, double *floors, u32 *at,
                         double *peaks) {
  u32 seen = 0;
  FILL(floors, history->n_steps, NAN);
  FILL(peaks, history->n_steps, NAN);
  for (u32 i = 0; i < history->n_events; i++) {
    const struct memory_event *event = &history->events[i];
    if (event->step < 0 || (u32)event->step >= history->n_steps || event->allocated < 0)
      continue;
    double *least = &floors[event->step], *most = &peaks[event->step];
    *most = fmax(*most, (double)event->allocated);
    seen += isnan(*least);
    if (isnan(*least) || (double)event->allocated < *least) {
      *least = (double)event->allocated;
      at[event->step] = i + 1;
    }
  }
  return seen;
}

/* What was added between two moments. */
struct added {
  double bytes;
  double small_bytes, small_blocks; /* of allocations whose place is only a sample's */
};

static void live_by_source(const struct memory_replay *replay, struct added *added, double sign) {
  FOR_EACH(replay->live.slots, replay->live.room, block) {
    if (!block->used || block->bytes <= 0)
      continue;
    struct added *of = &added[block->source];
    of->bytes += sign * (double)block->bytes;
    of->small_bytes += block->bytes < SAMPLED_BELOW_BYTES ? sign * (double)block->bytes : 0;
    of->small_blocks += block->bytes < SAMPLED_BELOW_BYTES ? sign : 0;
  }
}

/* Small allocations without a place are divided among the places that samples of the same category
 * have, in proportion to these. */
static void extrapolate(const struct memory_history *history, struct added *added) {
  for (u32 c = 0; c < history->n_sources; c++) {
    enum allocation_category category = history->sources[c].category;
    double samples = 0, blocks = 0;
    if (history->sources[c].place || !(added[c].small_bytes > 0))
      continue;
    for (u32 s = 0; s < history->n_sources; s++)
      if (history->sources[s].place && history->sources[s].category == category) {
        samples += fmax(added[s].small_bytes, 0);
        blocks += fmax(added[s].small_blocks, 0);
      }
    if (blocks < GROWTH_LEAST_SAMPLES)
      continue;
    for (u32 s = 0; s < history->n_sources; s++)
      if (history->sources[s].place && history->sources[s].category == category)
        added[s].bytes += fmax(added[s].small_bytes, 0) / samples * added[c].small_bytes;
    added[c].bytes -= added[c].small_bytes;
  }
}

/* The source with most of what was added between two moments. */
static void find_growth_source(const struct memory_history *history, u32 from, u32 to,
                               struct arena *arena, struct memory_result *result) {
  SCOPED struct added *added = memory_zeroed(size_sum(history->n_sources, 1), sizeof(*added));
  struct memory_replay replay;
  memory_replay_begin(&replay, history);
  memory_replay_to(&replay, from);
  live_by_source(&replay, added, -1);
  memory_replay_to(&replay, to);
  live_by_source(&replay, added, 1);
  double known = 0;
  for (u32 s = 0; s < history->n_sources; s++)
    known = fmax(known, history->sources[s].place ? added[s].bytes : 0);
  extrapolate(history, added);
  double sum = TOTAL(double, added, history->n_sources, one, fmax(one->bytes, 0));
  u32 most = NUMBER_OF_LARGEST(0, history->n_sources, s, added[s].bytes);
  if (most && added[most].bytes > 0) {
    const struct memory_source *source = &history->sources[most];
    result->growth_source = arena_text(arena, source->place);
    result->growth_category = allocation_category_name(source->category);
    result->growth_source_share = added[most].bytes / sum;
    if (source->place && added[most].bytes > known)
      result->growth_samples = added[most].small_blocks;
  }
  memory_replay_free(&replay);
}

/* What the largest jumps add: rises within a few steps, such as a model's parameters and then its
 * gradients, of what stays: no later step has less. */
static double few_jumps(const double *y, u32 n, double *stays) {
  const u32 width = n < 20 ? 1 : n < 30 ? 2 : 3;
  double sum = 0;
  stays[n - 1] = y[n - 1];
  for (u32 i = n - 1; i-- > 0;)
    stays[i] = fmin(y[i], stays[i + 1]);
  for (u32 jump = 0; jump < GROWTH_JUMPS; jump++) {
    u32 at = NUMBER_OF_LARGEST(0, n - width, i, stays[i + width] - stays[i]);
    double rise = stays[at + width] - stays[at];
    sum += rise;
    for (u32 i = at + 1; i < n; i++)
      stays[i] = i < at + width ? stays[at] : stays[i] - rise;
  }
  return sum;
}

/* A few jumps have a slope too: a cache that is made, another model. Real growth is in each third,
 * and more than they. */
static bool rises_throughout(const double *y, u32 n, double *scratch) {
  double rise = y[n - 1] - y[0];
  for (u32 third = 0; third < 3; third++) {
    u32 from = (n - 1) * third / 3, to = (n - 1) * (third + 1) / 3;
    if (y[to] - y[from] < GROWTH_SPREAD * rise)
      return false;
  }
  return rise > 0 && rise - few_jumps(y, n, scratch) >= GROWTH_SPREAD * rise;
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
  if (line.slope > 0 && !rises_throughout(y, n, rest))
    line.slope = 0;
  result->growth_bytes_per_step = line.slope;
  result->growth_steps = n;
  result->growth_from_bytes = floors[first];
  result->growth_to_bytes = floors[last];
  if (line.slope > 0)
    find_growth_source(history, at[first], at[last], arena, result);
}

void memory_find_growth(const struct memory_history *history, struct arena *arena,
                        struct memory_result *result) {
  if (!history->n_steps) {
    result->growth_reason = "no steps were found in the recording";
    return;
  }
  /* Steps of a snapshot are its own; those of a trace are the report's. */
  result->step_peak_bytes = arena_array(arena, history->n_steps, sizeof(double));
  result->n_step_peaks = history->n_steps;
  SCOPED double *floors =
      memory_array(size_product(4, size_sum(history->n_steps, 1)), sizeof(*floors));
  SCOPED u32 *at = memory_array(size_sum(history->n_steps, 1), sizeof(*at));
  if (find_extremes(history, floors, at, result->step_peak_bytes) <
      GROWTH_LEAST_STEPS + GROWTH_WARMUP_STEPS)
    result->growth_reason = "too few steps to distinguish growth from chance";
  else
    fit_growth(history, floors, at, floors + history->n_steps, arena, result);
}
