/* SPDX-License-Identifier: MIT
 *
 * Definitions while they are collected, record by record in the order of the file: of a whole file
 * (definitions.c), or of one that still grows (follow_definitions.c).
 */
#pragma once

#include "base/vector.h"
#include "import/tscope/events/definitions.h"
#include "import/tscope/events/read_stall_records.h"

struct info_item {
  u32 key, value, detail;
};

/* L(list, element): lists of the definitions; those that go with the text, and those that stay. */
#define TEXT_LISTS(L)                                                                              \
  L(strings, const char *)                                                                         \
  L(shapes, struct shape_definition)                                                               \
  L(graph_children, struct graph_child)                                                            \
  L(captured_gemms, struct captured_gemm)                                                          \
  L(captured_kernels, u32)                                                                         \
  L(frames, struct frame_definition)                                                               \
  L(stacks, struct stack_definition)                                                               \
  L(stack_frames, u64)
#define KEPT_LISTS(L)                                                                              \
  L(streams, struct stream_definition)                                                             \
  L(comms, struct comm_definition)                                                                 \
  L(threads, struct thread_definition)

/* What is collected in file order before it is sorted. */
struct collector {
  struct definitions *out;
  struct arena *arena;
  u64 most_numbers; /* no definition number can be above what the file has room for */
#define L(list, element) VECTOR(element) list;
  TEXT_LISTS(L)
  KEPT_LISTS(L)
#undef L
  VECTOR(u32) comm_names; /* string numbers: names may be announced later */
  VECTOR(u32) thread_names;
  VECTOR(struct tick_anchor) anchors;
  VECTOR(struct info_item) infos;
  struct stall_records stalls;
  u32 gpu_clock_reason;
  u64 error_ticks;
  u32 damaged, cut;
};

/* Keeps the record if it defines something; running totals go to `out` at once. */
void collector_add(struct collector *into, const struct tscope_record *record);

/* Makes out->info from what was collected so far. */
void collector_finish_infos(struct collector *into);
void collector_release(struct collector *into);

/* Frames and stacks by id, as they are looked for. */
void definitions_sort_stacks(struct definitions *definitions);
