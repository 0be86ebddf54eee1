/* SPDX-License-Identifier: MIT */
#include "cupti_decode.h"

#include <string.h>

/* CUPTI_ACTIVITY_KIND_* */
enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_CONCURRENT_KERNEL = 10, KIND_MEMCPY2 = 22 };

/* Offsets, and the length of the first version of a record that has a graph id. */
struct layout {
  u32 kind;
  enum gpu_span_kind span;
  u8 start, end, device, stream, correlation, graph, bytes, name;
  u16 min_length, graph_length;
};

static const struct layout layouts[] = {
    {.kind = KIND_CONCURRENT_KERNEL, /* CUpti_ActivityKernel4 and later */
     .span = GPU_SPAN_KERNEL,
     .start = 16,
     .end = 24,
     .device = 40,
     .stream = 48,
     .correlation = 92,
     .name = 104,
     .graph = 156,
     .min_length = 112,
     .graph_length = 176},
    {.kind = KIND_MEMCPY, /* CUpti_ActivityMemcpy and later */
     .span = GPU_SPAN_COPY,
     .bytes = 8,
     .start = 16,
     .end = 24,
     .device = 32,
     .stream = 40,
     .correlation = 44,
     .graph = 72,
     .min_length = 64,
     .graph_length = 88},
    {.kind = KIND_MEMCPY2, /* CUpti_ActivityMemcpyPtoP and later */
     .span = GPU_SPAN_COPY,
     .bytes = 8,
     .start = 16,
     .end = 24,
     .device = 32,
     .stream = 40,
     .correlation = 60,
     .graph = 80,
     .min_length = 72,
     .graph_length = 88},
    {.kind = KIND_MEMSET, /* CUpti_ActivityMemset and later */
     .span = GPU_SPAN_FILL,
     .bytes = 8,
     .start = 16,
     .end = 24,
     .device = 32,
     .stream = 40,
     .correlation = 44,
     .graph = 72,
     .min_length = 64,
     .graph_length = 80},
};

static u64 read_u64(const u8 *at) {
  u64 value;
  memcpy(&value, at, sizeof value);
  return value;
}

static u32 read_u32(const u8 *at) {
  u32 value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* CUpti_ActivityMemcpyKind, with arrays taken as the device memory that they are. */
static enum tscope_copy direction(u32 kind, u8 copy_kind) {
  static const u8 directions[] = {
      [1] = TSCOPE_COPY_H2D, [2] = TSCOPE_COPY_D2H, [3] = TSCOPE_COPY_H2D, [4] = TSCOPE_COPY_D2H,
      [5] = TSCOPE_COPY_D2D, [6] = TSCOPE_COPY_D2D, [7] = TSCOPE_COPY_D2D, [8] = TSCOPE_COPY_D2D,
      [9] = TSCOPE_COPY_H2H, [10] = TSCOPE_COPY_P2P};
  if (kind == KIND_MEMCPY2)
    return TSCOPE_COPY_P2P;
  return copy_kind < sizeof directions ? directions[copy_kind] : TSCOPE_COPY_UNKNOWN;
}

bool cupti_decode(const void *record, size_t length, struct gpu_span *span) {
  const u8 *at = record;
  if (length < sizeof(u32))
    return false;
  u32 kind = read_u32(at);
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    const struct layout *layout = &layouts[i];
    if (layout->kind != kind)
      continue;
    if (length < layout->min_length)
      return false;
    *span = (struct gpu_span){
        .kind = layout->span,
        .start = read_u64(at + layout->start),
        .end = read_u64(at + layout->end),
        .device = read_u32(at + layout->device),
        .stream = read_u32(at + layout->stream),
        .correlation = read_u32(at + layout->correlation),
        .graph = length >= layout->graph_length ? read_u32(at + layout->graph) : 0,
    };
    if (layout->bytes)
      span->bytes = read_u64(at + layout->bytes);
    if (layout->span == GPU_SPAN_COPY)
      span->copy = direction(kind, at[4]);
    if (layout->name)
      span->name = (const char *)(uintptr_t)read_u64(at + layout->name);
    return true;
  }
  return false;
}
