/* SPDX-License-Identifier: MIT
 *
 * One rank's timeline from what was kept of its trace: spans on the model's axis, device work
 * linked to the calls that launched it, and who waited for whom.
 */

#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/intervals.h"
#include "base/sorting.h"
#include "import/kineto/kineto.h"

#define MOST_ENDINGS 256u /* a call returns soon after what it waited for has ended */

struct ending {
  i64 end;
  u32 span;
};

struct timeline_making {
  const struct model *model;
  const struct kineto_trace *trace;
  const struct rank_events *events;
  const struct rank_clock *clock;
  struct arena *arena;
  struct timeline *timeline;
  u32 captured;                  /* cursor into timeline.capturing */
  u32 *span_of;                  /* [items.n] the span of an item, INDEX_NONE */
  struct by_key on_stream;       /* see lay_out_streams(), by lane */
  VECTOR(struct ending) endings; /* of device work, in order */
  VECTOR(struct edge) edges;
};

struct timeline_internal {
  struct arena arena;
  const struct kineto_trace *trace;
};

static struct span call_span(const struct kineto_name *name) {
  switch (name->call) {
  case KINETO_CALL_LAUNCH:
  case KINETO_CALL_MEMCPY:
  case KINETO_CALL_MEMSET:
    return (struct span){.kind = SPAN_LAUNCH, .category = name->copy};
  case KINETO_CALL_SYNC_DEVICE:
    return (struct span){.kind = SPAN_SYNC, .category = TSCOPE_SYNC_DEVICE};
  case KINETO_CALL_SYNC_STREAM:
    return (struct span){.kind = SPAN_SYNC, .category = TSCOPE_SYNC_STREAM};
  case KINETO_CALL_SYNC_EVENT:
    return (struct span){.kind = SPAN_SYNC, .category = TSCOPE_SYNC_EVENT};
  default:
    return (struct span){.kind = SPAN_OP};
  }
}

/* Kind and category of an item; kind 0 if it is not a span. `arrival` is for what communicates. */
static struct span describe(const struct timeline_making *m, const struct kineto_item *item,
                            u32 arrival) {
  const struct kineto_name *name = kineto_item_name(m->trace, item);
  if (kineto_is_run(m->trace, item)) {
    u8 op = item->kind == KINETO_ITEM_COLLECTIVE ? name->communication.op : name->op;
    return (struct span){.kind = SPAN_COLLECTIVE, .link = arrival, .category = op};
  }
  if (kineto_is_comm_call(m->trace, item))
    return (struct span){.kind = SPAN_COLL_CALL, .category = name->op};
  switch (item->kind) {
  case KINETO_ITEM_KERNEL:
    return (struct span){.kind = SPAN_KERNEL};
  case KINETO_ITEM_COMM_KERNEL:
    return (struct span){
        .kind = SPAN_COLLECTIVE, .link = arrival, .category = name->communication.op};
  case KINETO_ITEM_MEMCPY:
    return (struct span){.kind = SPAN_MEMCPY, .category = name->copy};
  case KINETO_ITEM_MEMSET:
    return (struct span){.kind = SPAN_MEMSET};
  case KINETO_ITEM_CALL:
    return call_span(name);
  case KINETO_ITEM_SPIN:
    return (struct span){.kind = SPAN_SYNC, .category = TSCOPE_SYNC_STREAM};
  case KINETO_ITEM_WORKER_WAIT:
    return (struct span){.kind = SPAN_COMM_WAIT};
  case KINETO_ITEM_RANGE:
    return (struct span){.kind = SPAN_PHASE,
                         .category = name->phase ? name->phase : TSCOPE_PHASE_USER};
  case KINETO_ITEM_OP:
    return (struct span){.kind = SPAN_OP, .category = name->phase};
  case KINETO_ITEM_COMMS:
    return (struct span){.kind = SPAN_OP};
  default:
    return (struct span){0};
  }
}

/* A call that a capture takes puts nothing on the device. (Another thread's may: link_launches().)
 */
static void note_capture(struct timeline_making *m, struct span *span) {
  bool captured =
      span->kind == SPAN_LAUNCH &&
      intervals_covered(&m->timeline->capturing, &m->captured, span->start, span->start + 1);
  span->kind = captured ? SPAN_OP : span->kind;
}

static u32 arrival_of_run(const struct timeline_making *m, u32 run) {
  u32 call = run < m->events->runs.n ? m->events->runs.at[run].first_call : INDEX_NONE;
  return call == INDEX_NONE ? INDEX_NONE : m->events->calls.at[call].arrival;
}

/* Items are sorted as spans are, and a clock keeps the order, except for rounding. */
static void put_spans(struct timeline_making *m) {
  struct timeline *t = m->timeline;
  u32 run = 0, kernel = 0;
  for (u32 i = 0; i < m->trace->items.n; i++) {
    const struct kineto_item *item = &m->trace->items.at[i];
    u32 arrival = INDEX_NONE;
    if (kineto_is_run(m->trace, item))
      arrival = arrival_of_run(m, run++);
    else if (item->kind == KINETO_ITEM_COMM_KERNEL)
      arrival = m->events->kernels.at[kernel++].arrival;
    struct span span = describe(m, item, arrival);
    m->span_of[i] = INDEX_NONE;
    if (!span.kind)
      continue;
    span.start = clock_to_axis(m->clock, item->start);
    span.end = clock_to_axis(m->clock, item->end);
    span.end = MAX(span.start, span.end);
    span.name = item->name;
    span.lane = item->lane;
    span.launch = INDEX_NONE;
    if (span.kind != SPAN_COLLECTIVE)
      span.link = INDEX_NONE;
    note_capture(m, &span);
    bool sized = item->kind == KINETO_ITEM_MEMCPY || item->kind == KINETO_ITEM_MEMSET;
    t->bytes[t->n_spans] = sized ? item->bytes : 0;
    m->span_of[i] = t->n_spans;
    t->spans[t->n_spans++] = span;
  }
}

/* Correlation ids count up, so work with an id below those of all calls in the trace was launched
 * before the trace begins. */
static void find_queued(struct timeline_making *m, const kineto_calls *calls) {
  struct timeline *t = m->timeline;
  for (u32 i = 0; i < m->trace->items.n && calls->n; i++) {
    const struct kineto_item *item = &m->trace->items.at[i];
    if (m->span_of[i] == INDEX_NONE || !item->correlation ||
        item->correlation >= calls->at[0].number)
      continue;
    const struct span *span = &t->spans[m->span_of[i]];
    struct lane *lane = &t->lanes[span->lane];
    if (SPAN_ON_DEVICE(span->kind) && span->start >= lane->queued_until)
      lane->queued_until = span->start + 1;
  }
}

/* Device work to the calls of its correlation id. */
static void link_launches(struct timeline_making *m, const kineto_calls *calls) {
  struct span *spans = m->timeline->spans;
  for (u32 i = 0; i < m->trace->items.n; i++) {
    const struct kineto_item *item = &m->trace->items.at[i];
    if (m->span_of[i] == INDEX_NONE || !SPAN_ON_DEVICE(spans[m->span_of[i]].kind))
      continue;
    u32 call = kineto_call_of(calls, item->correlation);
    if (call == INDEX_NONE || m->span_of[call] == INDEX_NONE)
      continue;
    struct span *device = &spans[m->span_of[i]], *host = &spans[m->span_of[call]];
    if (SPAN_ON_DEVICE(host->kind))
      continue;
    if (host->kind == SPAN_OP) /* an operator, or a call with an unknown name */
      host->kind = kineto_item_name(m->trace, item)->comm_worker ? SPAN_COLL_CALL : SPAN_LAUNCH;
    device->launch = m->span_of[call];
    if (device->kind != SPAN_COLLECTIVE)
      device->link = m->span_of[call];
    if (host->link == INDEX_NONE)
      host->link = m->span_of[i];
  }
}

static void add_edge(struct timeline_making *m, u32 from, u32 to, u8 kind) {
  if (from == INDEX_NONE || to == INDEX_NONE || from == to)
    return;
  VECTOR_PUSH(&m->edges, (struct edge){.from = from, .to = to, .kind = kind});
}

/* The device lane of a stream's number; INDEX_NONE. */
static u32 lane_of_stream(const struct kineto_trace *trace, i64 stream) {
  return INDEX_OF(trace->lanes.at, trace->lanes.n, one, one->device && one->stream == stream);
}

/* Device work whose launch is known, lane by lane, in order of start: a stream runs its work in the
 * order in which it got it. */
static void lay_out_streams(struct timeline_making *m) {
  const struct timeline *t = m->timeline;
  m->on_stream = LISTED_BY_KEY(m->trace->lanes.n, 0, t->n_spans, i,
                               SPAN_ON_DEVICE(t->spans[i].kind) && t->spans[i].launch != INDEX_NONE,
                               t->spans[i].lane);
}

/* Position of the first work of a stream that was launched after an instant. */
static u32 launched_after(const struct timeline_making *m, u32 lane, i64 instant) {
  const struct span *spans = m->timeline->spans;
  return FIRST_NOT(m->on_stream.begin[lane], m->on_stream.begin[lane + 1], i,
                   spans[spans[m->on_stream.at[i]].launch].start <= instant);
}

/* The last work put on a stream by calls before an instant: what an event recorded at that instant
 * represents. */
static u32 last_before(const struct timeline_making *m, u32 lane, i64 instant) {
  u32 after = launched_after(m, lane, instant);
  return after > m->on_stream.begin[lane] ? m->on_stream.at[after - 1] : INDEX_NONE;
}

static u32 first_after(const struct timeline_making *m, u32 lane, i64 instant) {
  u32 after = launched_after(m, lane, instant);
  return after < m->on_stream.begin[lane + 1] ? m->on_stream.at[after] : INDEX_NONE;
}

ORDER_BY(by_end, struct ending, UP(end) UP(span))

static void sort_endings(struct timeline_making *m) {
  const struct timeline *t = m->timeline;
  bool any = ANY(t->spans, t->n_spans, one, one->kind == SPAN_SYNC);
  for (u32 i = 0; i < t->n_spans && any; i++)
    if (SPAN_ON_DEVICE(t->spans[i].kind))
      VECTOR_PUSH(&m->endings, (struct ending){t->spans[i].end, i});
  SORT(m->endings.at, m->endings.n, by_end);
}

/* If nothing says what a call waited for: the device work that ended last before the call returned,
 * of the work launched before the call began. */
static u32 find_releasing_span(const struct timeline_making *m, u32 sync) {
  const struct span *spans = m->timeline->spans, *host = &spans[sync];
  u32 first = FIRST_NOT(0, m->endings.n, i, m->endings.at[i].end <= host->end);
  for (u32 back = 0; back < MOST_ENDINGS && first > 0; back++) {
    u32 from = m->endings.at[--first].span, launch = spans[from].launch;
    if ((launch == INDEX_NONE ? spans[from].start : spans[launch].start) < host->start)
      return from;
  }
  return INDEX_NONE;
}

/* What one synchronisation record says: who waited, and for the last work of which stream. */
static void link_sync(struct timeline_making *m, const kineto_calls *calls,
                      const struct kineto_item *item) {
  const struct kineto_sync *sync = &m->trace->syncs.at[item->what];
  u32 call = kineto_call_of(calls, item->correlation);
  const struct kineto_item *host = call == INDEX_NONE ? NULL : &m->trace->items.at[call];
  u32 record = sync->wait_record ? kineto_call_of(calls, sync->wait_record) : INDEX_NONE;
  u32 lane = lane_of_stream(m->trace, sync->wait_stream);
  if (!host || lane == INDEX_NONE)
    return;
  const struct kineto_item *until = record == INDEX_NONE ? host : &m->trace->items.at[record];
  u32 from = last_before(m, lane, clock_to_axis(m->clock, until->start));
  if (kineto_item_name(m->trace, host)->call == KINETO_CALL_STREAM_WAIT) {
    const struct kineto_lane *waiting = &m->trace->lanes.at[item->lane];
    u32 to_lane = lane_of_stream(m->trace, waiting->stream);
    if (to_lane != INDEX_NONE)
      add_edge(m, from, first_after(m, to_lane, clock_to_axis(m->clock, host->start)), EDGE_EVENT);
    return;
  }
  u32 to = m->span_of[call];
  if (to != INDEX_NONE && m->timeline->spans[to].kind == SPAN_SYNC)
    add_edge(m, from, to, EDGE_SYNC);
}

ORDER_BY(by_target, struct edge, UP(to) UP(from))

/* A wait that no call shows: for the kernel that it was found by. */
static void link_spin(struct timeline_making *m, const kineto_calls *calls, u32 item) {
  u32 call = kineto_call_of(calls, m->trace->items.at[item].correlation);
  u32 host = call == INDEX_NONE ? INDEX_NONE : m->span_of[call];
  if (host != INDEX_NONE)
    add_edge(m, m->timeline->spans[host].link, m->span_of[item], EDGE_SYNC);
}

static void link_waits(struct timeline_making *m, const kineto_calls *calls) {
  SCOPED bool *known = memory_zeroed(size_sum(m->timeline->n_spans, 1), 1);
  for (u32 i = 0; i < m->trace->items.n; i++)
    if (m->trace->items.at[i].kind == KINETO_ITEM_SYNC)
      link_sync(m, calls, &m->trace->items.at[i]);
    else if (m->trace->items.at[i].kind == KINETO_ITEM_SPIN ||
             m->trace->items.at[i].kind == KINETO_ITEM_WORKER_WAIT)
      link_spin(m, calls, i);
  FOR_EACH(m->edges.at, m->edges.n, edge)
    known[edge->to] = true;
  for (u32 i = 0; i < m->timeline->n_spans; i++)
    if (m->timeline->spans[i].kind == SPAN_SYNC && !known[i])
      add_edge(m, find_releasing_span(m, i), i, EDGE_SYNC);
  SORT(m->edges.at, m->edges.n, by_target);
}

static void collect_intervals(const struct timeline_making *m, u32 kinds, struct intervals *out) {
  const struct timeline *t = m->timeline;
  u32 n = TOTAL(u32, t->spans, t->n_spans, one, kinds >> one->kind & 1);
  out->at = arena_array(m->arena, n, sizeof(*out->at));
  FOR_EACH(t->spans, t->n_spans, span)
    if (kinds >> span->kind & 1)
      intervals_append(out, span->start, span->end);
}

/* In a job without GPU the operators are the compute, except those that wait or communicate. */
static void collect_all_intervals(struct timeline_making *m) {
  struct timeline *t = m->timeline;
  bool kernels = m->events->gpu_kernels > 0;
  bool gpu = kernels || ANY(t->spans, t->n_spans, one,
                            one->kind == SPAN_KERNEL || one->kind == SPAN_MEMCPY ||
                                one->kind == SPAN_MEMSET || one->kind == SPAN_LAUNCH);
  t->on_gpu = gpu;
  t->has_compute = !gpu || kernels;
  t->has_memcpy = !gpu || kernels;
  t->has_comm = m->events->calls.n == 0 || m->events->runs.n > 0;
  collect_intervals(m, 1u << SPAN_COLLECTIVE, &t->comm);
  collect_intervals(m, 1u << SPAN_MEMCPY | 1u << SPAN_MEMSET, &t->memcpy);
  if (gpu) {
    collect_intervals(m, 1u << SPAN_KERNEL, &t->compute);
    return;
  }
  struct intervals ops = {0}, blocked = {0};
  collect_intervals(m, 1u << SPAN_OP, &ops);
  collect_intervals(m, 1u << SPAN_COLL_CALL, &blocked);
  intervals_subtract(m->arena, &ops, &blocked, &t->compute);
}

static void make_lanes(const struct timeline_making *m) {
  struct timeline *t = m->timeline;
  t->lanes = arena_array(m->arena, m->trace->lanes.n, sizeof(*t->lanes));
  t->n_lanes = m->trace->lanes.n;
  for (u32 i = 0; i < t->n_lanes; i++) {
    const struct kineto_lane *lane = &m->trace->lanes.at[i];
    t->lanes[i] =
        (struct lane){.device = lane->device, .id = (u32)lane->stream, .name = lane->name};
  }
}

static void kineto_release(struct timeline *timeline) {
  struct timeline_internal *internal = timeline->internal;
  FREE_EACH(timeline, spans, bytes, edges);
  if (internal) {
    struct arena arena = internal->arena;
    arena_release(&arena);
  }
  *timeline = (struct timeline){0};
}

static int kineto_load(const struct model *model, u32 rank, struct timeline *timeline) {
  const struct kineto_traces *traces = model_imported(model);
  const struct kineto_trace *trace = &traces->at[rank];
  struct arena arena = {0};
  struct timeline_internal *internal = arena_alloc(&arena, sizeof(*internal));
  struct timeline_making m = {.model = model,
                              .trace = trace,
                              .events = model_events(model, rank),
                              .clock = model_clock(model, rank),
                              .arena = &internal->arena,
                              .timeline = timeline,
                              .span_of = memory_array(size_sum(trace->items.n, 1), sizeof(u32))};
  SCOPED kineto_calls calls = kineto_calls_index(trace);
  internal->arena = arena;
  *timeline =
      (struct timeline){.rank = rank,
                        .spans = memory_array(size_sum(trace->items.n, 1), sizeof(struct span)),
                        .bytes = memory_array(size_sum(trace->items.n, 1), sizeof(float)),
                        .ring_begin = model->ranks[rank].begin,
                        .internal = internal};
  make_lanes(&m);
  model_captures(model, rank, m.arena, &timeline->capturing);
  internal->trace = trace;
  put_spans(&m);
  link_launches(&m, &calls);
  find_queued(&m, &calls);
  lay_out_streams(&m);
  sort_endings(&m);
  link_waits(&m, &calls);
  timeline->edges = m.edges.at;
  timeline->n_edges = m.edges.n;

  collect_all_intervals(&m);
  kineto_lines(trace, m.clock, timeline, m.span_of, m.arena);
  FREE_EACH(&m, span_of, on_stream.begin, on_stream.at, endings.at);
  return 0;
}

static const char *kineto_name(const struct timeline *timeline, u32 name) {
  const struct timeline_internal *internal = timeline->internal;
  const struct kineto_names *names = &internal->trace->names;
  return name && name < names->list.n ? names->list.at[name].text : "unknown";
}

const struct timeline_source kineto_timelines = {kineto_load, kineto_release, kineto_name};
