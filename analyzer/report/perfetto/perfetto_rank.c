/* SPDX-License-Identifier: MIT
 *
 * One rank as a process of the trace: a track for each row of its lanes, and its counters. A name
 * is written where it is first used, later only its number.
 */
#include <math.h>

#include "analyses/analysis.h"
#include "base/by_key.h"
#include "base/rank_list.h"
#include "base/vector.h"
#include "model/flight_record.h"
#include "model/gemms.h"
#include "model/span_call_sites.h"
#include "report/perfetto/perfetto_trace.h"

#define FIRST_SYNTHETIC_PID 10000000u /* Linux has none above 4194304; the rank is added */

/* The slices that are open on one track, innermost last. */
struct open_track {
  u64 uuid;
  VECTOR(i64) ends;
};

struct writing {
  struct perfetto_trace *trace;
  const struct shown_scope *scope;
  const struct shown_rank *rank;
  struct open_track *tracks;
  u32 *first_track;                /* by lane */
  struct by_key work;              /* launched spans, by the call that launched them */
  bool *named;                     /* names that were written */
  VECTOR(const char *) categories; /* those that were written; iid is the place + 1 */
  struct arena arena;
  u32 sequence;
  u64 process;
};

/* Tracks: the UI sorts those of a process by name, so that begins with a number. */

enum { COUNTERS_ORDER = SHOWN_GROUP + 2 };

static void make_tracks(struct writing *w) {
  const struct shown_rank *rank = w->rank;
  u32 n = 0;
  w->first_track = arena_array(&w->arena, rank->n_lanes, sizeof(u32));
  for (u32 i = 0; i < rank->n_lanes; i++) {
    w->first_track[i] = n;
    n += rank->lanes[i].rows;
  }
  w->tracks = arena_array(&w->arena, n, sizeof(*w->tracks));
  w->first_track[rank->n_lanes] = n;
  for (u32 i = 0; i < rank->n_lanes; i++) {
    char *name = arena_printf(&w->arena, "%u %s", rank->lanes[i].kind + 1u, rank->lanes[i].name);
    struct perfetto_track track = {.name = name, .parent = w->process, .order = (i32)i};
    /* Rows of one lane have one name and are shown as one. */
    for (u32 k = w->first_track[i]; k < w->first_track[i + 1]; k++)
      w->tracks[k].uuid = perfetto_track(w->trace, w->sequence, &track);
  }
}

/* Flows join what has the same id, in order of time. Launches and collectives are distinguished by
 * the highest bit. */
static u64 launch_flow(const struct writing *w, u32 span) {
  return w->trace->flows | ((u64)w->process << 32 | span);
}

static u64 collective_flow(const struct writing *w, u32 collective) {
  return w->trace->flows | 1ull << 63 | collective;
}

static u32 category_iid(struct writing *w, const char *category, bool *is_new) {
  *is_new = false;
  for (u32 i = 0; i < w->categories.n; i++)
    if (w->categories.at[i] == category)
      return i + 1;
  for (u32 i = 0; i < w->categories.n; i++)
    if (strcmp(w->categories.at[i], category) == 0)
      return i + 1;
  *is_new = true;
  VECTOR_PUSH(&w->categories, category);
  return w->categories.n;
}

static void write_interned(struct protobuf *p, u32 kind, u32 iid, const char *text, size_t most) {
  SCOPED char *valid = perfetto_text(text, most);
  size_t entry = protobuf_open(p, kind);
  protobuf_uint(p, INTERN_IID, iid);
  protobuf_bytes(p, INTERN_TEXT, valid, strlen(valid));
  protobuf_close(p, entry);
}

static bool is_shortened(const struct shown_name *name) {
  return name->whole != name->text && strcmp(name->whole, name->text) != 0;
}

/* Names that this event is the first to use. */
static void write_new_names(struct writing *w, const struct shown_span *span, u32 category,
                            bool new_category) {
  struct protobuf *p = &w->trace->buffer;
  bool new_name = !w->named[span->name];
  if (!new_name && !new_category)
    return;
  const struct shown_name *name = &w->rank->names[span->name];
  size_t packet = protobuf_open(p, TRACE_PACKET);
  protobuf_uint(p, PACKET_SEQUENCE, w->sequence);
  protobuf_uint(p, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
  size_t interned = protobuf_open(p, PACKET_INTERNED);
  if (new_category)
    write_interned(p, INTERNED_CATEGORY, category, span->category, PERFETTO_NAME_BYTES);
  if (new_name) {
    write_interned(p, INTERNED_NAME, span->name + 1, name->text, PERFETTO_NAME_BYTES);
    if (is_shortened(name))
      write_interned(p, INTERNED_TEXT, span->name + 1, name->whole, PERFETTO_TEXT_BYTES);
  }
  protobuf_close(p, interned);
  protobuf_close(p, packet);
  w->named[span->name] = true;
}

static void annotate_collective(struct writing *w, const struct shown_span *span) {
  struct shown_collective is = shown_collective(w->scope, span->arrival, &w->arena);
  struct perfetto_trace *trace = w->trace;
  perfetto_annotate_text(trace, ANNOTATES_COMM, is.comm);
  if (is.collective != INDEX_NONE)
    perfetto_annotate_int(trace, ANNOTATES_SEQ, is.seq);
  if (is.members)
    perfetto_annotate_int(trace, ANNOTATES_MEMBERS, is.members);
  if (is.peer != INDEX_NONE)
    perfetto_annotate_int(trace, ANNOTATES_PEER, is.peer);
  if (!isnan(is.bytes))
    perfetto_annotate_int(trace, ANNOTATES_BYTES, (i64)is.bytes);
  perfetto_annotate_text(trace, ANNOTATES_DTYPE, is.dtype);
  perfetto_annotate_text(trace, ANNOTATES_ALGORITHM, is.algorithm);
  perfetto_annotate_text(trace, ANNOTATES_PROTOCOL, is.protocol);
  if (is.wait != NS_UNKNOWN) {
    perfetto_annotate_int(trace, ANNOTATES_WAIT, is.wait);
    perfetto_annotate_int(trace, ANNOTATES_TRANSFER, is.transfer);
  }
  perfetto_annotate_double(trace, ANNOTATES_BUSBW, is.busbw_gbps);
}

static void annotate_arithmetic(struct writing *w, const struct shown_span *span) {
  const struct timeline *t = w->rank->timeline;
  const struct arithmetic *call = &t->arithmetic[span->arithmetic];
  const struct gemm_shape *shape = gemm_shape(t, call);
  double flops = (double)call->flops, ns = (double)(span->end - span->start);
  if (!arithmetic_is_known(call))
    return;
  perfetto_annotate_double(w->trace, ANNOTATES_FLOPS, flops);
  if (SPAN_ON_DEVICE(span->kind) && ns > 0)
    perfetto_annotate_double(w->trace, ANNOTATES_TFLOPS, flops / ns / 1e3);
  if (shape && shape->m != TSCOPE_UNKNOWN && shape->n != TSCOPE_UNKNOWN &&
      shape->k != TSCOPE_UNKNOWN) {
    char text[64];
    snprintf(text, sizeof(text), "%u x %u x %u", shape->m, shape->n, shape->k);
    perfetto_annotate_text(w->trace, ANNOTATES_SHAPE, text);
  }
}

static void annotate_line(struct writing *w, const struct call_frame *frame) {
  char text[1024];
  call_frame_write_place(frame, text, sizeof(text));
  perfetto_annotate_text(w->trace, ANNOTATES_PLACE, text);
}

static void annotate_recorded_call(struct writing *w, const struct shown_span *span) {
  struct perfetto_trace *trace = w->trace;
  const struct flight_record *flight = w->scope->results->check.flight;
  const struct flight_call *call = &flight->calls[span->recorded];
  if (call->seq != SEQ_UNKNOWN)
    perfetto_annotate_int(trace, ANNOTATES_SEQ, call->seq);
  perfetto_annotate_text(trace, ANNOTATES_COMM, flight->groups[call->group].name);
  perfetto_annotate_text(trace, ANNOTATES_DTYPE, call->in_type);
  perfetto_annotate_text(trace, ANNOTATES_SIZES, call->in);
  perfetto_annotate_text(trace, ANNOTATES_WHERE, call->where);
  if (call->peer != INDEX_NONE)
    perfetto_annotate_int(trace, ANNOTATES_PEER, flight->ranks[call->peer].rank);
  if (call->stack && call->stack->n && call->stack->frames[0].file)
    annotate_line(w, call->stack->frames);
}

static void annotate_span(struct writing *w, const struct shown_span *span) {
  struct perfetto_trace *trace = w->trace;
  struct protobuf *p = &trace->buffer;
  if (span->step >= 0)
    perfetto_annotate_int(trace, ANNOTATES_STEP,
                          w->scope->results->model->steps.first + (u32)span->step);
  if (is_shortened(&w->rank->names[span->name])) {
    size_t note = protobuf_open(p, EVENT_ANNOTATION);
    protobuf_uint(p, ANNOTATION_NAME_IID, ANNOTATES_WHOLE_NAME);
    protobuf_uint(p, ANNOTATION_TEXT_IID, span->name + 1);
    protobuf_close(p, note);
  }
  if (span->bytes > 0) {
    double ns = (double)(span->end - span->start);
    perfetto_annotate_int(trace, ANNOTATES_BYTES, (i64)span->bytes);
    perfetto_annotate_double(trace, ANNOTATES_GBPS, ns > 0 ? (double)span->bytes / ns : NAN);
  }
  if (span->arithmetic != INDEX_NONE)
    annotate_arithmetic(w, span);
  if (span->arrival != INDEX_NONE)
    annotate_collective(w, span);
  if (span->recorded != INDEX_NONE)
    annotate_recorded_call(w, span);
  if (span->frame != INDEX_NONE)
    annotate_line(w, &w->rank->timeline->call_sites->frames[span->frame]);
}

static void add_flows(struct writing *w, u32 index, const struct shown_span *span) {
  struct protobuf *p = &w->trace->buffer;
  const struct analysis *a = w->scope->results->analysis;
  for (u32 i = w->work.begin[index]; i < w->work.begin[index + 1]; i++)
    protobuf_fixed64(p, EVENT_FLOW, launch_flow(w, w->work.at[i]));
  /* The calls of a group run as one: a send to the next stage, and a receive from it. */
  u32 call = span->arrival;
  while (call < a->model->n_arrivals) {
    u32 collective = a->model->arrivals[call].collective;
    if (collective != INDEX_NONE)
      protobuf_fixed64(p, EVENT_FLOW, collective_flow(w, collective));
    call = a->next_call[call] == span->arrival ? INDEX_NONE : a->next_call[call];
  }
  if (span->launch != INDEX_NONE)
    protobuf_fixed64(p, EVENT_FLOW_END, launch_flow(w, index));
}

static void close_until(struct writing *w, struct open_track *track, i64 time) {
  while (track->ends.n && track->ends.at[track->ends.n - 1] <= time)
    perfetto_end_slice(w->trace, w->sequence, track->ends.at[--track->ends.n], track->uuid);
}

static void write_span(struct writing *w, u32 index) {
  const struct shown_span *span = &w->rank->spans[index];
  struct open_track *track = &w->tracks[w->first_track[span->lane] + span->row];
  bool new_category;
  u32 category = category_iid(w, span->category, &new_category);
  close_until(w, track, span->start);
  write_new_names(w, span, category, new_category);
  struct protobuf *p = &w->trace->buffer;
  struct perfetto_event event =
      perfetto_event_begin(w->trace, w->sequence, span->start, TYPE_BEGIN, track->uuid);
  protobuf_uint(p, EVENT_CATEGORY, category);
  protobuf_uint(p, EVENT_NAME, span->name + 1);
  add_flows(w, index, span);
  annotate_span(w, span);
  perfetto_event_end(w->trace, event);
  /* A last row of very many may hold what does not nest: it ends with what is around it. */
  i64 end = span->end;
  if (track->ends.n && track->ends.at[track->ends.n - 1] < end)
    end = track->ends.at[track->ends.n - 1];
  VECTOR_PUSH(&track->ends, end);
}

static void write_counters(struct writing *w) {
  const struct shown_rank *rank = w->rank;
  for (u32 i = 0; i < rank->n_counters; i++) {
    const struct shown_counter *counter = &rank->counters[i];
    char name[PERFETTO_NAME_BYTES];
    snprintf(name, sizeof(name), "%u %s", COUNTERS_ORDER, counter->name);
    struct perfetto_track track = {.name = name,
                                   .parent = w->process,
                                   .order = (i32)(rank->n_lanes + i),
                                   .unit = shown_unit_words[counter->unit],
                                   .bytes = counter->unit == SHOWN_UNIT_BYTES};
    u64 uuid = perfetto_track(w->trace, w->sequence, &track);
    FOR_EACH(counter->at, counter->n, one) {
      struct perfetto_event event =
          perfetto_event_begin(w->trace, w->sequence, one->time, TYPE_COUNTER, uuid);
      protobuf_int(&w->trace->buffer, EVENT_COUNTER, (i64)one->value);
      perfetto_event_end(w->trace, event);
    }
  }
}

/* The largest global rank there is. */
static u32 last_rank(const struct shown_scope *scope) {
  const struct model *model = scope->results->model;
  const struct flight_record *flight = scope->results->check.flight;
  if (scope->source == SHOWN_RECORDED_CALLS)
    return flight->ranks[flight->n_ranks - 1].rank;
  return model->n_ranks ? model->ranks[model->n_ranks - 1].rank : 0;
}

/* "rank 03 · node-17 · NVIDIA H100": the UI sorts processes by their names. */
static const char *process_name(struct writing *w, const char *run) {
  const struct shown_rank *rank = w->rank;
  struct arena *arena = &w->arena;
  int digits = snprintf(NULL, 0, "%u", last_rank(w->scope));
  const char *name = rank->number == INDEX_NONE
                         ? "rank not known"
                         : arena_printf(arena, "rank %0*u", digits, rank->number);
  const char *parts[] = {rank->host, rank->device, rank->why_empty};
  if (run)
    name = arena_printf(arena, "%s · %s", run, name);
  FOR_EACH(parts, LENGTH_OF(parts), part)
    if (*part)
      name = arena_printf(arena, "%s · %s", name, *part);
  return name;
}

/* The process id, which the UI shows behind the name; on several hosts the same may be there twice,
 * and processes of one id would be taken for one. */
static u32 free_pid(struct perfetto_trace *trace, const struct shown_scope *scope,
                    const struct shown_rank *rank) {
  u32 pid = rank->rank == INDEX_NONE ? 0 : scope->results->model->ranks[rank->rank].pid;
  if (pid == 0 || pid > FIRST_SYNTHETIC_PID || ranks_have(trace->pids.at, trace->pids.n, pid))
    pid = FIRST_SYNTHETIC_PID + (rank->number < FIRST_SYNTHETIC_PID ? rank->number : 0);
  while (ranks_have(trace->pids.at, trace->pids.n, pid))
    pid += FIRST_SYNTHETIC_PID;
  VECTOR_PUSH(&trace->pids, pid);
  return pid;
}

int perfetto_rank(struct perfetto_trace *trace, const struct shown_scope *scope,
                  const struct shown_rank *rank, const char *run) {
  struct writing w = {.trace = trace, .scope = scope, .rank = rank};
  struct perfetto_track process = {.name = process_name(&w, run),
                                   .pid = free_pid(trace, scope, rank),
                                   .order = trace->next_order++};
  w.named = arena_array(&w.arena, rank->n_names, sizeof(bool));
  w.sequence = perfetto_sequence(trace);
  w.process = perfetto_track(trace, w.sequence, &process);
  make_tracks(&w);

  w.work = LISTED_BY_KEY(rank->n_spans, 0, rank->n_spans, i, rank->spans[i].launch != INDEX_NONE,
                         rank->spans[i].launch);
  for (u32 i = 0; i < rank->n_spans && !trace->error; i++)
    write_span(&w, i);
  FOR_EACH_CHANGED(w.tracks, w.first_track[rank->n_lanes], track) {
    if (!trace->error)
      close_until(&w, track, INT64_MAX);
    free(track->ends.at);
  }
  if (!trace->error)
    write_counters(&w);
  FREE_EACH(&w, work.begin, work.at, categories.at);
  arena_release(&w.arena);
  return trace->error;
}
