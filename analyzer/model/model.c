/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/trace_words.h"
#include "kernels/communication.h"
#include "model/internal.h"

struct model *model_new(void) {
  struct model *model = memory_zeroed(1, sizeof(*model));
  struct model_internal *internal = memory_zeroed(1, sizeof(*internal));
  model->internal = internal;
  model->steps.method = "none";
  model->steps.confidence = NAN;
  model->clock_residual_us = NAN;
  model->clock_between_us = NAN;
  model->begin = model->end = NS_UNKNOWN;
  return model;
}

void model_free(struct model *model) {
  if (!model)
    return;
  struct model_internal *internal = internal_of(model);
  FOR_EACH_CHANGED(internal->events, internal->n_events, event)
    rank_events_release(event);
  if (internal->free_imported)
    internal->free_imported(internal->imported);
  FREE_EACH(internal, notes.at, sparse.at);
  arena_release(&internal->arena);
  free(internal);
  free(model);
}

void model_note(struct model *model, const char *format, ...) {
  struct model_internal *internal = internal_of(model);
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const char *note = arena_text(&internal->arena, text);
  VECTOR_PUSH(&internal->notes, note);
  model->notes = internal->notes.at;
  model->n_notes = internal->notes.n;
}

struct arena *model_arena(struct model *model) {
  return &internal_of(model)->arena;
}

void model_make_ranks(struct model *model, u32 n) {
  struct model_internal *internal = internal_of(model);
  for (u32 r = 0; r < internal->n_events; r++) /* of an input that could not be read to its end */
    rank_events_release(&internal->events[r]);
  internal->n_events = 0;
  model->ranks = arena_array(&internal->arena, n, sizeof(*model->ranks));
  internal->events = arena_array(&internal->arena, n, sizeof(*internal->events));
  internal->comm_of = arena_array(&internal->arena, n, sizeof(*internal->comm_of));
  internal->clocks = arena_array(&internal->arena, n, sizeof(*internal->clocks));
  model->n_ranks = internal->n_events = n;
}

void model_add_ranks(struct model *model, u32 n) {
  struct model_internal *internal = internal_of(model);
  const struct rank *ranks = model->ranks;
  const struct rank_events *events = internal->events;
  u32 before = model->n_ranks;
  internal->n_events = 0; /* they move */
  model_make_ranks(model, before + n);
  if (before) {
    memcpy(model->ranks, ranks, before * sizeof(*ranks));
    memcpy(internal->events, events, before * sizeof(*events));
  }
}

ORDER_INDICES_BY(by_rank, struct rank, UP(rank) LESS_FIRST(a, b))

void model_sort_ranks(struct model *model) {
  struct model_internal *internal = internal_of(model);
  u32 n = model->n_ranks;
  SCOPED u32 *order = memory_array(size_sum(n, 1), sizeof(*order));
  struct rank *ranks = model->ranks;
  const struct rank_events *events = internal->events;
  for (u32 i = 0; i < n; i++)
    order[i] = i;
  SORT_INDICES(order, n, ranks, by_rank);
  internal->n_events = 0;
  model_make_ranks(model, n);
  for (u32 i = 0; i < n; i++) {
    model->ranks[i] = ranks[order[i]];
    internal->events[i] = events[order[i]];
  }
}

void model_captures(const struct model *model, u32 rank, struct arena *arena,
                    struct intervals *captures) {
  const struct rank_events *events = model_events(model, rank);
  const struct rank_clock *clock = model_clock(model, rank);
  u32 n = events->captures.n;
  struct interval *placed = arena_array(arena, n, sizeof(*placed));
  for (u32 i = 0; i < n; i++)
    placed[i] = (struct interval){clock_to_axis(clock, events->captures.at[i].start),
                                  clock_to_axis(clock, events->captures.at[i].end)};
  intervals_unite(arena, placed, n, captures);
}

struct rank_events *model_events(const struct model *model, u32 rank) {
  return &internal_of(model)->events[rank];
}

struct model *model_with_events(const struct model *model, u32 rank,
                                const struct rank_events *events) {
  struct whole {
    struct model model;
    struct model_internal internal;
    struct rank_events events[];
  } *whole = memory_zeroed(1, sizeof(*whole) + size_product(model->n_ranks, sizeof(*events)));
  whole->model = *model;
  whole->internal = *internal_of(model);
  memcpy(whole->events, whole->internal.events, model->n_ranks * sizeof(*events));
  whole->events[rank] = *events;
  whole->internal.events = whole->events;
  whole->model.internal = &whole->internal;
  return &whole->model;
}

const struct rank_clock *model_clock(const struct model *model, u32 rank) {
  return &internal_of(model)->clocks[rank];
}

u32 model_comm_of(const struct model *model, u32 rank, u32 comm) {
  bool known = comm < internal_of(model)->events[rank].n_comms;
  return known ? internal_of(model)->comm_of[rank][comm] : INDEX_NONE;
}

void model_report_progress(const struct model_options *options, const char *what, double fraction) {
  if (options->progress)
    options->progress(options->user, what, fraction);
}

void model_set_imported(struct model *model, void *imported,
                        void (*free_imported)(void *imported)) {
  internal_of(model)->imported = imported;
  internal_of(model)->free_imported = free_imported;
}

const void *model_imported(const struct model *model) {
  return internal_of(model)->imported;
}

void model_name_marks(struct model *model, const char *marks_are) {
  internal_of(model)->marks_are = marks_are;
}

bool model_all_aligned(const struct model *model) {
  return model->clock_aligned && ALL(model->ranks, model->n_ranks, one, one->clock.aligned);
}

u32 model_missing_ranks(const struct model *model, u32 *ranks) {
  u32 n = 0, next = 0;
  for (u32 rank = 0; rank < model->world_size; rank++) {
    while (next < model->n_ranks && model->ranks[next].rank < rank)
      next++;
    if (next == model->n_ranks || model->ranks[next].rank != rank)
      ranks[n++] = rank;
  }
  return n;
}

double model_share_kept(const struct model *model) {
  double share = 1;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    double kept = (double)rank->records, lost = (double)rank->lost[TSCOPE_LOSS_RING];
    share = lost > 0 ? fmin(share, kept / (kept + lost)) : share;
  }
  return share;
}

double model_clock_error_ns(const struct model *model, u32 a, u32 b) {
  const struct clock_fit *x = &model->ranks[a].clock, *y = &model->ranks[b].clock;
  if (!model->clock_aligned || !x->aligned || !y->aligned)
    return INFINITY;
  double reading = fmax(x->reading_us, y->reading_us);
  return 1e3 * (x->domain == y->domain ? reading : x->error_us + y->error_us);
}

u32 model_rank_index(const struct model *model, u32 rank) {
  return INDEX_OF(model->ranks, model->n_ranks, one, one->rank == rank);
}

i64 model_arrival_ready(const struct model *model, const struct arrival *arrival) {
  if (arrival->times == TIMES_LEFT_OUT)
    return NS_UNKNOWN;
  bool on_host =
      model->comms[model->collectives[arrival->collective].comm].backend != TSCOPE_BACKEND_NCCL;
  return on_host && arrival->call_start != NS_UNKNOWN ? arrival->call_start : arrival->start;
}

struct last_member model_last_member(const struct model *model, const struct collective *of) {
  const struct last_member unknown = {INDEX_NONE, NS_UNKNOWN, NS_UNKNOWN};
  const struct arrival *members = members_of(model, of), *who = NULL;
  if (!of->complete || of->n_arrivals < 2)
    return unknown;
  i64 first = model_arrival_ready(model, members), last = NS_UNKNOWN, before = NS_UNKNOWN, sum = 0;
  FOR_EACH_MEMBER(model, of, member) {
    i64 ready = model_arrival_ready(model, member);
    if (ready == NS_UNKNOWN)
      return unknown;
    sum += ready - first;
    who = ready > last ? member : who;
    before = ready > last ? last : MAX(ready, before);
    last = MAX(ready, last);
  }
  if (ANY(members, of->n_arrivals, one,
          one->rank != who->rank && (double)(last - model_arrival_ready(model, one)) <=
                                        model_clock_error_ns(model, who->rank, one->rank)))
    return unknown;
  i64 behind_first = last - first;
  return (struct last_member){who->rank, last - before,
                              behind_first - (sum - behind_first) / (of->n_arrivals - 1)};
}

void model_list_by_comm(const struct model *model, u32 *order) {
  struct by_key by_comm =
      LISTED_BY_KEY(model->n_comms, 0, model->n_collectives, i, true, model->collectives[i].comm);
  if (model->n_collectives)
    memcpy(order, by_comm.at, model->n_collectives * sizeof(*order));
  FREE_EACH(&by_comm, begin, at);
}

double model_collective_error_ns(const struct model *model, const struct collective *collective,
                                 u32 rank) {
  return MOST_OF(double, members_of(model, collective), collective->n_arrivals, one,
                 model_clock_error_ns(model, rank, one->rank));
}

const char *model_phase_at(const struct model *model, u32 rank, i64 time) {
  const char *name = NULL;
  if (!model->timelines) /* made by hand */
    return NULL;
  const struct rank_events *events = model_events(model, rank);
  for (u32 i = 0; i < events->phases.n && events->phases.at[i].start <= time; i++) {
    const struct rank_phase *phase = &events->phases.at[i];
    if (phase->end == NS_UNKNOWN || phase->end >= time)
      name = phase_word(phase->kind);
  }
  return name;
}

const char *comm_label(const char *name, u64 identity, u32 size, struct arena *arena) {
  u32 shown = (u32)(identity & 0xffff);
  if (name)
    return name;
  return size ? arena_printf(arena, "%04x (%u ranks)", shown, size)
              : arena_printf(arena, "%04x", shown);
}

char *call_name(struct arena *arena, const char *op, i64 seq, const char *comm) {
  const char *call = seq < 0 ? op : arena_printf(arena, "%s %lld", op, (long long)seq);
  return arena_printf(arena, "%s%s%s", call, comm ? " of " : "", text_or_empty(comm));
}

u32 model_own_calls(const struct model *model, u32 rank, u32 comm, struct own_call *calls,
                    u32 room) {
  u32 n = 0;
  if (!model->timelines) /* made by hand */
    return 0;
  const struct rank_events *events = model_events(model, rank);
  FOR_EACH(events->calls.at, events->calls.n, call) {
    if (call->failed || op_is_message(call->op) || model_comm_of(model, rank, call->comm) != comm)
      continue;
    if (n < room)
      calls[n] = (struct own_call){call->start, call->bytes, call->op, call->dtype};
    n++;
  }
  return n;
}

double gpu_memory_bytes(const char *const *info) {
  const char *said = info[TSCOPE_INFO_GPU_MEMORY];
  double bytes = said ? strtod(said, NULL) : 0;
  return bytes > 0 ? bytes : NAN;
}
