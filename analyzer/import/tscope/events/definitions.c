/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/collector.h"

#include <stdio.h>

#include "base/sorting.h"
#include "import/tscope/files/visit.h"

static void read_string(struct collector *into, const struct tscope_string_record *string) {
  u32 bytes;
  const char *text = trace_text(&string->header, sizeof(*string), string->bytes, &bytes);
  if (string->string == 0 || string->string > into->most_numbers || bytes == 0)
    return;
  VECTOR_REACH(&into->strings, string->string);
  into->strings.at[string->string] = arena_copy(&into->out->text, text, bytes);
}

static void read_shape(struct collector *into, const struct tscope_shape_record *shape) {
  if (shape->shape == 0 || shape->shape > into->most_numbers)
    return;
  VECTOR_REACH(&into->shapes, shape->shape);
  into->shapes.at[shape->shape] =
      (struct shape_definition){shape->kernel, {shape->grid_x, shape->grid_y, shape->grid_z}};
}

static void read_stream(struct collector *into, const struct tscope_stream_record *stream) {
  VECTOR_REACH(&into->streams, stream->header.tag);
  struct stream_definition *definition = &into->streams.at[stream->header.tag];
  bool several = definition->known && definition->gpu_stream != stream->gpu_stream;
  *definition =
      (struct stream_definition){stream->handle, stream->gpu_stream, stream->device, true};
  if (several) /* one after the other, as in a process that makes and destroys many */
    definition->gpu_stream = TSCOPE_UNKNOWN;
}

static void read_comm(struct collector *into, const struct tscope_comm_record *comm) {
  struct comm_definition definition = {.backend = (u8)comm->header.tag,
                                       SAME(comm, identity, parent, comm, rank, size)};
  VECTOR_PUSH(&into->comms, definition);
  VECTOR_PUSH(&into->comm_names, comm->name);
}

static void read_thread(struct collector *into, const struct tscope_thread_record *thread) {
  struct thread_definition definition = {.thread = thread->thread, .tid = thread->tid};
  VECTOR_PUSH(&into->threads, definition);
  VECTOR_PUSH(&into->thread_names, thread->name);
}

static void read_anchor(struct collector *into, const struct tscope_anchor_record *anchor) {
  into->out->realtime_minus_monotonic = (i64)(anchor->realtime_ns - anchor->monotonic_ns);
  into->error_ticks = MAX(anchor->error_ticks, into->error_ticks);
  if (anchor->monotonic_ns <= INT64_MAX && (i64)anchor->monotonic_ns > into->out->last_anchor)
    into->out->last_anchor = (i64)anchor->monotonic_ns;
  struct tick_anchor instant = {anchor->ticks, anchor->monotonic_ns};
  VECTOR_PUSH(&into->anchors, instant);
}

static void read_captured_gemm(struct collector *into,
                               const struct tscope_graph_gemm_record *record) {
  struct captured_gemm gemm = {.order = into->captured_gemms.n,
                               .first_kernel = into->captured_kernels.n};
  memcpy(&gemm.record, record, sizeof(gemm.record));
  const u8 *shapes = (const u8 *)record + sizeof(gemm.record);
  u32 room = (u32)(8u * record->header.words - sizeof(gemm.record)) / (u32)sizeof(u32);
  for (u32 i = 0; i < gemm.record.shapes && i < room; i++, gemm.n_kernels++) {
    u32 shape;
    memcpy(&shape, shapes + i * sizeof(shape), sizeof(shape));
    VECTOR_PUSH(&into->captured_kernels, shape);
  }
  VECTOR_PUSH(&into->captured_gemms, gemm);
}

static void read_stack(struct collector *into, const struct tscope_stack_record *stack) {
  const u8 *ids = (const u8 *)(stack + 1);
  u32 room = (u32)(8u * stack->header.words - sizeof(*stack)) / (u32)sizeof(u64);
  struct stack_definition definition = {stack->stack, into->stack_frames.n, 0, stack->cut != 0};
  for (u32 i = 0; i < stack->frames && i < room; i++, definition.n++) {
    u64 id;
    memcpy(&id, ids + i * sizeof(id), sizeof(id));
    VECTOR_PUSH(&into->stack_frames, id);
  }
  VECTOR_PUSH(&into->stacks, definition);
}

/* A process may be killed between a loss and its count by reason. */
static u64 uncounted_losses(const struct tscope_file_header *header,
                            const struct trace_visit *visit) {
  u64 counted = TOTAL(u64, header->lost, TSCOPE_LOSS_REASONS, one, *one);
  u64 lost = visit->given_up + (header->version_minor < 2 ? 0 : header->lost_singly);
  return lost > counted ? lost - counted : 0;
}

static void read_loss(struct collector *into, const struct tscope_loss_record *loss) {
  if (loss->header.tag < TSCOPE_LOSS_REASONS && loss->records > into->out->lost[loss->header.tag])
    into->out->lost[loss->header.tag] = loss->records;
}

static void read_cost(struct collector *into, const struct tscope_cost_record *cost) {
  COPY_EACH(into->out, cost, helper_cpu_ns, startup_ns, slow_path_ns);
  into->out->cost_per_record_ns = cost->hook_ns_per_record;
}

static void read_scheduling(struct collector *into, const struct tscope_scheduling_record *now) {
  struct tscope_scheduling_record *first = &into->out->scheduling[0], *last = first + 1;
  if (!first->at_ns || now->at_ns < first->at_ns)
    *first = *now;
  if (now->at_ns >= last->at_ns)
    *last = *now;
}

static void read_line_sampling(struct collector *into,
                               const struct tscope_line_sampling_record *sampling) {
  into->out->samples = sampling->samples;
  into->out->unread_samples = sampling->unreadable;
}

static void read_gpu_clock(struct collector *into, const struct tscope_gpu_clock_record *clock) {
  into->out->gpu_clock = (u8)clock->header.tag;
  into->out->gpu_dropped = clock->dropped;
  into->out->gpu_invalid = clock->invalid;
  into->gpu_clock_reason = clock->reason;
}

static void read_info(struct collector *into, const struct tscope_info_record *info) {
  if (info->header.tag < LENGTH_OF(into->out->info))
    VECTOR_PUSH(&into->infos, (struct info_item){info->header.tag, info->value, info->detail});
}

static void read_graph_child(struct collector *into,
                             const struct tscope_graph_child_record *child) {
  VECTOR_PUSH(&into->graph_children, (struct graph_child){child->captured, child->child});
}

static void read_frame(struct collector *into, const struct tscope_frame_record *frame) {
  VECTOR_PUSH(
      &into->frames,
      (struct frame_definition){.id = frame->frame, SAME(frame, file, function, line, first_line)});
}

static void read_native_frame(struct collector *into,
                              const struct tscope_native_frame_record *frame) {
  VECTOR_PUSH(&into->frames, (struct frame_definition){.id = frame->frame,
                                                       .native = true,
                                                       SAME(frame, library, build_id, offset)});
}

void collector_add(struct collector *into, const struct tscope_record *record) {
  switch (record->type) {
    ON_RECORD(STRING, read_string, into)
    ON_RECORD(SHAPE, read_shape, into)
    ON_RECORD(STREAM, read_stream, into)
    ON_RECORD(COMM, read_comm, into)
    ON_RECORD(THREAD, read_thread, into)
    ON_RECORD(ANCHOR, read_anchor, into)
    ON_RECORD(INFO, read_info, into)
    ON_RECORD(GRAPH_CHILD, read_graph_child, into)
    ON_RECORD(GRAPH_GEMM, read_captured_gemm, into)
    ON_RECORD(FRAME, read_frame, into)
    ON_RECORD(NATIVE_FRAME, read_native_frame, into)
    ON_RECORD(STACK, read_stack, into)
    ON_RECORD(LOSS, read_loss, into)
    ON_RECORD(COST, read_cost, into)
    ON_RECORD(SCHEDULING, read_scheduling, into)
    ON_RECORD(LINE_SAMPLING, read_line_sampling, into)
    ON_RECORD(GPU_CLOCK, read_gpu_clock, into)
#define R(TYPE, list, name) case TSCOPE_REC_##TYPE:
    STALL_RECORDS(R)
#undef R
    stall_records_add(&into->stalls, record);
  }
}

static void collect_chunk(void *user, const struct trace_chunk *chunk) {
  struct collector *into = user;
  struct trace_cursor cursor = trace_records(chunk);
  for (const struct tscope_record *record; (record = trace_next(&cursor));)
    collector_add(into, record);
  into->cut += chunk->cut;
  into->damaged += cursor.damaged && !chunk->cut;
}

static void collect(struct collector *into, const struct trace_file *file) {
  struct trace_visit visit = {.chunks = TRACE_RETAINED, .on_chunk = collect_chunk, .user = into};
  trace_visit(file, &visit);
  into->out->records = visit.records;
  into->damaged += visit.damaged;
  u64 uncounted = uncounted_losses(&file->header, &visit);
  for (u32 i = 0; i < TSCOPE_LOSS_REASONS; i++) {
    u64 lost = file->header.lost[i] + (i == visit.given_up_as ? uncounted : 0);
    into->out->lost[i] = MAX(lost, into->out->lost[i]);
  }
}

static bool is_listed(u32 key) {
  return key == TSCOPE_INFO_ENVIRONMENT || key == TSCOPE_INFO_FEATURE ||
         key == TSCOPE_INFO_LOOKED_UP || key == TSCOPE_INFO_UNKNOWN_FUNCTIONS;
}

/* All "detail=value" of a key, each on a line; of length 0 if there are none. */
static char *join_infos(struct collector *into, u32 key) {
  char *text = NULL, *end = NULL;
  for (size_t bytes = 0, pass = 0; pass < 2; pass++) {
    if (pass) {
      text = end = arena_alloc(into->arena, size_sum(bytes, 1));
    }
    FOR_EACH(into->infos.at, into->infos.n, item) {
      const char *value = definition_string(into->out, item->value);
      const char *detail = definition_string(into->out, item->detail);
      if (item->key != key || !value || !detail)
        continue;
      if (pass)
        end += sprintf(end, "%s%s=%s", end > text ? "\n" : "", detail, value);
      else
        bytes = size_sum(bytes, size_sum(strlen(detail), size_sum(strlen(value), 2)));
    }
  }
  return text;
}

void collector_finish_infos(struct collector *into) {
  struct definitions *out = into->out;
  FOR_EACH(into->infos.at, into->infos.n, item) {
    const char *value = definition_string(out, item->value);
    if (value && !(is_listed(item->key) && definition_string(out, item->detail)))
      out->info[item->key] = value;
  }
  for (u32 key = 0; key < LENGTH_OF(out->info); key++) {
    char *list = is_listed(key) ? join_infos(into, key) : NULL;
    if (list && *list)
      out->info[key] = list;
    else if (out->info[key])
      out->info[key] = arena_text(into->arena, out->info[key]);
  }
}

ORDER_BY(by_parent, struct graph_child, UP(captured))

ORDER_BY(by_capture, struct captured_gemm, UP(record.captured) UP(order))

static const char *damage_of(const struct collector *into, const struct trace_file *file) {
  u64 last_chunk = file->header.header_bytes + (u64)(file->n_chunks - 1) * file->header.chunk_bytes;
  bool headless = file->n_chunks && file->bytes - last_chunk < sizeof(struct tscope_chunk_header);
  if (into->damaged)
    return arena_printf(into->arena, "%u damaged stretches were skipped", into->damaged);
  if (file->header.chunks > file->n_chunks)
    return arena_printf(into->arena, "cut: %llu of %llu chunks are there",
                        (unsigned long long)file->n_chunks,
                        (unsigned long long)file->header.chunks);
  if (into->cut || headless)
    return "cut inside its last chunk";
  if (into->out->ticks.rejected)
    return arena_printf(into->arena, "%u clock anchors contradict the others",
                        into->out->ticks.rejected);
  return NULL;
}

void definitions_sort_stacks(struct definitions *definitions) {
  SORT(definitions->frames, definitions->n_frames, by_u64);
  SORT(definitions->stacks, definitions->n_stacks, by_u64);
}

/* Strings first: the others' names are among them. */
static void finish_lists(struct collector *into) {
  struct definitions *out = into->out;
#define L(list, element)                                                                           \
  out->list = VECTOR_KEPT(&into->list, &out->text);                                                \
  out->n_##list = into->list.n;
  TEXT_LISTS(L)
#undef L
#define L(list, element)                                                                           \
  out->list = VECTOR_KEPT(&into->list, into->arena);                                               \
  out->n_##list = into->list.n;
  KEPT_LISTS(L)
#undef L
  for (u32 i = 0; i < out->n_comms; i++)
    out->comms[i].name = definition_string_kept(out, into->comm_names.at[i], into->arena);
  for (u32 i = 0; i < out->n_threads; i++)
    out->threads[i].name = definition_string_kept(out, into->thread_names.at[i], into->arena);
  SORT(out->graph_children, out->n_graph_children, by_parent);
  SORT(out->captured_gemms, out->n_captured_gemms, by_capture);
  definitions_sort_stacks(out);
}

static void finish(struct collector *into, const struct trace_file *file) {
  struct definitions *out = into->out;
  finish_lists(into);
  out->gpu_clock_reason = definition_string_kept(out, into->gpu_clock_reason, into->arena);
  if (into->anchors.n == 0)
    out->realtime_minus_monotonic =
        (i64)(file->header.start_realtime_ns - file->header.start_monotonic_ns);
  double hz = file->header.tick_hz ? (double)file->header.tick_hz : 1e9;
  double error = (double)into->error_ticks * 1e9 / hz;
  out->anchor_error_ns = error < 1e15 ? (u64)error : (u64)1e15;
  collector_finish_infos(into);
  tick_map_build(&out->ticks, &file->header, into->anchors.at, into->anchors.n, into->arena);
  stall_records_finish(&into->stalls, file->header.pid, out, into->arena);
  out->damage = damage_of(into, file);
}

void collector_release(struct collector *into) {
#define L(list, element) free(into->list.at);
  TEXT_LISTS(L)
  KEPT_LISTS(L)
#undef L
  FREE_EACH(into, comm_names.at, thread_names.at, anchors.at, infos.at);
  stall_records_release(&into->stalls);
}

void definitions_read(struct definitions *definitions, const struct trace_file *file,
                      struct arena *arena) {
  *definitions = (struct definitions){0};
  struct collector into = {.out = definitions,
                           .arena = arena,
                           .most_numbers = file->stored / sizeof(struct tscope_record)};
  collect(&into, file);
  finish(&into, file);
  collector_release(&into);
}

void chunk_clock_seek(struct chunk_clock *clock, u64 units) {
  const struct tick_map *map = clock->map;
  clock->stretch = tick_map_find(map, units);
  const struct tick_stretch *next = clock->stretch + 1;
  bool first = clock->stretch == map->stretches, last = next == map->stretches + map->n;
  clock->from = first ? 0 : (clock->stretch->ticks + (1ull << map->shift) - 1) >> map->shift;
  clock->to = last ? UINT64_MAX : (next->ticks + (1ull << map->shift) - 1) >> map->shift;
}

void definitions_free_text(struct definitions *definitions) {
  arena_release(&definitions->text);
#define L(list, element)                                                                           \
  definitions->list = NULL;                                                                        \
  definitions->n_##list = 0;
  TEXT_LISTS(L)
#undef L
}
