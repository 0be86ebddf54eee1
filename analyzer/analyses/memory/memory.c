/* SPDX-License-Identifier: MIT
 *
 * Device memory over all ranks: every history is analysed, one at a time on each thread; the one
 * with the highest peak is reported in full.
 */
#include "analyses/memory/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/steps/series.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/parallel.h"

#define MOST_NOTES 8u /* that the parts add to the history's own */

struct memory_result memory_result_unknown(void) {
  struct memory_result result = {0};
  result.rank = result.device = result.events = result.lost = NAN;
  result.peak_allocated_bytes = result.peak_reserved_bytes = NAN;
  result.peak_time_s = result.peak_step = result.peak_needed_bytes = NAN;
  result.peak_unused_bytes = NAN;
  result.allocated_bytes = result.reserved_bytes = result.inactive_bytes = NAN;
  result.pending_bytes = result.slack_bytes = result.before_bytes = result.fragmentation = NAN;
  result.growth_bytes_per_step = result.growth_steps = result.steps = NAN;
  result.growth_samples = NAN;
  result.growth_from_bytes = result.growth_to_bytes = result.growth_source_share = NAN;
  result.capacity_bytes = result.headroom_bytes = result.out_of_memory = NAN;
  result.oom_requested_bytes = result.oom_free_bytes = result.oom_inactive_bytes = NAN;
  result.churn_allocations = result.churn_bytes = NAN;
  struct memory_segments *segments = &result.segments;
  segments->count = segments->large = segments->small = segments->expandable = NAN;
  segments->private_pool = segments->unused_bytes = segments->stranded_bytes = NAN;
  segments->gaps = segments->largest_gap_bytes = segments->pinned_blocks = NAN;
  segments->pinned_bytes = segments->pinned_gap_bytes = segments->obtained = NAN;
  segments->returned = segments->obtained_bytes = segments->returned_bytes = NAN;
  segments->refetched = segments->rounds = segments->expandable_frees_bytes = NAN;
  return result;
}

static void fill_totals(const struct memory_history *history, struct memory_result *result) {
  result->rank = history->rank == INDEX_NONE ? NAN : history->rank;
  result->device = history->device < 0 ? NAN : history->device;
  result->events = history->n_events;
  result->lost = (double)history->lost;
  result->allocated_bytes = memory_bytes(history->allocated_at_end);
  result->reserved_bytes = memory_bytes(history->reserved_at_end);
  result->inactive_bytes = result->reserved_bytes - result->allocated_bytes;
  result->pending_bytes = memory_bytes(history->pending_at_end);
  result->slack_bytes = result->allocated_bytes - memory_bytes(history->requested_at_end);
  result->before_bytes = memory_bytes(history->allocated_before);
  result->fragmentation = result->reserved_bytes > 0
                              ? result->inactive_bytes / result->reserved_bytes
                          : result->reserved_bytes == 0 ? 0
                                                        : NAN;
  result->steps = history->n_steps ? history->n_steps : NAN;
  result->steps_are_certain = history->steps_are_certain;
}

/* The last time that memory ran out shows what was missing. */
static void fill_out_of_memory(const struct memory_history *history, struct memory_result *result) {
  result->out_of_memory = 0;
  for (u32 i = 0; i < history->n_events; i++) {
    const struct memory_event *event = &history->events[i];
    if (event->kind != MEMORY_OUT_OF_MEMORY)
      continue;
    result->out_of_memory++;
    result->oom_requested_bytes = memory_bytes(event->bytes);
    result->oom_free_bytes = event->address ? (double)event->address : NAN;
    result->oom_inactive_bytes = memory_bytes(event->reserved) - memory_bytes(event->allocated);
  }
}

static const struct rank *rank_of(const struct model *model, u32 rank) {
  for (u32 i = 0; i < model->n_ranks; i++)
    if (model->ranks[i].rank == rank)
      return &model->ranks[i];
  return NULL;
}

static void find_capacity(const struct analysis *a, const struct memory_history *history,
                          struct memory_result *result) {
  const struct rank *rank = rank_of(a->model, history->rank);
  const char *known = rank ? rank->info[TSCOPE_INFO_GPU_MEMORY] : NULL;
  double capacity = known ? strtod(known, NULL) : 0;
  if (history->device < 0) /* the CPU's is shared with whatever else runs there */
    return;
  if (a->options->gpu_bytes > 0) {
    result->capacity_bytes = a->options->gpu_bytes;
    result->capacity_source = "as given";
  } else if (history->capacity > 0) {
    result->capacity_bytes = (double)history->capacity;
    result->capacity_source = "as recorded";
  } else if (capacity > 0) {
    result->capacity_bytes = capacity;
    result->capacity_source = "as the device reported";
  }
}

static void fill_headroom(struct memory_result *result) {
  double peak = result->peak_reserved_bytes, capacity = result->capacity_bytes;
  result->headroom_bytes = capacity - peak;
  double growth = result->growth_bytes_per_step;
  bool fills = growth > 0 && result->headroom_bytes / growth < GROWTH_STEPS_TO_FULL;
  if (result->out_of_memory > 0)
    result->oom_risk = OOM_HAPPENED;
  else if (isnan(peak) || isnan(capacity))
    result->oom_risk = OOM_UNKNOWN;
  else if (peak >= OOM_RISK_HIGH * capacity || fills)
    result->oom_risk = OOM_HIGH;
  else
    result->oom_risk = peak >= OOM_RISK_MEDIUM * capacity ? OOM_MEDIUM : OOM_LOW;
}

static void copy_notes(const struct memory_history *history, struct arena *arena,
                       struct memory_result *result) {
  result->notes =
      arena_array(arena, size_sum(history->n_notes, MOST_NOTES), sizeof(*result->notes));
  result->origin = arena_text(arena, history->origin ? history->origin : "unknown");
  result->steps_method = history->steps_method ? arena_text(arena, history->steps_method) : NULL;
  for (u32 i = 0; i < history->n_notes; i++) {
    char *note = arena_text(arena, history->notes[i]);
    result->notes[result->n_notes++] = note;
  }
}

/* What the allocator could have given back as it was is not lost between blocks. */
static void fill_unused(struct memory_result *result) {
  double needed = fmin(result->peak_needed_bytes, result->peak_reserved_bytes);
  result->peak_unused_bytes = fmax(0, needed - result->peak_allocated_bytes);
  if (isnan(result->peak_reserved_bytes) || isnan(result->peak_allocated_bytes))
    result->peak_unused_bytes = NAN;
}

/* Everything that one history shows. */
static void analyse_history(const struct analysis *a, const struct memory_history *history,
                            struct arena *arena, struct memory_result *result) {
  *result = memory_result_unknown();
  copy_notes(history, arena, result);
  fill_totals(history, result);
  fill_out_of_memory(history, result);
  find_capacity(a, history, result);
  memory_find_peak(history, arena, result);
  memory_find_needed(history, result);
  fill_unused(result);
  memory_analyse_segments(history, arena, result);
  memory_find_growth(history, arena, result);
  memory_find_churn(history, arena, result);
  memory_draw_curve(history, arena, result);
  memory_draw_segments(history, arena, result);
  fill_headroom(result);
}

struct devices {
  struct analysis *a;
  struct memory_device *at;
  bool *failed;
};

/* Reads one history and analyses it; text of the result goes into `arena`. A history that cannot be
 * read is left out. */
static void analyse_origin(struct analysis *a, u32 index, struct arena *arena,
                           struct memory_result *result, bool *failed) {
  const struct memory_origin *origin = &a->model->memories[index];
  struct arena reading = {0};
  struct memory_history history;
  memset(&history, 0, sizeof(history));
  int error = origin->read(a->model, origin, &reading, &history);
  *failed = error != 0;
  if (!error)
    analyse_history(a, &history, arena, result);
  arena_release(&reading);
}

static int analyse_device(void *user, u32 index, unsigned worker) {
  struct devices *devices = user;
  struct memory_device *device = &devices->at[index];
  struct arena scratch = {0};
  struct memory_result result = memory_result_unknown();
  (void)worker;
  analyse_origin(devices->a, index, &scratch, &result, &devices->failed[index]);
  *device = (struct memory_device){.rank = result.rank,
                                   .device = result.device,
                                   .peak_allocated_bytes = result.peak_allocated_bytes,
                                   .peak_reserved_bytes = result.peak_reserved_bytes,
                                   .allocated_bytes = result.allocated_bytes,
                                   .reserved_bytes = result.reserved_bytes,
                                   .inactive_bytes = result.inactive_bytes,
                                   .fragmentation = result.fragmentation,
                                   .growth_bytes_per_step = result.growth_bytes_per_step,
                                   .out_of_memory = result.out_of_memory};
  series_add_memory(devices->a, result.rank, result.step_peak_bytes, result.n_step_peaks);
  arena_release(&scratch);
  return 0;
}

/* First where memory ran out, then GPUs, then where most was allocated. */
static bool comes_first(const struct memory_device *one, const struct memory_device *other) {
  bool out = one->out_of_memory > 0, other_out = other->out_of_memory > 0;
  bool gpu = !isnan(one->device), other_gpu = !isnan(other->device);
  if (out != other_out)
    return out;
  if (gpu != other_gpu)
    return gpu;
  return one->peak_allocated_bytes > other->peak_allocated_bytes ||
         isnan(other->peak_allocated_bytes);
}

void memory_analyse(struct analysis *a) {
  struct memory_result *result = &a->results->memory;
  u32 n = a->model->n_memories;
  *result = memory_result_unknown();
  result->reason = "no input says what was allocated: run a PyTorch job with tscope, or use "
                   "torch.cuda.memory._dump_snapshot()";
  if (!n)
    return;
  struct devices devices = {.a = a,
                            .at = arena_array(a->arena, n, sizeof(*devices.at)),
                            .failed = arena_array(a->arena, n, sizeof(bool))};
  parallel_for(n, a->options->threads, analyse_device, &devices);
  u32 worst = INDEX_NONE, kept = 0;
  for (u32 i = 0; i < n; i++)
    if (!devices.failed[i] &&
        (worst == INDEX_NONE || comes_first(&devices.at[i], &devices.at[worst])))
      worst = i;
  if (worst == INDEX_NONE)
    return;
  bool failed;
  analyse_origin(a, worst, a->arena, result, &failed);
  if (result->n_step_peaks != a->model->steps.n)
    result->n_step_peaks = 0; /* a snapshot's steps are its own */
  for (u32 i = 0; i < n; i++)
    if (!devices.failed[i])
      devices.at[kept++] = devices.at[i];
  result->devices = devices.at;
  result->n_devices = kept;
}
