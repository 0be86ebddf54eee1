/* SPDX-License-Identifier: MIT
 *
 * How GPU time was had, in words: which source, for how much of the run, and why not for the rest.
 */
#include <math.h>

#include "analysis.h"

static const char *gpu_clock_name(enum tscope_gpu_clock clock) {
  switch (clock) {
#define X(NAME, value, text)                                                                       \
  case value:                                                                                      \
    return text;
    TSCOPE_GPU_CLOCKS(X)
#undef X
  }
  return "not known";
}

/* The way in which a rank's GPU time was had for the longest. */
static const struct gpu_window *main_window(const struct rank *rank) {
  i64 sums[8] = {0}, most = -1;
  const struct gpu_window *main = NULL;
  for (u32 i = 0; i < rank->n_gpu_windows; i++) {
    const struct gpu_window *window = &rank->gpu_windows[i];
    i64 begin = window->start > rank->begin ? window->start : rank->begin;
    i64 end = window->end < rank->end ? window->end : rank->end;
    sums[window->clock % 8] += end > begin ? end - begin : 0;
  }
  for (u32 i = 0; i < rank->n_gpu_windows; i++)
    if (sums[rank->gpu_windows[i].clock % 8] > most) {
      most = sums[rank->gpu_windows[i].clock % 8];
      main = &rank->gpu_windows[i];
    }
  return main;
}

static enum tscope_gpu_clock main_clock(const struct rank *rank) {
  const struct gpu_window *window = main_window(rank);
  return window ? (enum tscope_gpu_clock)window->clock : rank->gpu_clock;
}

/* For how much of the time that ranks ran their GPU time was had by CUPTI, and how often that
 * changed. */
static char *describe_changes(struct analysis *a) {
  double seen = 0, all = 0;
  u32 changes = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank *rank = &a->model->ranks[i];
    changes += rank->n_gpu_windows > 1 ? rank->n_gpu_windows - 1 : 0;
    all += (double)(rank->end - rank->begin);
    for (u32 w = 0; w < rank->n_gpu_windows; w++) {
      const struct gpu_window *window = &rank->gpu_windows[w];
      i64 begin = window->start > rank->begin ? window->start : rank->begin;
      i64 end = window->end < rank->end ? window->end : rank->end;
      if (window->clock == TSCOPE_GPU_CLOCK_CUPTI && end > begin)
        seen += (double)(end - begin);
    }
  }
  return changes ? arena_printf(a->arena, ", open for %.1f %% of the run, changed %u times",
                                all > 0 ? 100 * seen / all : 0, changes)
                 : arena_text(a->arena, "");
}

static double event_error_us(const struct model *model) {
  double most = 0;
  for (u32 i = 0; i < model->n_ranks; i++)
    most = fmax(most, (double)model->ranks[i].gpu_event_error_ns / 1e3);
  return most;
}

const char *gpu_timing_describe(struct analysis *a) {
  const struct model *model = a->model;
  u32 same = 0, on_gpu = 0;
  if (model->n_ranks == 0)
    return "not known";
  const struct rank *first = &model->ranks[0];
  for (u32 i = 0; i < model->n_ranks; i++) {
    on_gpu += a->ranks[i].on_gpu || model->ranks[i].launches > 0;
    same += main_clock(&model->ranks[i]) == main_clock(first);
  }
  if (on_gpu == 0)
    return "not needed: no GPU work was seen";
  if (model->recorder)
    return arena_printf(a->arena, "as %s recorded it", model->recorder);
  const char *name = gpu_clock_name(main_clock(first));
  const struct gpu_window *window = main_window(first);
  const char *reason = window ? window->reason : first->gpu_clock_reason;
  const char *changes = describe_changes(a);
  if (!changes)
    return NULL;
  if (same < model->n_ranks)
    return arena_printf(a->arena, "%s on %u of %u ranks%s", name, same, model->n_ranks, changes);
  if (main_clock(first) == TSCOPE_GPU_CLOCK_EVENTS)
    return arena_printf(a->arena,
                        "%s around collectives, no other kernels (%s); within %.0f us, and starts "
                        "may be early by the time of the launching call%s",
                        name, reason ? reason : "", event_error_us(model), changes);
  if (main_clock(first) != TSCOPE_GPU_CLOCK_CUPTI && reason)
    return arena_printf(a->arena, "%s (%s)%s", name, reason, changes);
  return arena_printf(a->arena, "%s%s", name, changes);
}

/* Why the GPU was not watched for a while, as most of that time says it. */
const char *gpu_timing_why_not_taken(struct analysis *a) {
  const char *why = NULL;
  i64 longest = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank *rank = &a->model->ranks[i];
    for (u32 w = 0; w < rank->n_gpu_windows; w++) {
      const struct gpu_window *window = &rank->gpu_windows[w];
      i64 begin = window->start > rank->begin ? window->start : rank->begin;
      i64 end = window->end < rank->end ? window->end : rank->end;
      if (window->clock == TSCOPE_GPU_CLOCK_CUPTI || end - begin <= longest)
        continue;
      longest = end - begin;
      why = window->reason;
    }
  }
  return arena_printf(a->arena, "the others are left out of all figures of GPU time%s%s",
                      why ? ": " : "", why ? why : "");
}
