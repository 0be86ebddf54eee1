/* SPDX-License-Identifier: MIT
 *
 * Definitions while they are collected, record by record in the order of the file: of a whole file
 * (definitions.c), or of one that still grows (follow_definitions.c).
 */
#ifndef TSCOPE_COLLECTOR_H
#define TSCOPE_COLLECTOR_H

#include "base/vector.h"
#include "import/tscope/events/definitions.h"
#include "import/tscope/events/read_stall_records.h"

struct info_item {
  u32 key, value, detail;
};

/* What is collected in file order before it is sorted. */
struct collector {
  struct definitions *out;
  struct arena *arena;
  u64 most_numbers; /* no definition number can be above what the file has room for */
  VECTOR(const char *) strings;
  VECTOR(struct shape_definition) shapes;
  VECTOR(struct stream_definition) streams;
  VECTOR(struct comm_definition) comms; /* names still string numbers in `names` */
  VECTOR(u32) comm_names;
  VECTOR(struct thread_definition) threads;
  VECTOR(u32) thread_names;
  VECTOR(struct tick_anchor) anchors;
  VECTOR(struct info_item) infos;
  VECTOR(struct graph_definition) graphs;
  VECTOR(struct graph_child) graph_children;
  VECTOR(struct captured_gemm) captured_gemms;
  VECTOR(u32) captured_kernels;
  VECTOR(struct frame_definition) frames;
  VECTOR(struct stack_definition) stacks;
  VECTOR(u64) stack_frames;
  struct stall_records stalls;
  u32 gpu_clock_reason;
  u64 error_ticks;
  u32 damaged, cut, missing;
};

/* Keeps the record if it defines something; running totals go to `out` at once. */
void collector_add(struct collector *into, const struct tscope_record *record);

/* Makes out->info from what was collected so far. */
void collector_finish_infos(struct collector *into);
void collector_release(struct collector *into);

/* Frames and stacks by id, as they are looked for. */
void definitions_sort_stacks(struct definitions *definitions);

#endif
