/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/checked_memory.h"
#include "import/tscope/files/visit.h"
#include "import/tscope/timeline/timeline_build.h"
#include "kernels/attention.h"
#include "kernels/communication.h"

/* What launches of a shape do. */
struct shape_arithmetic {
  double flops; /* 0: not looked at yet, NAN: not known */
  u32 heads;    /* what `flops` is for */
  u32 prepares; /* heads of the launch that follows; 0: it prepares none */
};

struct decoding {
  struct timeline_build *build;
  struct chunk_clock clock;
  u16 host_lane;
  struct shape_arithmetic *arithmetic; /* [n_shapes] */
  u32 heads;                           /* as kernel_attention_heads() said last; 0: not yet */
};

static i64 axis_ns(struct decoding *decoding, u64 units) {
  return clock_to_axis(decoding->build->clock, chunk_ns(&decoding->clock, units));
}

static void add_span(struct timeline_build *build, const struct span *span,
                     const struct span_facts *facts) {
  VECTOR_ROOM(&build->spans);
  VECTOR_ROOM(&build->facts);
  struct span *placed = &build->spans.at[build->spans.n++];
  *placed = *span;
  if (placed->end < placed->start)
    placed->end = placed->start;
  build->facts.at[build->facts.n++] = *facts;
}

static void add_lane(struct timeline_build *build, bool device, u32 id, const char *name,
                     u32 *lane) {
  *lane = build->lanes.n < UINT16_MAX ? build->lanes.n : UINT16_MAX;
  if (!(build->lanes.n >= UINT16_MAX)) {
    VECTOR_PUSH(&build->lanes, (struct lane){.device = device, .id = id, .name = name});
  }
}

/* Lane of a thread: as a host thread, or as a worker that runs collectives (`device`). */
static void thread_lane(struct timeline_build *build, u32 thread, bool device, u16 *out) {
  const struct definitions *definitions = &build->definitions;
  const char *name = NULL;
  u32 lane = 0;
  for (; lane < build->lanes.n; lane++)
    if (build->lanes.at[lane].device == device && build->lanes.at[lane].id == thread)
      break;
  if (lane == build->lanes.n) {
    for (u32 i = 0; i < definitions->n_threads && !name; i++)
      if (definitions->threads[i].thread == thread)
        name = definitions->threads[i].name;
    if (!name)
      name = arena_printf(&build->arena, "thread %u", thread);
    add_lane(build, device, thread, name, &lane);
  }
  *out = (u16)lane;
}

#define OVERLAPPING_RUNS 256u

static void stream_lane(struct timeline_build *build, u16 stream, u16 *out) {
  VECTOR_REACH(&build->lane_of_stream, stream);
  u32 *lane = &build->lane_of_stream.at[stream];
  if (*lane == 0) {
    const char *name = arena_printf(&build->arena, "stream %u", stream);
    add_lane(build, true, stream, name, lane);
    ++*lane;
  }
  *out = (u16)(*lane - 1);
}

/* What kernels of that name communicate; read_events.c has asked for all that the file has. */
static struct communication communication_of(const struct timeline_build *build, u32 name) {
  return name < build->definitions.n_strings ? build->events->communications[name]
                                             : (struct communication){0};
}

static i64 end_or_rank_end(const struct timeline_build *build, i64 end) {
  return end == NS_UNKNOWN ? build->model->ranks[build->rank].end : end;
}

/* Where collectives ran. Runs on a stream lie on its lane, others on their worker's. */
static void decode_runs(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  for (u32 i = 0; i < events->runs.n; i++) {
    const struct rank_run *run = &events->runs.at[i];
    u32 arrival =
        run->first_call == INDEX_NONE ? INDEX_NONE : events->calls.at[run->first_call].arrival;
    struct span span = {.start = run->start,
                        .end = end_or_rank_end(build, run->end),
                        .name = run->name ? run->name : vocabulary_name(build, run->op),
                        .link = arrival,
                        .launch = INDEX_NONE,
                        .kind = SPAN_COLLECTIVE,
                        .category = run->op};
    if (run->stream == TSCOPE_NO_STREAM) {
      thread_lane(build, run->thread, true, &span.lane);
    } else {
      stream_lane(build, run->stream, &span.lane);
    }
    build->span_of_run[i] = build->spans.n;
    if (run->copies)
      VECTOR_PUSH(&build->copied_runs, i);
    build->saw_replays |= run->graph != 0;
    add_span(build, &span,
             &(struct span_facts){.stream = run->stream,
                                  .graph = run->graph ? run->correlation : 0,
                                  .gpu_graph = run->graph,
                                  .correlation = run->correlation});
  }
}

/* Whether a copy is part of a collective, whose run is a span already. Runs are in order of time.
 */
static bool is_in_run(const struct timeline_build *build, u16 stream, i64 start, i64 end) {
  const struct rank_run *runs = build->events->runs.at;
  u32 low = 0, high = build->copied_runs.n;
  while (low < high) { /* the first that begins later */
    u32 middle = low + (high - low) / 2;
    if (runs[build->copied_runs.at[middle]].start <= start)
      low = middle + 1;
    else
      high = middle;
  }
  /* Those of several streams may overlap. */
  for (u32 back = 1; back <= low && back <= OVERLAPPING_RUNS; back++) {
    const struct rank_run *run = &runs[build->copied_runs.at[low - back]];
    if (run->stream == stream)
      return end <= run->end;
  }
  return false;
}

/* Kernels that communicate without a call; their launches are linked as those of other kernels. */
static void decode_kernels(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  for (u32 i = 0; i < events->kernels.n; i++) {
    const struct rank_kernel *kernel = &events->kernels.at[i];
    struct span span = {.start = kernel->start,
                        .end = kernel->end,
                        .name = kernel->name,
                        .link = kernel->arrival,
                        .launch = INDEX_NONE,
                        .kind = SPAN_COLLECTIVE,
                        .category = kernel->op};
    build->saw_replays |= kernel->graph != 0;
    stream_lane(build, kernel->stream, &span.lane);
    add_span(build, &span,
             &(struct span_facts){.stream = kernel->stream,
                                  .work = WORK_KERNEL,
                                  .what = kernel->name,
                                  .graph = kernel->graph ? kernel->correlation : 0,
                                  .gpu_graph = kernel->graph,
                                  .correlation = kernel->correlation});
  }
}

/* The host span launched what ran: the first run is the host span's link. */
static void join(struct timeline_build *build, const struct rank_call *call, u32 host) {
  if (call->run == INDEX_NONE)
    return;
  u32 device = build->span_of_run[call->run];
  build->spans.at[device].launch = host;
  if (build->spans.at[host].link == INDEX_NONE)
    build->spans.at[host].link = device;
}

static void decode_call(struct timeline_build *build, i64 start, i64 end, u32 thread, u32 word,
                        u16 stream) {
  struct span span = {.start = start,
                      .end = end_or_rank_end(build, end),
                      .name = vocabulary_name(build, word),
                      .link = INDEX_NONE,
                      .launch = INDEX_NONE,
                      .kind = SPAN_COLL_CALL,
                      .category = (u8)(word < NAMES_OF_PHASES ? word : 0)};
  thread_lane(build, thread, false, &span.lane);
  add_span(build, &span, &(struct span_facts){.stream = stream});
}

struct numbered_group {
  u32 group, span;
};

static int by_number(const void *left, const void *right) {
  const struct numbered_group *a = left, *b = right;
  return a->group < b->group ? -1 : a->group > b->group;
}

/* Calls outside groups, and group ends for the calls inside. */
static void decode_calls(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  u32 n = events->groups.n;
  struct numbered_group *groups = arena_array(&build->arena, size_sum(n, 1), sizeof(*groups));
  for (u32 i = 0; i < n; i++) {
    const struct rank_group *group = &events->groups.at[i];
    groups[i] = (struct numbered_group){group->group, build->spans.n};
    decode_call(build, group->start, group->end, group->thread, NAMES_OF_CALLS, TSCOPE_NO_STREAM);
  }
  if (n)
    qsort(groups, n, sizeof(*groups), by_number);
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    if (call->replayed)
      continue;
    struct numbered_group wanted = {.group = call->group};
    struct numbered_group *group =
        call->group && n ? bsearch(&wanted, groups, n, sizeof(*groups), by_number) : NULL;
    u32 host = group ? group->span : build->spans.n;
    if (!group) {
      decode_call(build, call->start, call->end, call->thread,
                  call->op < NAMES_OF_PHASES ? call->op : 0, call->stream);
    }
    join(build, call, host);
  }
}

/* A launch of a graph, of which the replayed collectives are the work. */
struct graph_launch {
  i64 start;
  u32 span;
};

static int by_launch(const void *left, const void *right) {
  const struct graph_launch *a = left, *b = right;
  return a->start < b->start ? -1 : a->start > b->start;
}

/* Joins replayed collectives to their launch: the last one that had begun by then. */
static void join_replays(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  VECTOR(struct graph_launch) launches = {0};
  for (u32 i = 0; i < build->spans.n; i++)
    if (build->spans.at[i].kind == SPAN_LAUNCH && build->facts.at[i].work == WORK_GRAPH)
      VECTOR_PUSH(&launches, ((struct graph_launch){build->spans.at[i].start, i}));
  if (launches.n)
    qsort(launches.at, launches.n, sizeof(*launches.at), by_launch);
  u32 next = 0;
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    if (!call->replayed)
      continue;
    while (next < launches.n && launches.at[next].start <= call->start)
      next++;
    if (next)
      join(build, call, launches.at[next - 1].span);
  }
  free(launches.at);
}

static void decode_waits_and_phases(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  for (u32 i = 0; i < events->waits.n; i++) {
    const struct rank_wait *wait = &events->waits.at[i];
    u32 run = wait->call == INDEX_NONE ? INDEX_NONE : events->calls.at[wait->call].run;
    u32 awaited = run == INDEX_NONE ? INDEX_NONE : build->span_of_run[run];
    struct span span = {.start = wait->start,
                        .end = end_or_rank_end(build, wait->end),
                        .name = vocabulary_name(build, NAMES_OF_CALLS + 1),
                        .link = awaited,
                        .launch = INDEX_NONE,
                        .kind = SPAN_COMM_WAIT};
    thread_lane(build, wait->thread, false, &span.lane);
    add_span(build, &span, &(struct span_facts){0});
  }
  for (u32 i = 0; i < events->phases.n; i++) {
    const struct rank_phase *phase = &events->phases.at[i];
    struct span span = {.start = phase->start,
                        .end = end_or_rank_end(build, phase->end),
                        .name = phase->name
                                    ? phase->name
                                    : vocabulary_name(build, NAMES_OF_PHASES + phase->kind % 16),
                        .link = INDEX_NONE,
                        .launch = INDEX_NONE,
                        .kind = SPAN_PHASE,
                        .category = phase->kind};
    thread_lane(build, phase->thread, false, &span.lane);
    add_span(build, &span, &(struct span_facts){0});
  }
}

static void decode_sites(struct timeline_build *build) {
  const struct rank_events *events = build->events;
  for (u32 i = 0; i < events->sites.n; i++) {
    const struct rank_site *site = &events->sites.at[i];
    u16 lane;
    thread_lane(build, site->thread, false, &lane);
    timeline_site(build, site->stack, site->tag, site->start, lane);
  }
}

/* A blocking copy or fill is a launch and then a wait for what it launched. */
static void add_launch(struct decoding *decoding, struct span *span, struct span_facts *facts,
                       bool blocking) {
  struct timeline_build *build = decoding->build;
  i64 end = span->end;
  if (blocking && end > span->start + 1)
    span->end = span->start + 1;
  else
    blocking = false;
  add_span(build, span, facts);
  if (!blocking)
    return;
  struct span wait = {.start = span->end,
                      .end = end,
                      .name = span->name,
                      .link = INDEX_NONE,
                      .launch = INDEX_NONE,
                      .lane = span->lane,
                      .kind = SPAN_SYNC,
                      .category = TSCOPE_SYNC_STREAM};
  add_span(build, &wait, &(struct span_facts){.what = facts->stream, .sync = TSCOPE_SYNC_STREAM});
}

/* Arithmetic that a kernel's grid shows, from now until the call returns. */
static void estimate_arithmetic(struct decoding *decoding, u32 shape, const struct span *span) {
  const struct shape_definition *made = &decoding->build->definitions.shapes[shape];
  struct shape_arithmetic *known = &decoding->arithmetic[shape];
  if (known->flops == 0 || (!isnan(known->flops) && known->heads != decoding->heads)) {
    const char *name = definition_string(&decoding->build->definitions, made->kernel);
    *known = (struct shape_arithmetic){kernel_attention_flops(name, made->grid, decoding->heads),
                                       decoding->heads, kernel_attention_heads(name, made->grid)};
  }
  if (known->prepares)
    decoding->heads = known->prepares;
  if (!isnan(known->flops)) {
    VECTOR_PUSH(&decoding->build->arithmetic, (struct arithmetic){.start = span->start,
                                                                  .end = span->end,
                                                                  .flops = (u64)known->flops,
                                                                  .what = INDEX_NONE,
                                                                  .lane = span->lane,
                                                                  .estimate = true});
  }
}

static void decode_gemm(struct decoding *decoding, const struct tscope_record *record, i64 start,
                        u64 time) {
  const struct tscope_gemm_record *gemm = (const void *)record;
  u64 dur = trace_dur(record, gemm->dur, sizeof(*gemm));
  timeline_gemm(decoding->build, gemm, (struct interval){start, axis_ns(decoding, time + dur)},
                decoding->host_lane);
}

static void decode_gemm_time(struct decoding *decoding, const struct tscope_record *record,
                             i64 start, u64 time) {
  const struct tscope_gpu_work_record *work = (const void *)record;
  u64 dur = trace_dur(record, work->dur, sizeof(*work));
  timeline_gemm_time(decoding->build, work,
                     (struct interval){start, axis_ns(decoding, time + dur)});
}

static void decode_launch(struct decoding *decoding, const struct tscope_record *record, i64 start,
                          u64 time) {
  const struct tscope_launch_record *launch = (const void *)record;
  const struct definitions *definitions = &decoding->build->definitions;
  struct span span = {.start = start,
                      .link = INDEX_NONE,
                      .launch = INDEX_NONE,
                      .lane = decoding->host_lane,
                      .kind = SPAN_LAUNCH};
  struct span_facts facts = {.stream = record->tag, .work = WORK_KERNEL};
  bool blocking = false;
  u64 dur = trace_dur(record, launch->dur, trace_record_bytes[record->type]);
  span.end = axis_ns(decoding, time + dur);
  switch (record->type) {
  case TSCOPE_REC_LAUNCH:
    if (launch->shape < definitions->n_shapes) {
      estimate_arithmetic(decoding, launch->shape, &span);
    }
    if (launch->shape < definitions->n_shapes)
      facts.what = span.name = definitions->shapes[launch->shape].kernel;
    if (communication_of(decoding->build, facts.what).library == COMM_LIBRARY_NCCL)
      return; /* inside the collective's call, which is what launched it */
    break;
  case TSCOPE_REC_GRAPH_LAUNCH:
    facts.work = WORK_GRAPH;
    facts.graph = 1;
    facts.what = ((const struct tscope_graph_launch_record *)record)->graph;
    span.name = vocabulary_name(decoding->build, NAMES_OF_CALLS + 2);
    timeline_replay(decoding->build, ((const struct tscope_graph_launch_record *)record)->graph,
                    (struct interval){start, span.end}, decoding->host_lane);
    break;
  default: {
    const struct tscope_memcpy_record *copy = (const void *)record;
    bool fill = record->type == TSCOPE_REC_MEMSET;
    facts.work = fill ? WORK_MEMSET : WORK_MEMCPY;
    facts.what = (u32)copy->bytes;
    span.category = fill ? 0 : (u8)copy->kind;
    span.name = vocabulary_name(decoding->build, NAMES_OF_CALLS + (fill ? 4 : 3));
    blocking = !fill && !(copy->kind & TSCOPE_MEMCPY_ASYNC);
  }
  }
  add_launch(decoding, &span, &facts, blocking);
}

static void decode_device(struct decoding *decoding, const struct tscope_record *record, i64 start,
                          u64 time) {
  struct timeline_build *build = decoding->build;
  const struct tscope_gpu_kernel_record *kernel = (const void *)record;
  u64 dur = trace_dur(record, kernel->dur, trace_record_bytes[record->type]);
  struct span span = {.start = start,
                      .end = axis_ns(decoding, time + dur),
                      .link = INDEX_NONE,
                      .launch = INDEX_NONE,
                      .kind = SPAN_KERNEL};
  struct span_facts facts = {.stream = record->tag, .work = WORK_KERNEL};
  if (record->type == TSCOPE_REC_GPU_KERNEL) {
    span.name = facts.what = kernel->name;
    facts.graph = kernel->graph ? kernel->correlation : 0;
    facts.gpu_graph = kernel->graph;
    facts.correlation = kernel->correlation;
    u8 library = communication_of(build, kernel->name).library;
    if (library && library != COMM_LIBRARY_NCCL)
      return; /* see decode_kernels() */
    if (library) {
      span.kind = SPAN_COLLECTIVE;
      facts.work = WORK_NONE;
    }
  } else if (record->type == TSCOPE_REC_GPU_MEMCPY) {
    const struct tscope_gpu_memcpy_record *copy = (const void *)record;
    bool between_gpus = copy->kind == TSCOPE_MEMCPY_P2P;
    if (is_in_run(build, record->tag, start, span.end))
      return;
    span.kind = between_gpus ? SPAN_COLLECTIVE : SPAN_MEMCPY;
    span.category = between_gpus ? COMM_OP_PEER_COPY : (u8)copy->kind;
    span.name = vocabulary_name(build, NAMES_OF_CALLS + 3);
    facts.what = (u32)copy->bytes;
    facts.bytes = (float)copy->bytes;
    facts.work = WORK_MEMCPY;
    facts.graph = copy->graph ? copy->correlation : 0;
    facts.gpu_graph = copy->graph;
    facts.correlation = copy->correlation;
  } else {
    span.kind = SPAN_MEMSET;
    span.name = vocabulary_name(build, NAMES_OF_CALLS + 4);
    facts.what = (u32)((const struct tscope_gpu_memset_record *)record)->bytes;
    facts.bytes = (float)((const struct tscope_gpu_memset_record *)record)->bytes;
    facts.work = WORK_MEMSET;
    facts.correlation = ((const struct tscope_gpu_memset_record *)record)->correlation;
  }
  build->saw_replays |= facts.graph != 0;
  stream_lane(build, record->tag, &span.lane);
  add_span(build, &span, &facts);
}

static void decode_sync(struct decoding *decoding, const struct tscope_record *record, i64 start,
                        u64 time) {
  const struct tscope_sync_record *sync = (const void *)record;
  u64 dur = trace_dur(record, sync->dur, sizeof(*sync));
  struct span span = {.start = start,
                      .end = axis_ns(decoding, time + dur),
                      .name = vocabulary_name(decoding->build, NAMES_OF_SYNCS + record->tag % 8),
                      .link = INDEX_NONE,
                      .launch = INDEX_NONE,
                      .lane = decoding->host_lane,
                      .kind = SPAN_SYNC,
                      .category = (u8)record->tag};
  add_span(decoding->build, &span,
           &(struct span_facts){.what = sync->object, .sync = (u8)record->tag});
}

static void decode_gpu_wait(struct decoding *decoding, const struct tscope_record *record,
                            i64 start, u64 time) {
  const struct tscope_gpu_sync_record *wait = (const void *)record;
  u64 dur = trace_dur(record, wait->dur, sizeof(*wait));
  VECTOR_PUSH(&decoding->build->gpu_waits, (struct gpu_wait){.start = start,
                                                             .end = axis_ns(decoding, time + dur),
                                                             .record_id = wait->record_id,
                                                             .correlation = wait->correlation,
                                                             .event = wait->gpu_event,
                                                             .stream = wait->gpu_stream,
                                                             .type = record->tag});
}

static void decode_gpu_event(struct decoding *decoding, const struct tscope_record *record) {
  const struct tscope_gpu_event_record *event = (const void *)record;
  VECTOR_PUSH(&decoding->build->gpu_waits, (struct gpu_wait){.record_id = event->record_id,
                                                             .correlation = event->correlation,
                                                             .event = event->gpu_event,
                                                             .stream = event->gpu_stream});
}

static void decode_record(struct decoding *decoding, const struct tscope_record *record, u64 time) {
  i64 start = axis_ns(decoding, time);
  switch (record->type) {
  case TSCOPE_REC_LAUNCH:
  case TSCOPE_REC_GRAPH_LAUNCH:
  case TSCOPE_REC_MEMCPY:
  case TSCOPE_REC_MEMSET:
    decode_launch(decoding, record, start, time);
    break;
  case TSCOPE_REC_GPU_KERNEL:
  case TSCOPE_REC_GPU_MEMCPY:
  case TSCOPE_REC_GPU_MEMSET:
    decode_device(decoding, record, start, time);
    break;
  case TSCOPE_REC_GEMM:
    decode_gemm(decoding, record, start, time);
    break;
  case TSCOPE_REC_GPU_WORK:
    decode_gemm_time(decoding, record, start, time);
    break;
  case TSCOPE_REC_SYNC:
    decode_sync(decoding, record, start, time);
    break;
  case TSCOPE_REC_GPU_SYNC:
    decode_gpu_wait(decoding, record, start, time);
    break;
  case TSCOPE_REC_GPU_EVENT:
    decode_gpu_event(decoding, record);
    break;
  case TSCOPE_REC_CALL_SITE_RING:
    timeline_site(decoding->build,
                  ((const struct tscope_call_site_ring_record *)(const void *)record)->stack,
                  record->tag, start, decoding->host_lane);
    break;
  case TSCOPE_REC_EVENT_RECORD:
  case TSCOPE_REC_EVENT_WAIT: {
    const struct tscope_event_record_record *use = (const void *)record;
    VECTOR_PUSH(&decoding->build->event_uses,
                (struct event_use){.time = start,
                                   .event = use->event,
                                   .stream = record->tag,
                                   .wait = record->type == TSCOPE_REC_EVENT_WAIT});
    break;
  }
  }
}

/* About one for each record, of which none is smaller than this. */
static void expect_spans(struct timeline_build *build, const struct trace_file *file) {
  u64 most = file->stored / sizeof(struct tscope_launch_record);
  u64 records = build->model->ranks[build->rank].records;
  u32 n = (u32)(records < most ? records : most);
  VECTOR_EXPECT(&build->spans, n);
  VECTOR_EXPECT(&build->facts, n);
}

static int decode_chunk(void *user, const struct trace_chunk *chunk) {
  struct decoding *decoding = user;
  bool after_gap = chunk->after_gap;
  struct timeline_build *build = decoding->build;
  struct trace_cursor cursor = trace_records(chunk);
  decoding->clock = chunk_clock(&build->definitions.ticks, &chunk->header);
  if (chunk->header.clock == TSCOPE_CLOCK_TICKS) {
    thread_lane(build, chunk->header.thread, false, &decoding->host_lane);
  }
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    u64 time = trace_time(&cursor, record);
    if (after_gap) { /* chunks before this one were recycled */
      i64 first = axis_ns(decoding, time);
      build->ring_begin = first > build->ring_begin ? first : build->ring_begin;
      after_gap = false;
    }
    decode_record(decoding, record, time);
  }
  return 0;
}

/* In the order they were written, so that most of what is decoded is sorted. */
static int decode_ring(struct decoding *decoding, const struct trace_file *file) {
  return trace_visit(file, &(struct trace_visit){.chunks = TRACE_RING,
                                                 .by_writer = true,
                                                 .on_chunk = decode_chunk,
                                                 .user = decoding});
}

int timeline_decode(struct timeline_build *build) {
  struct decoding decoding = {.build = build};
  struct trace_file file;
  char why[256];
  int result = trace_file_open(&file, build->model->ranks[build->rank].path, why, sizeof(why));
  if (result < 0)
    return result;
  result = definitions_read(&build->definitions, &file, &build->arena);
  if (result == 0) {
    expect_spans(build, &file);
    decoding.arithmetic =
        memory_zeroed(size_sum(build->definitions.n_shapes, 1), sizeof(*decoding.arithmetic));
    decode_runs(build);
    decode_kernels(build);
    decode_calls(build);
    decode_waits_and_phases(build);
  }
  if (result == 0)
    decode_sites(build);
  if (result == 0)
    timeline_gemms_begin(build);
  if (result == 0)
    result = decode_ring(&decoding, &file);
  if (result == 0)
    join_replays(build);
  if (result == 0)
    timeline_gemms_end(build);
  free(decoding.arithmetic);
  trace_file_close(&file);
  return result;
}
