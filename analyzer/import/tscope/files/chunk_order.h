/* SPDX-License-Identifier: MIT
 *
 * Ring chunks are recycled, so their order in the file is not the order of time.
 */
#ifndef TSCOPE_CHUNK_ORDER_H
#define TSCOPE_CHUNK_ORDER_H

#include "import/tscope/files/trace_file.h"

struct chunk_place {
  u32 thread, sequence;
  u32 index;      /* in the file */
  u8 clock;       /* enum tscope_chunk_clock */
  bool after_gap; /* the chunk before it, by the same thread, was overwritten */
};

/* The ring chunks that have records, by writer (thread and clock) and then in the order they
 * were written. The caller frees; NULL if there are none. */
struct chunk_place *ring_chunks(const struct trace_file *file, u32 *n);

#endif
