/* SPDX-License-Identifier: MIT
 *
 * One trace file: header, chunks, records. Every byte is untrusted; nothing here crashes on
 * garbage, and nothing beyond what the writer had committed is ever shown. Files of a run that
 * still goes on may be read.
 */
#ifndef TSCOPE_TRACE_FILE_H
#define TSCOPE_TRACE_FILE_H

#include <stdbool.h>
#include <string.h>

#include "format/tscope_format.h"

struct trace_file {
  int fd;           /* -1 when read from memory */
  const u8 *memory; /* NULL when read from fd */
  u64 bytes;
  u64 stored;   /* of them; where there are holes, as far as is known */
  bool sparse;  /* it has holes */
  u32 n_chunks; /* places for chunks in the file, the last may be cut short */
  struct tscope_file_header header;
};

/* One chunk as it was at one instant. The records lie in the caller's buffer. */
struct trace_chunk {
  struct tscope_chunk_header header;
  const u8 *records;
  u32 bytes; /* of whole committed records that are in the file */
  u32 count; /* records committed, by the writer's count */
  bool cut;  /* the file ends before the committed records do */
};

enum trace_chunk_state {
  TRACE_CHUNK_READ,    /* filled in */
  TRACE_CHUNK_EMPTY,   /* nothing committed, or recycled while it was read */
  TRACE_CHUNK_DAMAGED, /* not a chunk */
};

/* Opens a file and checks its header. 0, or negative errno with a short reason in `why`, such as
 * "is empty" or "is not a tscope trace", to follow the file's name. */
int trace_file_open(struct trace_file *file, const char *path, char *why, size_t why_bytes);

/* Likewise for a file in memory, which stays the caller's and must outlive it. */
int trace_file_open_memory(struct trace_file *file, const u8 *data, size_t bytes, char *why,
                           size_t why_bytes);
void trace_file_close(struct trace_file *file);

/* The first chunk from `index` on of which the file holds anything; n_chunks if there is none. A
 * file of a terabyte may be one hole. */
u32 trace_chunk_from(const struct trace_file *file, u32 index);

/* Room for any chunk of the file, freed with free(). */
u8 *trace_chunk_buffer(const struct trace_file *file);

/* Header of chunk `index`, without its records (chunk->records is NULL). */
enum trace_chunk_state trace_chunk_peek(const struct trace_file *file, u32 index,
                                        struct trace_chunk *chunk);

/* Chunk `index` with its records, in a trace_chunk_buffer(). */
enum trace_chunk_state trace_chunk_read(const struct trace_file *file, u32 index, u8 *buffer,
                                        struct trace_chunk *chunk);

/* Steps through a chunk's records. `base` is the absolute time, in the chunk's clock units, that
 * the current record's time is relative to. */
struct trace_cursor {
  const u8 *at, *end;
  u64 base;
  bool damaged; /* the last thing seen was not a record */
};

static inline struct trace_cursor trace_records(const struct trace_chunk *chunk) {
  return (struct trace_cursor){
      .at = chunk->records, .end = chunk->records + chunk->bytes, .base = chunk->header.base};
}

/* Smallest size of each record type this reader knows, 0 for unknown types. */
extern const u16 trace_record_bytes[256];

/* The next record of a known type, or NULL at the end. TIME records are handled here; unknown types
 * and records shorter than their type are skipped. */
static inline const struct tscope_record *trace_next(struct trace_cursor *cursor) {
  while ((size_t)(cursor->end - cursor->at) >= sizeof(struct tscope_record)) {
    const struct tscope_record *record = (const void *)cursor->at;
    size_t bytes = 8u * record->words;
    if (bytes == 0 || bytes > (size_t)(cursor->end - cursor->at)) {
      cursor->damaged = true;
      return NULL;
    }
    cursor->at += bytes;
    u16 least = trace_record_bytes[record->type];
    if (least == 0 || bytes < least)
      continue;
    if (record->type != TSCOPE_REC_TIME)
      return record;
    cursor->base = ((const struct tscope_time_record *)record)->base;
  }
  return NULL;
}

/* Absolute time of a record, in its chunk's clock units. */
static inline u64 trace_time(const struct trace_cursor *cursor,
                             const struct tscope_record *record) {
  return cursor->base + record->time;
}

/* A 32-bit duration field, or the 64-bit one in the word that follows when it saturated.
 * `struct_bytes` is the size of the record's struct. */
static inline u64 trace_dur(const struct tscope_record *record, u32 dur, size_t struct_bytes) {
  if (dur != TSCOPE_DUR_LONG || 8u * record->words < struct_bytes + 8)
    return dur;
  u64 longer;
  memcpy(&longer, (const u8 *)record + struct_bytes, sizeof(longer));
  return longer;
}

/* The byte string after a record's struct, `claimed` bytes long according to the record itself. */
static inline const char *trace_text(const struct tscope_record *record, size_t struct_bytes,
                                     u32 claimed, u32 *bytes) {
  size_t room = 8u * record->words - struct_bytes;
  *bytes = claimed < room ? claimed : (u32)room;
  return (const char *)record + struct_bytes;
}

#endif
