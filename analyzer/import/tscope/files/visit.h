/* SPDX-License-Identifier: MIT
 *
 * The one way through the records of a file: chunk by chunk, to a function that gets each. follow.h
 * is the same for a file that still grows: it keeps its position and brings what is new.
 */
#pragma once

#include "import/tscope/files/trace_file.h"

enum trace_chunks {
  TRACE_RETAINED = 1,
  TRACE_RING_TICKS = 2, /* of the ring, what threads of the host wrote */
  TRACE_RING_GPU = 4,   /* what was recorded on the GPU: the clock is CLOCK_MONOTONIC */
  TRACE_RING = TRACE_RING_TICKS | TRACE_RING_GPU,
};

/* Gets a chunk, which is good until it returns. */
typedef void trace_on_chunk(void *user, const struct trace_chunk *chunk);

struct trace_visit {
  unsigned chunks; /* of enum trace_chunks: those that are visited */
  bool by_writer;  /* the ring after all else, by thread and clock, as it was written: chunks are
                      recycled, so their order in the file is not that of time. Sets after_gap */
  trace_on_chunk *on_chunk;
  void *user;
  /* What is found in the headers of all chunks: */
  u64 records;
  u64 given_up;    /* records that gave way to newer ones */
  u32 given_up_as; /* enum tscope_loss: of a chunk that was emptied last, as far as known */
  u32 damaged;     /* not a chunk */
};

/* All chunks of a file, or those up to where its budget is exceeded, which budget_end() then says
 * (file_budget.h). */
void trace_visit(const struct trace_file *file, struct trace_visit *visit);
