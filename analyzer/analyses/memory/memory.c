/* SPDX-License-Identifier: MIT
 *
 * Device memory over all ranks: every history is analysed, one at a time on each thread; the one
 * with the highest peak is reported in full.
 */
#include "analyses/memory/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/steps/series.h"
#include "analyses/thresholds.h"
#include "base/carrier.h"
#include "base/parallel.h"
#include "base/sorting.h"
#include "base/vector.h"

#define MOST_NOTES 8u /* that the parts add to the history's own */

struct memory_result memory_result_unknown(void) {
  struct memory_result result = unknown_memory_result;
  result.segments = unknown_memory_segments;
  result.growth_steps = result.growth_from_bytes = result.growth_to_bytes = NAN;
  result.growth_source_share = NAN;
  result.oom_requested_bytes = result.oom_free_bytes = result.oom_inactive_bytes = NAN;
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
  FOR_EACH(history->events, history->n_events, event) {
    if (event->kind != MEMORY_OUT_OF_MEMORY)
      continue;
    result->out_of_memory++;
    result->oom_requested_bytes = memory_bytes(event->bytes);
    result->oom_free_bytes = event->address ? (double)event->address : NAN;
    result->oom_inactive_bytes = memory_bytes(event->reserved) - memory_bytes(event->allocated);
  }
}

static void find_capacity(const struct analysis *a, const struct memory_history *history,
                          struct memory_result *result) {
  u32 rank = model_rank_index(a->model, history->rank);
  double capacity = rank == INDEX_NONE ? NAN : gpu_memory_bytes(a->model->ranks[rank].info);
  if (history->device < 0) /* the CPU's is shared with whatever else runs there */
    return;
  if (history->capacity > 0) {
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
  result->steps_method = arena_text(arena, history->steps_method);
  FOR_EACH(history->notes, history->n_notes, one) {
    char *note = arena_text(arena, *one);
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

/* Reads one history and analyses it; text of the result goes into `arena`. False if it cannot be
 * read: it is left out. */
static bool analyse_origin(struct analysis *a, const struct memory_origin *origin,
                           struct arena *arena, struct memory_result *result) {
  SCOPED_ARENA struct arena reading = {0};
  struct memory_history history;
  memset(&history, 0, sizeof(history));
  bool good = origin->read(a->model, origin, &reading, &history) == 0;
  if (good)
    analyse_history(a, &history, arena, result);
  return good;
}

struct place {
  u32 rank, number; /* of the model's ranks, n_ranks for inputs without; of its devices */
};

struct found_device {
  struct place place;
  struct memory_device device;
};

struct memory_sums {
  pthread_mutex_t lock;
  VECTOR(struct found_device) devices;
  struct found_device first; /* the one that is reported in full */
  struct memory_result result;
  struct arena arena; /* of this result */
  bool *with_rank;    /* [n_memories] was analysed with its rank */
};

static struct memory_device device_of(const struct memory_result *result) {
  return (struct memory_device){
      SAME(result, rank, device, peak_allocated_bytes, peak_reserved_bytes, allocated_bytes,
           reserved_bytes, inactive_bytes, fragmentation, growth_bytes_per_step, out_of_memory)};
}

/* A place is the first member of a found_device. */
ORDER_BY(by_place, struct place, UP(rank) UP(number))

/* First where memory ran out, then GPUs, then where most was allocated. */
static bool comes_first(const struct found_device *one, const struct found_device *other) {
  const struct memory_device *a = &one->device, *b = &other->device;
  bool out = a->out_of_memory > 0, other_out = b->out_of_memory > 0;
  bool gpu = !isnan(a->device), other_gpu = !isnan(b->device);
  if (out != other_out)
    return out;
  if (gpu != other_gpu)
    return gpu;
  double peak = a->peak_allocated_bytes, other_peak = b->peak_allocated_bytes;
  if (peak != other_peak && !(isnan(peak) && isnan(other_peak)))
    return peak > other_peak || isnan(other_peak);
  return by_place(&one->place, &other->place) < 0;
}

/* The arena, in which the result's text lives, is then no longer the caller's. */
static void add_device(struct analysis *a, struct place place, const struct memory_result *result,
                       struct arena *arena) {
  struct memory_sums *sums = a->memory_sums;
  struct found_device found = {place, device_of(result)};
  series_add_memory(a, result->rank, result->step_peak_bytes, result->n_step_peaks);
  pthread_mutex_lock(&sums->lock);
  if (!sums->devices.n || comes_first(&found, &sums->first)) {
    struct arena before = sums->arena;
    sums->first = found;
    sums->result = *result;
    sums->arena = *arena;
    *arena = before;
  }
  VECTOR_PUSH(&sums->devices, found);
  pthread_mutex_unlock(&sums->lock);
  arena_release(arena);
}

void memory_prepare(struct analysis *a) {
  struct memory_sums *sums = a->memory_sums = arena_alloc(a->arena, sizeof(*sums));
  pthread_mutex_init(&sums->lock, NULL);
  sums->with_rank = arena_array(a->arena, a->model->n_memories, sizeof(bool));
}

static void carry_result(struct carrier *c, struct memory_result *result, struct arena *arena) {
  struct arena *before = carrier_read_into(c, arena);
  memory_carry_result(c, result);
  carrier_read_into(c, before);
}

/* What the rank's own trace says of its devices. */
void memory_rank(struct analysis *a, const struct timeline *timeline) {
  const struct model *model = a->model;
  struct carrier *keeps = analysis_keeps(a, timeline->rank);
  u32 number = 0;
  for (u32 i = 0; i < model->n_memories; i++) {
    const struct memory_origin *origin = &model->memories[i];
    struct arena arena = {0};
    struct memory_result result;
    if (!origin->on_axis || origin->rank != model->ranks[timeline->rank].rank)
      continue;
    a->memory_sums->with_rank[i] = true;
    if (!analyse_origin(a, origin, &arena, &result))
      continue;
    bool more = true;
    if (keeps) {
      CARRY(keeps, &more);
      carry_result(keeps, &result, &arena);
    }
    add_device(a, (struct place){timeline->rank, number++}, &result, &arena);
  }
  bool more = false;
  if (keeps)
    CARRY(keeps, &more);
}

/* memory_rank() writes. */
void memory_carry(struct analysis *a, u32 rank, struct carrier *c) {
  bool more = c->reads;
  if (more)
    CARRY(c, &more);
  for (u32 number = 0; more && !c->bad; number++) {
    struct arena arena = {0};
    struct memory_result result = {0};
    carry_result(c, &result, &arena);
    CARRY(c, &more);
    if (!c->bad)
      add_device(a, (struct place){rank, number}, &result, &arena);
    else
      arena_release(&arena);
  }
}

static void analyse_other(void *user, u32 index, unsigned worker) {
  struct analysis *a = user;
  struct arena arena = {0};
  struct memory_result result;
  (void)worker;
  if (!a->memory_sums->with_rank[index] &&
      analyse_origin(a, &a->model->memories[index], &arena, &result))
    add_device(a, (struct place){a->model->n_ranks, index}, &result, &arena);
}

/* The result outlives the sums. */
static void copy_result(struct analysis *a, struct memory_result *out) {
  struct carrier written = carrier_to_write(a->arena);
  memory_carry_result(&written, &a->memory_sums->result);
  struct carrier c = carrier_to_read(written.written.at, written.written.n, a->arena);
  memory_carry_result(&c, out);
  carrier_free(&c);
  carrier_free(&written);
}

void memory_summarise(struct analysis *a) {
  struct memory_result *result = &a->results->memory;
  struct memory_sums *sums = a->memory_sums;
  *result = memory_result_unknown();
  result->reason = "no input says what was allocated: run a PyTorch job with tscope, or use "
                   "torch.cuda.memory._dump_snapshot()";
  parallel_for(a->model->n_memories, a->options->threads, analyse_other, a);
  if (!sums->devices.n)
    return;
  copy_result(a, result);
  if (a->options->gpu_bytes > 0 && !isnan(result->device)) {
    result->capacity_bytes = a->options->gpu_bytes;
    result->capacity_source = "as given";
    fill_headroom(result);
  }
  if (result->n_step_peaks != a->model->steps.n)
    result->n_step_peaks = 0; /* a snapshot's steps are its own */
  SORT(sums->devices.at, sums->devices.n, by_place);
  result->n_devices = sums->devices.n;
  result->devices = arena_array(a->arena, sums->devices.n, sizeof(*result->devices));
  for (u32 i = 0; i < sums->devices.n; i++)
    result->devices[i] = sums->devices.at[i].device;
}

void memory_release(struct analysis *a) {
  pthread_mutex_destroy(&a->memory_sums->lock);
  free(a->memory_sums->devices.at);
  arena_release(&a->memory_sums->arena);
}
