/* SPDX-License-Identifier: MIT */
#include "gpu/gpu_spans.h"

#include <string.h>

#include "format/text_parts.h"
#include "record/tick_clock.h"
#include "streams/stream_numbers.h"

bool gpu_kernel_is_collective(const char *name) {
  static const char *const libraries[] = {"nccl", "rccl"};
  if (!name)
    return false;
  if (name[0] == '_' && name[1] == 'Z') /* a plain C++ function: _Z, length, name */
    for (name += 2; *name == 'L' || (*name >= '0' && *name <= '9'); name++)
      ;
  for (size_t i = 0; i < LENGTH_OF(libraries); i++)
    if (tscope_begins_with(name, libraries[i]))
      return true;
  return false;
}

static struct tscope_writer *writer(struct tscope_writer *writer, enum tscope_retention retention) {
  if (TSCOPE_UNLIKELY(!writer->retention))
    tscope_writer_init(writer, retention, TSCOPE_CLOCK_MONOTONIC);
  return writer;
}

void gpu_run_record(struct tscope_thread *thread, const struct gpu_run *from) {
  struct gpu_thread *gpu = thread->family[TSCOPE_FAMILY_GPU];
  struct tscope_writer *retained = writer(&gpu->retained, TSCOPE_RETAINED);
  struct tscope_collective_run_record *run;
  struct tscope_graph_node node = {.node = from->node, .graph = from->graph};
  u32 bytes = (u32)(sizeof(*run) + (node.graph ? sizeof(node) : 0));
  run =
      tscope_reserve(thread, retained, from->start, TSCOPE_REC_COLLECTIVE_RUN, from->stream, bytes);
  if (!run)
    return;
  if (node.graph)
    memcpy(run + 1, &node, sizeof(node));
  run->dur = from->end - from->start;
  run->comm = from->comm;
  run->seq = from->seq;
  run->name = from->name;
  run->correlation = from->correlation;
  tscope_commit(retained, bytes);
}

/* A ring record in nanoseconds whose u32 duration follows its header. `fields` is the whole
 * record, with its header and duration to be filled in. */
static void record_ring(struct tscope_thread *thread, u64 start, u64 dur, u8 type, u16 tag,
                        const void *fields, u32 bytes) {
  struct gpu_thread *gpu = thread->family[TSCOPE_FAMILY_GPU];
  struct tscope_writer *ring = writer(&gpu->ring, TSCOPE_RING);
  struct tscope_record *record = tscope_reserve(thread, ring, start, type, tag, bytes);
  if (!record)
    return;
  u32 *short_dur = (u32 *)(void *)(record + 1);
  memcpy(record + 1, (const struct tscope_record *)fields + 1, bytes - sizeof(*record));
  *short_dur = dur < TSCOPE_DUR_LONG ? (u32)dur : TSCOPE_DUR_LONG;
  if (dur < TSCOPE_DUR_LONG)
    tscope_commit(ring, bytes);
  else
    tscope_commit_long(ring, bytes, dur);
}

void gpu_work_record(struct tscope_thread *thread, const struct gpu_work *work) {
  struct tscope_gpu_work_record record = {
      .name = work->name, .one_in = work->one_in, .number = work->number};
  record_ring(thread, work->start, work->end - work->start, TSCOPE_REC_GPU_WORK, work->stream,
              &record, sizeof(record));
}

static void record_collective(struct tscope_thread *thread, const struct gpu_span *span,
                              u16 stream) {
  gpu_run_record(thread, &(struct gpu_run){.start = span->start,
                                           .end = span->end,
                                           .node = span->node,
                                           .graph = span->graph,
                                           .comm = TSCOPE_UNKNOWN,
                                           .seq = TSCOPE_UNKNOWN,
                                           .name = tscope_string(thread, span->name),
                                           .correlation = span->correlation,
                                           .stream = stream});
}

void gpu_span_record(struct tscope_thread *thread, const struct gpu_span *span) {
  u16 stream = stream_index_of_gpu(thread, span->device, span->stream);
  u64 dur = span->end - span->start;
  switch (span->kind) {
  case GPU_SPAN_KERNEL: {
    if (gpu_kernel_is_collective(span->name)) {
      record_collective(thread, span, stream);
      return;
    }
    struct tscope_gpu_kernel_record kernel = {.name = tscope_string(thread, span->name),
                                              .correlation = span->correlation,
                                              .graph = span->graph};
    record_ring(thread, span->start, dur, TSCOPE_REC_GPU_KERNEL, stream, &kernel, sizeof(kernel));
    return;
  }
  case GPU_SPAN_MEMCPY: {
    struct tscope_gpu_memcpy_record copy = {.kind = span->copy,
                                            .bytes = span->bytes,
                                            .correlation = span->correlation,
                                            .graph = span->graph};
    record_ring(thread, span->start, dur, TSCOPE_REC_GPU_MEMCPY, stream, &copy, sizeof(copy));
    return;
  }
  case GPU_SPAN_MEMSET: {
    struct tscope_gpu_memset_record fill = {.correlation = span->correlation, .bytes = span->bytes};
    record_ring(thread, span->start, dur, TSCOPE_REC_GPU_MEMSET, stream, &fill, sizeof(fill));
    return;
  }
  }
}
