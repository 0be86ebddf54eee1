/* SPDX-License-Identifier: MIT */
#include "gpu_spans.h"

#include <string.h>

#include "cuda/streams.h"

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
  u32 name = tscope_string(thread, span->name);
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

/* Fills in what follows the header; the duration comes first in all of them. */
static void fill(void *at, const struct gpu_span *span, u32 dur, u32 name) {
  struct tscope_gpu_kernel_record *kernel = at;
  struct tscope_gpu_copy_record *copy = at;
  struct tscope_gpu_fill_record *set = at;
  switch (span->kind) {
  case GPU_SPAN_KERNEL:
    *kernel = (struct tscope_gpu_kernel_record){.header = kernel->header,
                                                .dur = dur,
                                                .name = name,
                                                .correlation = span->correlation,
                                                .graph = span->graph};
    break;
  case GPU_SPAN_COPY:
    *copy = (struct tscope_gpu_copy_record){.header = copy->header,
                                            .dur = dur,
                                            .kind = span->copy,
                                            .bytes = span->bytes,
                                            .correlation = span->correlation,
                                            .graph = span->graph};
    break;
  case GPU_SPAN_FILL:
    *set = (struct tscope_gpu_fill_record){
        .header = set->header, .dur = dur, .correlation = span->correlation, .bytes = span->bytes};
    break;
  }
}

void gpu_span_record(struct tscope_thread *thread, const struct gpu_span *span) {
  static const struct {
    u8 type, bytes;
  } records[] = {
      [GPU_SPAN_KERNEL] = {TSCOPE_REC_GPU_KERNEL, sizeof(struct tscope_gpu_kernel_record)},
      [GPU_SPAN_COPY] = {TSCOPE_REC_GPU_COPY, sizeof(struct tscope_gpu_copy_record)},
      [GPU_SPAN_FILL] = {TSCOPE_REC_GPU_FILL, sizeof(struct tscope_gpu_fill_record)},
  };
  u16 stream = stream_index_of_gpu(thread, span->device, span->stream);
  if (gpu_kernel_is_collective(span->name)) {
    record_collective(thread, span, stream);
    return;
  }
  struct gpu_thread *gpu = thread->family[TSCOPE_FAMILY_GPU];
  struct tscope_writer *detail = writer(&gpu->detail, TSCOPE_DETAIL);
  u32 name = tscope_string(thread, span->name), bytes = records[span->kind].bytes;
  u64 dur = span->end - span->start;
  void *record =
      tscope_reserve(thread, detail, span->start, records[span->kind].type, stream, bytes);
  if (!record)
    return;
  fill(record, span, dur < TSCOPE_DUR_LONG ? (u32)dur : TSCOPE_DUR_LONG, name);
  if (dur < TSCOPE_DUR_LONG)
    tscope_commit(detail, bytes);
  else
    tscope_commit_long(detail, bytes, dur);
}
