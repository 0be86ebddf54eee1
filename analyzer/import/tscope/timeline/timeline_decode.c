/* SPDX-License-Identifier: MIT
 *
 * Spans of the records of a file: calls and GPU work of the ring, one for each record or two.
 */
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
  u64 time;  /* of the record that is decoded, in the chunk's units */
  i64 start; /* and on the model's axis */
  u16 host_lane;
  struct shape_arithmetic *arithmetic; /* [n_shapes] */
  u32 heads;                           /* as kernel_attention_heads() said last; 0: not yet */
};

static i64 axis_ns(struct decoding *decoding, u64 units) {
  return clock_to_axis(decoding->build->clock, chunk_ns(&decoding->clock, units));
}

/* For as long as the record says. */
static struct interval interval_of(struct decoding *decoding, const struct tscope_record *record) {
  i64 end = axis_ns(decoding, decoding->time + trace_dur(record));
  return (struct interval){decoding->start, end};
}

/* What kernels of that name communicate; read_events.c has asked for all that the file has. */
static struct communication communication_of(const struct timeline_build *build, u32 name) {
  return name < build->definitions.n_strings ? build->events->communications[name]
                                             : (struct communication){0};
}

/* A blocking copy or fill is a launch and then a wait for what it launched. */
static void add_launch(struct decoding *decoding, struct span *span, struct span_facts *facts,
                       bool blocking) {
  struct timeline_build *build = decoding->build;
  i64 end = span->end;
  bool waits = blocking && end > span->start + 1;
  if (waits)
    span->end = span->start + 1;
  timeline_add_span(build, span, facts);
  if (!waits)
    return;
  struct span wait =
      timeline_span(SPAN_SYNC, (struct interval){span->end, end}, span->name, span->lane);
  wait.category = TSCOPE_SYNC_STREAM;
  timeline_add_span(build, &wait,
                    &(struct span_facts){.what = facts->stream, .sync = TSCOPE_SYNC_STREAM});
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
  if (!isnan(known->flops))
    VECTOR_PUSH(&decoding->build->arithmetic, (struct arithmetic){.flops = (u64)known->flops,
                                                                  .what = INDEX_NONE,
                                                                  .estimate = true,
                                                                  SAME(span, start, end, lane)});
}

static void decode_launch(struct decoding *decoding, const struct tscope_record *record) {
  const struct tscope_launch_record *launch = (const void *)record;
  const struct definitions *definitions = &decoding->build->definitions;
  struct span span =
      timeline_span(SPAN_LAUNCH, interval_of(decoding, record), 0, decoding->host_lane);
  struct span_facts facts = {.stream = record->tag, .work = WORK_KERNEL};
  bool blocking = false;
  switch (record->type) {
  case TSCOPE_REC_LAUNCH:
    if (launch->shape < definitions->n_shapes) {
      estimate_arithmetic(decoding, launch->shape, &span);
      facts.what = span.name = definitions->shapes[launch->shape].kernel;
    }
    if (communication_of(decoding->build, facts.what).library == COMM_LIBRARY_NCCL)
      return; /* inside the collective's call, which is what launched it */
    break;
  case TSCOPE_REC_GRAPH_LAUNCH:
    facts.work = WORK_GRAPH;
    facts.graph = 1;
    facts.what = ((const struct tscope_graph_launch_record *)record)->graph;
    span.name = vocabulary_name(decoding->build, NAMES_OF_CALLS + 2);
    timeline_replay(decoding->build, ((const struct tscope_graph_launch_record *)record)->graph,
                    (struct interval){decoding->start, span.end}, decoding->host_lane);
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

static void decode_device(struct decoding *decoding, const struct tscope_record *record) {
  struct timeline_build *build = decoding->build;
  const struct tscope_gpu_kernel_record *kernel = (const void *)record;
  struct span span = timeline_span(SPAN_KERNEL, interval_of(decoding, record), 0, 0);
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
    if (timeline_is_in_run(build, record->tag, span.start, span.end))
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
    const struct tscope_gpu_memset_record *fill = (const void *)record;
    span.kind = SPAN_MEMSET;
    span.name = vocabulary_name(build, NAMES_OF_CALLS + 4);
    facts.what = (u32)fill->bytes;
    facts.bytes = (float)fill->bytes;
    facts.work = WORK_MEMSET;
    facts.correlation = fill->correlation;
  }
  build->saw_replays |= facts.graph != 0;
  span.lane = timeline_stream_lane(build, record->tag);
  timeline_add_span(build, &span, &facts);
}

static void decode_sync(struct decoding *decoding, const struct tscope_sync_record *sync) {
  const struct tscope_record *record = &sync->header;
  struct span span = timeline_span(
      SPAN_SYNC, interval_of(decoding, record),
      vocabulary_name(decoding->build, NAMES_OF_SYNCS + record->tag % 8), decoding->host_lane);
  span.category = (u8)record->tag;
  timeline_add_span(decoding->build, &span,
                    &(struct span_facts){.what = sync->object, .sync = (u8)record->tag});
}

static void decode_gemm(struct decoding *decoding, const struct tscope_gemm_record *gemm) {
  timeline_gemm(decoding->build, gemm, interval_of(decoding, &gemm->header), decoding->host_lane);
}

static void decode_gpu_work(struct decoding *decoding, const struct tscope_gpu_work_record *work) {
  timeline_gemm_time(decoding->build, work, interval_of(decoding, &work->header));
}

static void decode_call_site(struct decoding *decoding,
                             const struct tscope_call_site_ring_record *site) {
  timeline_site(decoding->build, site->stack, site->header.tag, decoding->start,
                decoding->host_lane);
}

static void decode_event_use(struct decoding *decoding,
                             const struct tscope_event_record_record *use) {
  VECTOR_PUSH(&decoding->build->event_uses,
              (struct event_use){.time = decoding->start,
                                 .event = use->event,
                                 .stream = use->header.tag,
                                 .wait = use->header.type == TSCOPE_REC_EVENT_WAIT});
}

static void decode_record(struct decoding *decoding, const struct tscope_record *record) {
  switch (record->type) {
    ON_RECORD(LAUNCH, decode_launch, decoding)
    ON_RECORD(GRAPH_LAUNCH, decode_launch, decoding)
    ON_RECORD(MEMCPY, decode_launch, decoding)
    ON_RECORD(MEMSET, decode_launch, decoding)
    ON_RECORD(GPU_KERNEL, decode_device, decoding)
    ON_RECORD(GPU_MEMCPY, decode_device, decoding)
    ON_RECORD(GPU_MEMSET, decode_device, decoding)
    ON_RECORD(GEMM, decode_gemm, decoding)
    ON_RECORD(GPU_WORK, decode_gpu_work, decoding)
    ON_RECORD(SYNC, decode_sync, decoding)
    ON_RECORD(CALL_SITE_RING, decode_call_site, decoding)
    ON_RECORD(EVENT_RECORD, decode_event_use, decoding)
    ON_RECORD(EVENT_WAIT, decode_event_use, decoding)
  }
}

/* About one for each record, of which none is smaller than this. */
static void expect_spans(struct timeline_build *build, const struct trace_file *file) {
  u64 most = file->stored / sizeof(struct tscope_launch_record);
  u64 records = build->model->ranks[build->rank].records;
  u32 n = (u32)MIN(records, most);
  VECTOR_EXPECT(&build->spans, n);
  VECTOR_EXPECT(&build->facts, n);
}

static void decode_chunk(void *user, const struct trace_chunk *chunk) {
  struct decoding *decoding = user;
  bool after_gap = chunk->after_gap;
  struct timeline_build *build = decoding->build;
  struct trace_cursor cursor = trace_records(chunk);
  decoding->clock = chunk_clock(&build->definitions.ticks, &chunk->header);
  if (chunk->header.clock == TSCOPE_CLOCK_TICKS)
    decoding->host_lane = timeline_thread_lane(build, chunk->header.thread, false);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    decoding->time = trace_time(&cursor, record);
    decoding->start = axis_ns(decoding, decoding->time);
    if (after_gap && decoding->start > build->ring_begin)
      build->ring_begin = decoding->start; /* chunks before this one were recycled */
    after_gap = false;
    decode_record(decoding, record);
  }
}

int timeline_decode(struct timeline_build *build) {
  struct decoding decoding = {.build = build};
  struct trace_file file;
  int result = trace_file_open(&file, build->model->ranks[build->rank].path, NULL, 0);
  if (result < 0)
    return result;
  definitions_read(&build->definitions, &file, &build->arena);
  expect_spans(build, &file);
  decoding.arithmetic =
      memory_zeroed(size_sum(build->definitions.n_shapes, 1), sizeof(*decoding.arithmetic));
  timeline_add_kept(build);
  timeline_gemms_begin(build);
  /* In the order they were written, so that most of what is decoded is sorted. */
  trace_visit(&file, &(struct trace_visit){.chunks = TRACE_RING,
                                           .by_writer = true,
                                           .on_chunk = decode_chunk,
                                           .user = &decoding});
  timeline_join_replays(build);
  timeline_gemms_end(build);
  free(decoding.arithmetic);
  trace_file_close(&file);
  return 0;
}
