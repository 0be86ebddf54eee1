/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/chunk_read.h"

#include <errno.h>
#include <unistd.h>

#include "base/checked_memory.h"

static u64 chunk_offset(const struct trace_file *file, u32 index) {
  return file->header.header_bytes + (u64)index * file->header.chunk_bytes;
}

u32 trace_chunk_from(const struct trace_file *file, u32 index) {
  if (!file->sparse || index >= file->n_chunks)
    return index;
  u64 offset = chunk_offset(file, index);
  off_t data = lseek(file->fd, (off_t)offset, SEEK_DATA);
  if (data < 0)
    return errno == ENXIO ? file->n_chunks : index;
  u64 next = index + ((u64)data - offset) / file->header.chunk_bytes;
  return next < file->n_chunks ? (u32)next : file->n_chunks;
}

u8 *trace_chunk_buffer(const struct trace_file *file) {
  return memory_array(MIN(file->bytes, file->header.chunk_bytes), 1);
}

/* Up to the next hole: what is in a hole are no records. */
static u64 bytes_before_hole(const struct trace_file *file, u64 offset, u64 bytes) {
  off_t hole = file->sparse ? lseek(file->fd, (off_t)offset, SEEK_HOLE) : -1;
  return hole < 0 ? bytes : MIN((u64)hole - offset, bytes);
}

/* `committed` is read once, from the copy that was read: the writer may change it meanwhile. */
static enum trace_chunk_state check_chunk(const struct trace_file *file, size_t got,
                                          struct trace_chunk *chunk) {
  const struct tscope_chunk_header *header = &chunk->header;
  if (got < sizeof(header->magic) || header->magic == 0)
    return TRACE_CHUNK_EMPTY;
  if (header->magic != TSCOPE_CHUNK_MAGIC)
    return TRACE_CHUNK_DAMAGED;
  if (got < sizeof(*header) || header->committed == 0)
    return TRACE_CHUNK_EMPTY;
  bool known = (header->retention == TSCOPE_RETAINED || header->retention == TSCOPE_RING) &&
               (header->clock == TSCOPE_CLOCK_TICKS || header->clock == TSCOPE_CLOCK_MONOTONIC);
  chunk->count = (u32)(header->committed >> 32);
  chunk->bytes = (u32)header->committed;
  if (!known || header->header_bytes < sizeof(*header) || header->header_bytes % 8 != 0 ||
      header->header_bytes > file->header.chunk_bytes || chunk->bytes % 8 != 0 ||
      chunk->bytes > file->header.chunk_bytes - header->header_bytes)
    return TRACE_CHUNK_DAMAGED;
  return TRACE_CHUNK_READ;
}

enum trace_chunk_state trace_chunk_peek(const struct trace_file *file, u32 index,
                                        struct trace_chunk *chunk) {
  *chunk = (struct trace_chunk){0};
  size_t got =
      trace_file_read(file, chunk_offset(file, index), &chunk->header, sizeof(chunk->header));
  return check_chunk(file, got, chunk);
}

/* Whether a ring chunk of a run that still goes on was recycled while it was read: it is first
 * emptied, then gets the next generation, and only then is written to. */
static bool is_recycled(const struct trace_file *file, u32 index, const struct trace_chunk *chunk) {
  if (file->header.closed_realtime_ns || chunk->header.retention != TSCOPE_RING)
    return false;
  struct trace_chunk again;
  __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the records were read before this */
  return trace_chunk_peek(file, index, &again) != TRACE_CHUNK_READ ||
         again.header.generation != chunk->header.generation ||
         again.header.committed < chunk->header.committed;
}

/* Bytes of the complete records among those that were read. */
static u32 whole_records(const u8 *records, u32 bytes) {
  u32 whole = 0;
  while (bytes - whole >= sizeof(struct tscope_record)) {
    u32 words = ((const struct tscope_record *)(const void *)(records + whole))->words;
    if (words == 0 || 8 * words > bytes - whole)
      break;
    whole += 8 * words;
  }
  return whole;
}

enum trace_chunk_state trace_chunk_load(const struct trace_file *file, u32 index, u32 from,
                                        u8 *buffer, struct trace_chunk *chunk) {
  u32 wanted = chunk->bytes - from;
  chunk->place = chunk_offset(file, index) + chunk->header.header_bytes + from;
  chunk->bytes = (u32)trace_file_read(file, chunk->place, buffer,
                                      bytes_before_hole(file, chunk->place, wanted));
  chunk->cut = chunk->bytes < wanted;
  if (chunk->cut)
    chunk->bytes = whole_records(buffer, chunk->bytes);
  chunk->records = buffer;
  return is_recycled(file, index, chunk) ? TRACE_CHUNK_EMPTY : TRACE_CHUNK_READ;
}
