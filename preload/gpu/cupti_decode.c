/* SPDX-License-Identifier: MIT */
#include "gpu/cupti_decode.h"

#include <string.h>

#include "gpu/cupti_library.h"

/* Offsets that all kinds of work and all versions share; the last one only in kernels with a graph
 * id. */
enum { COPY_KIND_AT = 4, START_AT = 16, END_AT = 24, NODE_AT = 144 };

/* The other offsets, 0 where a kind has no such field; the length of the kind's first version; and
 * the length of its first version with a graph id. */
struct layout {
  u32 kind;
  enum gpu_span_kind span;
  u8 bytes, device, stream, correlation, name, graph;
  u16 shortest, with_graph;
};

static const struct layout layouts[] = {
    /* CUpti_ActivityKernel4, Memcpy, MemcpyPtoP, Memset, and later ones of each */
    {CUPTI_KIND_CONCURRENT_KERNEL, GPU_SPAN_KERNEL, 0, 40, 48, 92, 104, 156, 112, 176},
    {CUPTI_KIND_MEMCPY, GPU_SPAN_MEMCPY, 8, 32, 40, 44, 0, 72, 64, 88},
    {CUPTI_KIND_MEMCPY2, GPU_SPAN_MEMCPY, 8, 32, 40, 60, 0, 80, 72, 88},
    {CUPTI_KIND_MEMSET, GPU_SPAN_MEMSET, 8, 32, 40, 44, 0, 72, 64, 80},
};

static u64 read_u64(const u8 *at) {
  u64 value;
  memcpy(&value, at, sizeof(value));
  return value;
}

static u32 read_u32(const u8 *at) {
  u32 value;
  memcpy(&value, at, sizeof(value));
  return value;
}

/* CUpti_ActivityMemcpyKind; arrays count as device memory. */
static enum tscope_memcpy direction(u32 kind, u8 copy_kind) {
  static const u8 directions[] = {
      [1] = TSCOPE_MEMCPY_H2D, [2] = TSCOPE_MEMCPY_D2H, [3] = TSCOPE_MEMCPY_H2D,
      [4] = TSCOPE_MEMCPY_D2H, [5] = TSCOPE_MEMCPY_D2D, [6] = TSCOPE_MEMCPY_D2D,
      [7] = TSCOPE_MEMCPY_D2D, [8] = TSCOPE_MEMCPY_D2D, [9] = TSCOPE_MEMCPY_H2H,
      [10] = TSCOPE_MEMCPY_P2P};
  if (kind == CUPTI_KIND_MEMCPY2)
    return TSCOPE_MEMCPY_P2P;
  return copy_kind < sizeof(directions) ? directions[copy_kind] : TSCOPE_MEMCPY_UNKNOWN;
}

static bool decode_work(const u8 *at, size_t length, const struct layout *layout,
                        struct gpu_span *span) {
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
  if (layout->span == GPU_SPAN_MEMCPY)
    span->copy = direction(layout->kind, at[COPY_KIND_AT]);
  if (layout->name && span->graph)
    span->node = read_u64(at + NODE_AT);
  if (layout->name)
    span->name = (const char *)(uintptr_t)read_u64(at + layout->name);
  return true;
}

/* A graph's replay as one piece of work: CUpti_ActivityGraphTrace and later ones. */
static bool decode_graph(const u8 *at, size_t length, struct cupti_record *out) {
  if (length < 40)
    return false;
  *out = (struct cupti_record){.kind = CUPTI_WORK,
                               .span = {.kind = GPU_SPAN_KERNEL,
                                        .correlation = read_u32(at + 4),
                                        .start = read_u64(at + 8),
                                        .end = read_u64(at + 16),
                                        .device = read_u32(at + 24),
                                        .graph = read_u32(at + 28),
                                        .stream = read_u32(at + 36),
                                        .name = "CUDA graph"}};
  return true;
}

/* CUpti_ActivityOverhead and later ones. The kinds that CUPTI itself causes have numbers in the
 * upper half, among some that the job would have without CUPTI. */
static bool decode_overhead(const u8 *at, size_t length, struct cupti_record *out) {
  if (length < 40)
    return false;
  u32 own = read_u32(at + 4) >> 16;
  bool ours = own == TSCOPE_GPU_OVERHEAD_FLUSH || own == TSCOPE_GPU_OVERHEAD_INSTRUMENTATION ||
              own == TSCOPE_GPU_OVERHEAD_RESOURCE || own == TSCOPE_GPU_OVERHEAD_BUFFER;
  *out = (struct cupti_record){.kind = CUPTI_OVERHEAD,
                               .type = own,
                               .span = {.start = read_u64(at + 24), .end = read_u64(at + 32)}};
  return ours;
}

bool cupti_decode(const void *record, size_t length, struct cupti_record *out) {
  const u8 *at = record;
  if (length < sizeof(u32))
    return false;
  u32 kind = read_u32(at);
  switch (kind) {
  case CUPTI_KIND_GRAPH_TRACE:
    return decode_graph(at, length, out);
  case CUPTI_KIND_OVERHEAD:
    return decode_overhead(at, length, out);
  default:
    for (size_t i = 0; i < LENGTH_OF(layouts); i++)
      if (layouts[i].kind == kind) {
        *out = (struct cupti_record){.kind = CUPTI_WORK};
        return decode_work(at, length, &layouts[i], &out->span);
      }
    return false;
  }
}
