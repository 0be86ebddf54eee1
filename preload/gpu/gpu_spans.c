/* SPDX-License-Identifier: MIT */
#include "gpu_spans.h"

#include <string.h>

#include "cuda/streams.h"
#include "handle_map.h"

/* Kernel names by a hash of their text: the pointers that a source gives are good for the moment
 * only, and there are few names to millions of spans. */
HANDLE_MAP(names, 1 << 14);
static u32 any_name;

static u64 text_hash(const char *text, size_t bytes) {
  u64 hash = bytes, word;
  for (; bytes >= sizeof word; text += sizeof word, bytes -= sizeof word) {
    memcpy(&word, text, sizeof word);
    hash = handle_hash(hash ^ word);
  }
  word = 0;
  memcpy(&word, text, bytes);
  hash = handle_hash(hash ^ word) >> 1;
  return hash ? hash : 1;
}

static u32 name_number(struct tscope_thread *thread, const char *name) {
  if (!name)
    return 0;
  size_t bytes = strlen(name);
  u64 key = text_hash(name, bytes), number;
  if (TSCOPE_LIKELY(handle_map_get(&names, key, &number)))
    return (u32)number;
  number = tscope_string_n(thread, name, bytes);
  any_name = 1;
  if (number)
    handle_map_put(&names, key, number);
  return (u32)number;
}

bool gpu_kernel_is_collective(const char *name) {
  static const char *const libraries[] = {"nccl", "rccl"};
  if (!name)
    return false;
  if (name[0] == '_' && name[1] == 'Z') /* a plain C++ function: _Z, length, name */
    for (name += 2; *name == 'L' || (*name >= '0' && *name <= '9'); name++)
      ;
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    if (!strncmp(name, libraries[i], strlen(libraries[i])))
      return true;
  return false;
}

static struct tscope_writer *writer(struct tscope_writer *writer, enum tscope_home home) {
  if (TSCOPE_UNLIKELY(!writer->home))
    tscope_writer_init(writer, home, TSCOPE_CLOCK_MONOTONIC);
  return writer;
}

static void record_collective(struct tscope_thread *thread, const struct gpu_span *span,
                              u16 stream) {
  struct gpu_thread *gpu = thread->family[TSCOPE_FAMILY_GPU];
  struct tscope_writer *spine = writer(&gpu->spine, TSCOPE_SPINE);
  u32 name = name_number(thread, span->name);
  struct tscope_collective_run_record *run =
      tscope_reserve(thread, spine, span->start, TSCOPE_REC_COLLECTIVE_RUN, stream, sizeof *run);
  if (!run)
    return;
  run->dur = span->end - span->start;
  run->comm = run->seq = TSCOPE_UNKNOWN;
  run->name = name;
  run->correlation = span->correlation;
  tscope_commit(spine, sizeof *run);
}

void gpu_span_record(struct tscope_thread *thread, const struct gpu_span *span) {
  u16 stream = stream_index_of_gpu(thread, span->device, span->stream);
  if (span->kind == GPU_SPAN_KERNEL && gpu_kernel_is_collective(span->name)) {
    record_collective(thread, span, stream);
    return;
  }
  static const struct {
    u8 type, bytes;
  } records[] = {
      [GPU_SPAN_KERNEL] = {TSCOPE_REC_GPU_KERNEL, sizeof(struct tscope_gpu_kernel_record)},
      [GPU_SPAN_COPY] = {TSCOPE_REC_GPU_COPY, sizeof(struct tscope_gpu_copy_record)},
      [GPU_SPAN_FILL] = {TSCOPE_REC_GPU_FILL, sizeof(struct tscope_gpu_fill_record)},
  };
  struct gpu_thread *gpu = thread->family[TSCOPE_FAMILY_GPU];
  struct tscope_writer *detail = writer(&gpu->detail, TSCOPE_DETAIL);
  u32 name = span->kind == GPU_SPAN_KERNEL ? name_number(thread, span->name) : 0;
  u64 dur = span->end - span->start;
  bool is_long = dur >= TSCOPE_DUR_LONG;
  u32 plain = records[span->kind].bytes, bytes = plain + (is_long ? sizeof dur : 0);
  union {
    u8 *at;
    struct tscope_gpu_kernel_record *kernel;
    struct tscope_gpu_copy_record *copy;
    struct tscope_gpu_fill_record *fill;
  } record = {
      .at = tscope_reserve(thread, detail, span->start, records[span->kind].type, stream, bytes)};
  if (!record.at)
    return;
  u32 short_dur = is_long ? TSCOPE_DUR_LONG : (u32)dur;
  switch (span->kind) {
  case GPU_SPAN_KERNEL:
    record.kernel->dur = short_dur;
    record.kernel->name = name;
    record.kernel->correlation = span->correlation;
    record.kernel->graph = span->graph;
    break;
  case GPU_SPAN_COPY:
    record.copy->dur = short_dur;
    record.copy->kind = span->copy;
    record.copy->bytes = span->bytes;
    record.copy->correlation = span->correlation;
    record.copy->graph = span->graph;
    break;
  case GPU_SPAN_FILL:
    record.fill->dur = short_dur;
    record.fill->correlation = span->correlation;
    record.fill->bytes = span->bytes;
    break;
  }
  if (is_long)
    memcpy(record.at + plain, &dur, sizeof dur);
  tscope_commit(detail, bytes);
}

void gpu_spans_reset(void) {
  if (any_name)
    handle_map_reset(&names);
  any_name = 0;
}
