/* SPDX-License-Identifier: MIT
 *
 * When a rank's GPU was watched. The source sees only work that is launched while it is open, so
 * work launched before may still run unseen for a while after the opening.
 */

#include "base/checked_memory.h"
#include "base/intervals.h"
#include "join/joining.h"

/* The first collective seen after CUPTI was opened again has waited for all earlier work of its
 * stream. For a job without collectives, earlier work is assumed to be done when the next step that
 * began in the window is over, see model_gpu_seen(). */
static i64 earlier_work_done(const struct rank_events *events, const struct rank_gpu_state *state) {
  i64 start = state->time;
  if (state->settled)
    return start;
  FOR_EACH(events->runs.at, events->runs.n, run)
    if (run->start >= start)
      return run->start;
  return events->runs.n ? INT64_MAX : start;
}

static void list_windows_of_rank(struct model *model, u32 r) {
  const struct rank_events *events = model_events(model, r);
  struct rank *rank = &model->ranks[r];
  u32 n = events->gpu_states.n;
  rank->gpu_overhead_ns = events->gpu_overhead_ns;
  rank->gpu_event_error_ns = events->gpu_event_error_ns;
  rank->gpu_windows = arena_array(model_arena(model), n, sizeof(*rank->gpu_windows));
  for (u32 i = 0; i < n; i++) {
    const struct rank_gpu_state *state = &events->gpu_states.at[i];
    i64 end = i + 1 < n ? state[1].time : INT64_MAX;
    rank->gpu_windows[i] =
        (struct gpu_window){.start = i ? state->time : INT64_MIN + 1,
                            .end = end,
                            .settled = i ? earlier_work_done(events, state) : INT64_MIN + 1,
                            .reason = state->reason,
                            .clock = state->clock};
  }
  rank->n_gpu_windows = n;
}

void list_gpu_windows(struct model *model) {
  for (u32 r = 0; r < model->n_ranks; r++)
    list_windows_of_rank(model, r);
}

bool model_gpu_seen(const struct rank *rank, i64 begin, i64 end) {
  bool ever = false;
  FOR_EACH(rank->gpu_windows, rank->n_gpu_windows, window) {
    if (window->clock != TSCOPE_GPU_CLOCK_CUPTI)
      continue;
    ever = true;
    if (begin >= window->settled && end <= window->end)
      return true;
  }
  return !ever;
}

void model_gpu_known(const struct rank *rank, i64 from, struct arena *arena,
                     struct intervals *known) {
  bool ever = false;
  *known = (struct intervals){arena_array(arena, rank->n_gpu_windows, sizeof(*known->at)), 0};
  FOR_EACH(rank->gpu_windows, rank->n_gpu_windows, window) {
    if (window->clock != TSCOPE_GPU_CLOCK_CUPTI)
      continue;
    ever = true;
    i64 begin = MAX(window->settled, from);
    if (begin < window->end)
      intervals_append(known, begin, window->end);
  }
  if (!ever)
    intervals_append(known, from, INT64_MAX);
}
