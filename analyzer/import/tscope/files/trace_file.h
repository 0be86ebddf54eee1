/* SPDX-License-Identifier: MIT
 *
 * One trace file: header, chunks, records. Every byte is untrusted; nothing here crashes on
 * garbage, and nothing beyond what the writer had committed is ever shown. Files of a run that
 * still goes on may be read.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "format/tscope_format.h"

struct trace_file {
  int fd;           /* -1 when read from memory */
  const u8 *memory; /* NULL when read from fd */
  u64 bytes;
  u64 stored;        /* of them; where there are holes, as far as is known */
  u64 device, inode; /* 0 when read from memory */
  bool sparse;       /* it has holes */
  u32 n_chunks;      /* places for chunks in the file, the last may be cut short */
  struct tscope_file_header header;
};

/* One chunk as it was at one instant, or what was new in it. The records lie in the reader's
 * buffer. */
struct trace_chunk {
  struct tscope_chunk_header header; /* its base is that of the first record here */
  const u8 *records;
  u64 place;      /* of the records in the file: the same when a record comes again */
  u32 bytes;      /* of whole committed records that are in the file */
  u32 count;      /* records committed, by the writer's count */
  bool cut;       /* the file ends before the committed records do */
  bool after_gap; /* ring: the chunk before it, by the same thread, was overwritten */
  bool again;     /* one record that came before, with its duration pending: it has ended */
};

/* Opens a file and checks its header. 0, or negative errno with a short reason in `why`, such as
 * "is empty" or "is not a tscope trace", to follow the file's name. */
int trace_file_open(struct trace_file *file, const char *path, char *why, size_t why_bytes);

/* Likewise for a file in memory, which stays the caller's and must outlive it. */
int trace_file_open_memory(struct trace_file *file, const u8 *data, size_t bytes, char *why,
                           size_t why_bytes);
void trace_file_close(struct trace_file *file);

/* Reads size and header of the file at the path again, and opens it where it was closed. 0, or
 * negative errno: -ESTALE if it is no longer the same file of the same process. */
int trace_file_refresh(struct trace_file *file, const char *path);

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

/* In a switch over the type of `record`: its reader gets it as what it is. */
#define ON_RECORD(TYPE, reader, reading)                                                           \
  case TSCOPE_REC_##TYPE:                                                                          \
    reader(reading, (const void *)record);                                                         \
    return;

/* Absolute time of a record, in its chunk's clock units. */
static inline u64 trace_time(const struct trace_cursor *cursor,
                             const struct tscope_record *record) {
  return cursor->base + record->time;
}

/* The 64-bit duration that most retained records begin with, TSCOPE_DUR_PENDING while they are
 * open. Nobody else reads a duration: one of the ring may be longer than its field. */
static inline u64 trace_whole_dur(const struct tscope_record *record) {
  u64 dur;
  memcpy(&dur, record + 1, sizeof(dur));
  return dur;
}

/* The 32-bit duration that a record of the ring begins with, or the 64-bit one in the word that
 * follows when it saturated. */
static inline u64 trace_dur(const struct tscope_record *record) {
  size_t struct_bytes = trace_record_bytes[record->type];
  u32 dur = *(const u32 *)(const void *)(record + 1);
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
