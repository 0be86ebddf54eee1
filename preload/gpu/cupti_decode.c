/* SPDX-License-Identifier: MIT */
#include "cupti_decode.h"

#include <string.h>

/* CUPTI_ACTIVITY_KIND_* */
enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_CONCURRENT_KERNEL = 10, KIND_MEMCPY2 = 22 };

/* Offsets that all kinds and versions share. */
enum { COPY_KIND_AT = 4, START_AT = 16, END_AT = 24 };

/* The other offsets, 0 where a kind has no such field; the length of the kind's first version; and
 * that of the first version with a graph id. */
struct layout {
  u32 kind;
  enum gpu_span_kind span;
  u8 bytes, device, stream, correlation, name, graph;
  u16 shortest, with_graph;
};

static const struct layout layouts[] = {
    /* CUpti_ActivityKernel4, Memcpy, MemcpyPtoP, Memset, and later ones of each */
    {KIND_CONCURRENT_KERNEL, GPU_SPAN_KERNEL, 0, 40, 48, 92, 104, 156, 112, 176},
    {KIND_MEMCPY, GPU_SPAN_COPY, 8, 32, 40, 44, 0, 72, 64, 88},
    {KIND_MEMCPY2, GPU_SPAN_COPY, 8, 32, 40, 60, 0, 80, 72, 88},
    {KIND_MEMSET, GPU_SPAN_FILL, 8, 32, 40, 44, 0, 72, 64, 80},
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
    if (length < layout->shortest)
      return false;
    *span = (struct gpu_span){
        .kind = layout->span,
        .start = read_u64(at + START_AT),
        .end = read_u64(at + END_AT),
        .device = read_u32(at + layout->device),
        .stream = read_u32(at + layout->stream),
        .correlation = read_u32(at + layout->correlation),
        .graph = length >= layout->with_graph ? read_u32(at + layout->graph) : 0,
    };
    if (layout->bytes)
      span->bytes = read_u64(at + layout->bytes);
    if (layout->span == GPU_SPAN_COPY)
      span->copy = direction(kind, at[COPY_KIND_AT]);
    if (layout->name)
      span->name = (const char *)(uintptr_t)read_u64(at + layout->name);
    return true;
  }
  return false;
}
