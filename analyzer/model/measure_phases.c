/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/intervals.h"
#include "base/parallel.h"
#include "import/tscope/files/chunk_order.h"
#include "model/internal.h"

static int by_start(const void *left, const void *right) {
  const struct interval *a = left, *b = right;
  return a->start < b->start ? -1 : a->start > b->start;
}

int unite_phases(const struct spine *spine, u8 kind, struct arena *arena, struct intervals *out) {
  struct interval *found = arena_array(arena, spine->phases.n + 1, sizeof *found);
  u32 n = 0;
  *out = (struct intervals){.at = arena_array(arena, spine->phases.n + 1, sizeof *out->at)};
  if (!found || !out->at)
    return -ENOMEM;
  for (u32 i = 0; i < spine->phases.n; i++) {
    const struct spine_phase *phase = &spine->phases.at[i];
    if (phase->kind == kind && phase->end != NS_UNKNOWN)
      found[n++] = (struct interval){phase->start, phase->end};
  }
  if (n)
    qsort(found, n, sizeof *found, by_start);
  for (u32 i = 0; i < n; i++)
    intervals_append(out, found[i].start, found[i].end);
  return 0;
}

struct measuring {
  struct model *model;
  bool *found; /* [n_ranks] whether the rank gave any evidence */
};

static struct phase_times *cell_of(const struct model *model, u32 step, u32 rank) {
  return &model->phases[(size_t)step * model->n_ranks + rank];
}

static i64 *time_of(struct phase_times *times, u8 kind) {
  switch (kind) {
  case TSCOPE_PHASE_DATA:
    return &times->data;
  case TSCOPE_PHASE_FORWARD:
    return &times->forward;
  case TSCOPE_PHASE_BACKWARD:
    return &times->backward;
  default:
    return &times->optimizer;
  }
}

static void add_other(const struct model *model, u32 rank) {
  for (u32 s = 0; s < model->steps.n; s++) {
    size_t cell = (size_t)s * model->n_ranks + rank;
    struct phase_times *times = &model->phases[cell];
    if (model->steps.host_begin[cell] == NS_UNKNOWN)
      continue;
    i64 left = model->steps.host_end[cell] - model->steps.host_begin[cell];
    bool any = false;
    for (u8 kind = TSCOPE_PHASE_DATA; kind <= (u8)TSCOPE_PHASE_OPTIMIZER; kind++) {
      i64 time = *time_of(times, kind);
      any |= time != NS_UNKNOWN;
      left -= time == NS_UNKNOWN ? 0 : time;
    }
    if (any)
      times->other = left;
  }
}

/* Time of one kind in each step. */
static void fill_kind(const struct model *model, u32 rank, u8 kind, const struct intervals *set) {
  u32 cursor = 0;
  for (u32 s = 0; s < model->steps.n; s++) {
    size_t cell = (size_t)s * model->n_ranks + rank;
    if (model->steps.host_begin[cell] != NS_UNKNOWN)
      *time_of(&model->phases[cell], kind) = intervals_covered(
          set, &cursor, model->steps.host_begin[cell], model->steps.host_end[cell]);
  }
}

/* Takes out of `outer` what lies whole within one of its intervals. */
static int take_nested_out(struct arena *arena, struct intervals *outer,
                           const struct intervals *inner) {
  struct intervals nested = {.at = arena_array(arena, inner->n + 1u, sizeof *nested.at)}, rest;
  if (!nested.at)
    return -ENOMEM;
  for (u32 i = 0, k = 0; i < inner->n; i++) {
    while (k < outer->n && outer->at[k].end < inner->at[i].end)
      k++;
    if (k < outer->n && outer->at[k].start <= inner->at[i].start)
      intervals_append(&nested, inner->at[i].start, inner->at[i].end);
  }
  int result = intervals_subtract(arena, outer, &nested, &rest);
  if (result == 0)
    *outer = rest;
  return result;
}

/* An optimizer's step that is handed a closure (LBFGS; Lightning always) runs the forward and the
 * backward in it. */
static int unite_optimizer(const struct spine *spine, struct arena *arena, struct intervals *out) {
  static const u8 closure[] = {TSCOPE_PHASE_BACKWARD, TSCOPE_PHASE_FORWARD, TSCOPE_PHASE_DATA};
  int result = unite_phases(spine, TSCOPE_PHASE_OPTIMIZER, arena, out);
  for (u32 i = 0; i < sizeof closure && result == 0; i++) {
    struct intervals inner;
    result = unite_phases(spine, closure[i], arena, &inner);
    if (result == 0)
      result = take_nested_out(arena, out, &inner);
  }
  return result;
}

/* No instant counts twice: an optimizer run inside backward is optimizer, what an optimizer runs in
 * its closure is not; a forward recomputed inside backward (activation checkpointing) is backward,
 * what is left of data loading is data. */
static int measure_rank(void *user, u32 r, unsigned worker) {
  static const u8 order[] = {TSCOPE_PHASE_OPTIMIZER, TSCOPE_PHASE_BACKWARD, TSCOPE_PHASE_FORWARD,
                             TSCOPE_PHASE_DATA};
  struct measuring *measuring = user;
  const struct model *model = measuring->model;
  const struct spine *spine = &internal_of(model)->spines[r];
  struct arena arena = {0};
  struct intervals taken = {0}, all, own, rest;
  int result = 0;
  (void)worker;
  for (u32 i = 0; i < sizeof order && result == 0; i++, taken = all) {
    result = order[i] == TSCOPE_PHASE_OPTIMIZER ? unite_optimizer(spine, &arena, &own)
                                                : unite_phases(spine, order[i], &arena, &own);
    if (result == 0)
      result = intervals_subtract(&arena, &own, &taken, &rest);
    if (result == 0)
      result = intervals_union(&arena, &own, &taken, &all);
    if (result < 0 || own.n == 0)
      continue;
    measuring->found[r] = true;
    fill_kind(model, r, order[i], &rest);
  }
  arena_release(&arena);
  if (result == 0 && measuring->found[r])
    add_other(model, r);
  return result;
}

/* One host call that ended, and the first copy to the device after it. */
struct pauses {
  const struct model *model;
  u32 rank;
  const struct spine *spine;
  struct chunk_clock clock;
  i64 *begin; /* [steps] when the host turned to each step */
  u32 thread, next_call;
  i64 idle_since; /* end of the thread's last call */
  bool found;
};

/* The host turns to a step when it has made the last collective call of the one before: a loader
 * may fetch the input before the step is marked. */
static void find_host_begins(struct pauses *pauses) {
  const struct model *model = pauses->model;
  const struct spine *spine = pauses->spine;
  for (u32 s = 0; s < model->steps.n; s++)
    pauses->begin[s] = model->steps.host_begin[(size_t)s * model->n_ranks + pauses->rank];
  for (u32 i = 0; i < spine->calls.n; i++) {
    i32 step = model->arrivals[spine->calls.at[i].arrival].step;
    i64 end = spine->calls.at[i].end;
    if (step >= 0 && (u32)step + 1 < model->steps.n && end != NS_UNKNOWN)
      pauses->begin[step + 1] = end;
  }
}

static i32 host_step_at(const struct pauses *pauses, i64 time) {
  u32 low = 0, high = pauses->model->steps.n;
  while (high > 0 && pauses->begin[high - 1] == NS_UNKNOWN)
    high--;
  while (low < high) { /* the first step that begins later; unknown ones sort before all */
    u32 middle = low + (high - low) / 2;
    if (pauses->begin[middle] <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && pauses->begin[low - 1] != NS_UNKNOWN ? (i32)low - 1 : -1;
}

/* Collective calls are in the spine: those that were over by `time` ended a pause too. */
static void catch_up(struct pauses *pauses, i64 time) {
  while (pauses->next_call < pauses->spine->calls.n &&
         pauses->spine->calls.at[pauses->next_call].start < time) {
    const struct spine_call *call = &pauses->spine->calls.at[pauses->next_call++];
    if (call->thread == pauses->thread && call->end > pauses->idle_since)
      pauses->idle_since = call->end;
  }
}

static void see_call(struct pauses *pauses, const struct tscope_record *record, u64 time) {
  const struct rank_clock *clock = &internal_of(pauses->model)->clocks[pauses->rank];
  const struct tscope_copy_record *copy = (const void *)record; /* dur comes first in all of them */
  bool to_device = record->type == TSCOPE_REC_COPY && (copy->kind & 0xff) == TSCOPE_COPY_H2D;
  if (to_device) {
    i64 start = clock_to_axis(clock, chunk_ns(&pauses->clock, time));
    i32 step = host_step_at(pauses, start);
    i64 *data = step < 0 ? NULL : &cell_of(pauses->model, (u32)step, pauses->rank)->data;
    if (data && *data == NS_UNKNOWN) {
      i64 begin = pauses->begin[step];
      catch_up(pauses, start);
      i64 since = pauses->idle_since > begin ? pauses->idle_since : begin;
      *data = start > since ? start - since : 0;
      pauses->found = true;
    }
  }
  i64 end = clock_to_axis(clock, chunk_ns(&pauses->clock, time + copy->dur));
  if (end > pauses->idle_since)
    pauses->idle_since = end;
}

static void see_chunk(struct pauses *pauses, const struct trace_chunk *chunk) {
  struct trace_cursor cursor = trace_records(chunk);
  pauses->clock = chunk_clock(&pauses->spine->definitions.ticks, &chunk->header);
  if (pauses->thread != chunk->header.thread) {
    pauses->thread = chunk->header.thread;
    pauses->idle_since = NS_UNKNOWN;
    pauses->next_call = 0;
  }
  for (const struct tscope_record *record; (record = trace_next(&cursor));)
    if (record->type >= TSCOPE_REC_LAUNCH && record->type <= TSCOPE_REC_EVENT_WAIT)
      see_call(pauses, record, trace_time(&cursor, record));
}

static int infer_rank(void *user, u32 r, unsigned worker) {
  struct measuring *measuring = user;
  struct trace_file file;
  char why[256];
  (void)worker;
  if (trace_file_open(&file, measuring->model->ranks[r].path, why, sizeof why) < 0)
    return 0; /* the file went away since: nothing is known */
  struct pauses pauses = {.model = measuring->model,
                          .rank = r,
                          .spine = &internal_of(measuring->model)->spines[r],
                          .begin = malloc((measuring->model->steps.n + 1) * sizeof(i64)),
                          .thread = TSCOPE_UNKNOWN};
  u32 n = 0;
  struct chunk_place *places = detail_chunks(&file, &n);
  u8 *buffer = malloc(file.header.chunk_bytes);
  struct trace_chunk chunk;
  if (pauses.begin)
    find_host_begins(&pauses);
  for (u32 i = 0; i < n && places && buffer && pauses.begin; i++)
    if (places[i].clock == TSCOPE_CLOCK_TICKS &&
        trace_chunk_read(&file, places[i].index, buffer, &chunk) == TRACE_CHUNK_READ)
      see_chunk(&pauses, &chunk);
  measuring->found[r] = pauses.found;
  bool enough = places && buffer && pauses.begin;
  free(pauses.begin);
  free(places);
  free(buffer);
  trace_file_close(&file);
  if (!enough)
    return -ENOMEM;
  if (pauses.found)
    add_other(measuring->model, r);
  return 0;
}

static bool any_found(const struct measuring *measuring) {
  for (u32 r = 0; r < measuring->model->n_ranks; r++)
    if (measuring->found[r])
      return true;
  return false;
}

int measure_phases(struct model *model, const struct model_options *options) {
  size_t cells = (size_t)model->steps.n * model->n_ranks;
  struct measuring measuring = {.model = model, .found = calloc(model->n_ranks + 1, 1)};
  model->phases = arena_array(&internal_of(model)->arena, cells + 1, sizeof *model->phases);
  if (!measuring.found || !model->phases) {
    free(measuring.found);
    return -ENOMEM;
  }
  for (size_t i = 0; i < cells; i++)
    model->phases[i] =
        (struct phase_times){NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN};
  u64 launches = 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    launches += model->ranks[r].launches;
  int result = parallel_for(model->n_ranks, options->threads, measure_rank, &measuring);
  if (result == 0 && any_found(&measuring)) {
    model->phase_method = "ranges of the framework or the user";
  } else if (result == 0 && launches && cells) {
    result = parallel_for(model->n_ranks, options->threads, infer_rank, &measuring);
    if (any_found(&measuring))
      model->phase_method =
          "inferred from the host's pause before each step's first copy to the GPU";
  }
  if (!model->phase_method)
    model->phases = NULL;
  free(measuring.found);
  return result;
}
