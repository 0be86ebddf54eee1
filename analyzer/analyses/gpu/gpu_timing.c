/* SPDX-License-Identifier: MIT
 *
 * Describes the source of GPU time: which source, for how much of the run, and why not for the
 * rest.
 */
#include <math.h>

#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "format/gpu_reasons.h"

static const char *gpu_clock_name(enum tscope_gpu_clock clock) {
  const char *word = gpu_clock_word(clock);
  return word ? word : "not known";
}

/* How much of the rank's run it was. */
static i64 time_of(const struct rank *rank, const struct gpu_window *window) {
  i64 begin = MAX(window->start, rank->begin);
  i64 end = MIN(window->end, rank->end);
  return end > begin ? end - begin : 0;
}

/* The source that a rank's GPU time came from for the longest time. */
static const struct gpu_window *main_window(const struct rank *rank) {
  i64 sums[8] = {0};
  FOR_EACH(rank->gpu_windows, rank->n_gpu_windows, window)
    sums[window->clock % 8] += time_of(rank, window);
  return LARGEST(rank->gpu_windows, rank->n_gpu_windows, one, true, (double)sums[one->clock % 8]);
}

static enum tscope_gpu_clock main_clock(const struct rank *rank) {
  const struct gpu_window *window = main_window(rank);
  return window ? (enum tscope_gpu_clock)window->clock : rank->gpu_clock;
}

double gpu_timing_since_cupti(const struct rank *rank) {
  const struct gpu_window *first =
      FIND(rank->gpu_windows, rank->n_gpu_windows, one,
           one->clock == TSCOPE_GPU_CLOCK_CUPTI && one->start < rank->end);
  return first ? (double)(rank->end - MAX(first->start, rank->begin)) : 0;
}

/* Nanoseconds of the run in which CUPTI was open. */
static double under_cupti(const struct rank *rank) {
  return TOTAL(double, rank->gpu_windows, rank->n_gpu_windows, one,
               one->clock == TSCOPE_GPU_CLOCK_CUPTI ? (double)time_of(rank, one) : 0);
}

/* The share of the ranks' run time in which CUPTI was open; NAN if that never changed. */
static double share_watched(const struct model *model) {
  double seen = 0, all = 0;
  bool changed = false;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    changed |= rank->n_gpu_windows > 1;
    all += (double)(rank->end - rank->begin);
    seen += under_cupti(rank);
  }
  return changed && seen > 0 && all > 0 ? seen / all : NAN;
}

static double event_error_us(const struct model *model) {
  return MOST_OF(double, model->ranks, model->n_ranks, one, (double)one->gpu_event_error_ns / 1e3);
}

/* One source of GPU time, with its reason: the one that a rank used for the longest time. */
static const char *describe_source(struct analysis *a, const struct rank *rank) {
  enum tscope_gpu_clock clock = main_clock(rank);
  const struct gpu_window *window = main_window(rank);
  const char *name = gpu_clock_name(clock);
  const char *reason = window ? window->reason : rank->gpu_clock_reason;
  if (clock == TSCOPE_GPU_CLOCK_EVENTS)
    return say(a,
               "%s around collectives%s, no other kernels (%s); exact to %.0f us, but a start may "
               "be too early by the time of the launch call",
               name, a->results->gemms.sampled ? " and a sample of GEMMs" : "",
               text_or_empty(reason), event_error_us(a->model));
  if (clock != TSCOPE_GPU_CLOCK_CUPTI && reason)
    return say(a, "%s (%s)", name, reason);
  return name;
}

/* Each source with the ranks that used it, if ranks used different ones. */
static const char *describe_sources(struct analysis *a, struct arena *scratch) {
  const struct model *model = a->model;
  u32 *ranks = arena_array(scratch, model->n_ranks, sizeof(u32));
  const char *all = "";
  u32 listed = 0;
  for (u32 i = 0; i < model->n_ranks; i++) {
    enum tscope_gpu_clock clock = main_clock(&model->ranks[i]);
    if (listed >> clock & 1)
      continue;
    listed |= 1u << clock;
    u32 n = LIST_WHERE(ranks, i, model->n_ranks, k, main_clock(&model->ranks[k]) == clock,
                       model->ranks[k].rank);
    const char *source = describe_source(a, &model->ranks[i]);
    if (n == model->n_ranks || !source)
      return source;
    all = arena_list(a->arena, all, "; ", "%s: %s", ranks_in(a->arena, ranks, n), source);
  }
  return all;
}

/* The longest time in which CUPTI was not open; NULL if it always was. */
static const struct gpu_window *longest_unwatched(const struct model *model) {
  const struct gpu_window *most = NULL;
  i64 longest = 0;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    FOR_EACH(rank->gpu_windows, rank->n_gpu_windows, window) {
      i64 time = time_of(rank, window);
      if (window->clock == TSCOPE_GPU_CLOCK_CUPTI || time <= longest)
        continue;
      longest = time;
      most = window;
    }
  }
  return most;
}

static u32 count_changes(const struct model *model) {
  u32 sum = 0;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    sum += rank->n_gpu_windows > 1 ? rank->n_gpu_windows - 1 : 0;
    /* if the process did not end normally, its last window is the end and not a change of source */
    sum -= rank->n_gpu_windows > 1 && !rank->closed;
  }
  return sum;
}

const char *gpu_timing_describe(struct analysis *a) {
  const struct model *model = a->model;
  if (model->n_ranks == 0)
    return "not known";
  if (model->lengths_only)
    return say(a, "unknown: %s records none", model->recorder);
  if (!gpu_timing_any_work(a))
    return "not needed: no GPU work was seen";
  double watched = share_watched(model);
  if (model->recorder) {
    const char *why = isnan(watched) ? NULL : gpu_timing_why_not_watched(a);
    return why ? say(a, "as %s recorded it, for %s of the time: else %s", model->recorder,
                     percent(watched).text, why)
               : say(a, "as %s recorded it", model->recorder);
  }
  if (!isnan(watched)) {
    const struct gpu_window *other = longest_unwatched(model);
    u32 n = count_changes(model);
    const char *how_often = n ? say(a, " (changed %s)", plural(n, "time").text) : "";
    return say(a, "CUPTI activity for %s of the run%s, else %s (%s)", percent(watched).text,
               how_often, gpu_clock_name(other ? other->clock : TSCOPE_GPU_CLOCK_HOST),
               other && other->reason ? other->reason : "reason not recorded");
  }
  SCOPED_ARENA struct arena scratch = {0};
  return describe_sources(a, &scratch);
}

/* Why the GPU was not watched for a while: the reason for most of that time. */
const char *gpu_timing_why_not_watched(const struct analysis *a) {
  const struct gpu_window *other = longest_unwatched(a->model);
  return other ? other->reason : NULL;
}

const char *gpu_timing_why_no_times(struct analysis *a) {
  const char *why = gpu_timing_why_not_watched(a);
  return say(a, "the others are left out of all figures of GPU time%s", say_why(a, why));
}

const char *gpu_timing_reason(const struct model *model, const struct rank *rank) {
  if (model->recorder && main_clock(rank) == TSCOPE_GPU_CLOCK_CUPTI)
    return "no work on the GPU is known to be theirs";
  if (main_clock(rank) == TSCOPE_GPU_CLOCK_CUPTI)
    return rank->closed ? "CUPTI was open, but delivered no records of it"
                        : TSCOPE_REASON_CUT_SHORT " records of it";
  const struct gpu_window *window = main_window(rank);
  return window ? window->reason : rank->gpu_clock_reason;
}

bool gpu_timing_any_work(const struct analysis *a) {
  return ANY_NUMBER(0, a->model->n_ranks, i, a->ranks[i].on_gpu || a->model->ranks[i].launches);
}

const char *gpu_timing_why_nothing(const struct analysis *a) {
  const struct rank *rank =
      FIND(a->model->ranks, a->model->n_ranks, one, gpu_timing_reason(a->model, one));
  if (!gpu_timing_any_work(a))
    return "no GPU work was seen";
  return rank ? say(a, "WHAT RAN ON THE GPU WAS NOT SEEN: %s", gpu_timing_reason(a->model, rank))
              : "WHAT RAN ON THE GPU WAS NOT SEEN";
}

const char *gpu_timing_remedy(const struct model *model, const char *reason) {
  if (model->recorder)
    return "Record the device's activities too (of torch.profiler: CUDA, XPU or PrivateUse1), for "
           "whole steps, on every rank.";
  switch (tscope_gpu_reason_of(reason)) {
  case TSCOPE_GPU_REASON_STEPS:
    return "Let CUPTI work for at least two steps in a row (TSCOPE_GPU_STEPS=2/20): the first of "
           "them may begin with work that was launched before.";
  case TSCOPE_GPU_REASON_ONE_CONNECTION:
    return "Let tscope use CUPTI (TSCOPE_GPU unset, its library to be found): unlike events it "
           "does not disturb the overlap that CUDA_DEVICE_MAX_CONNECTIONS=1 is set for.";
  case TSCOPE_GPU_REASON_SETTING:
    return "Unset TSCOPE_GPU, or set it to auto: it keeps tscope from reading the times of all GPU "
           "work.";
  case TSCOPE_GPU_REASON_INJECTED:
    return "Run once without the tool in CUDA_INJECTION64_PATH: CUPTI allows only one.";
  case TSCOPE_GPU_REASON_CLIENT:
  case TSCOPE_GPU_REASON_PROFILES:
    return "Profile with tscope or with the job's own profiler, one at a time: CUPTI serves one "
           "client.";
  case TSCOPE_GPU_REASON_CUT_SHORT:
    return "See how the run ended. CUPTI delivers its records from time to time, and a process "
           "that is killed takes the last of them with it.";
  default:
    return "Let tscope read GPU times: CUPTI's library must be found (beside the CUDA runtime, or "
           "in LD_LIBRARY_PATH) and no other profiler may hold it; see the GPU time line for the "
           "reason.";
  }
}
