/* SPDX-License-Identifier: MIT
 *
 * Single chunks of a file, for the two ways through all of them: visit.h and follow.h.
 */
#pragma once

#include "import/tscope/files/trace_file.h"

enum trace_chunk_state {
  TRACE_CHUNK_READ,    /* filled in */
  TRACE_CHUNK_EMPTY,   /* nothing committed, or recycled while it was read */
  TRACE_CHUNK_DAMAGED, /* not a chunk */
};

/* The first chunk from `index` on of which the file holds anything; n_chunks if there is none. A
 * file of a terabyte may be one hole. */
u32 trace_chunk_from(const struct trace_file *file, u32 index);

/* Room for any chunk of the file, freed with free(). */
u8 *trace_chunk_buffer(const struct trace_file *file);

/* Header of chunk `index`, without its records (chunk->records is NULL). */
enum trace_chunk_state trace_chunk_peek(const struct trace_file *file, u32 index,
                                        struct trace_chunk *chunk);

/* After that: its records from byte `from` on, in a trace_chunk_buffer(). */
enum trace_chunk_state trace_chunk_load(const struct trace_file *file, u32 index, u32 from,
                                        u8 *buffer, struct trace_chunk *chunk);

/* Reads up to `bytes` at `offset`; how many there were. */
size_t trace_file_read(const struct trace_file *file, u64 offset, void *buffer, size_t bytes);
