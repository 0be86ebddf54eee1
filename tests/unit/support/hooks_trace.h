/* SPDX-License-Identifier: MIT
 *
 * Reads what this process has recorded so far, straight from its trace file. This simple reader is
 * separate from the analyzer's, so that the hooks are not checked by code that has the same
 * mistakes.
 */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/tscope_format.h"
#include "scratch.h"

static char trace_directory[] = "/tmp/hooks.XXXXXX";

/* Makes a directory for this test and sets TSCOPE_DIR to it. */
static inline int trace_set_up(void **state) {
  (void)state;
  scratch_make(trace_directory);
  return setenv("TSCOPE_DIR", trace_directory, 1);
}

static inline int trace_tear_down(void **state) {
  (void)state;
  scratch_remove(trace_directory);
  return 0;
}

struct trace {
  u8 *bytes;
  size_t size;
};

static inline struct trace trace_read(void) {
  struct trace trace = {0};
  char pattern[sizeof(trace_directory) + 32];
  snprintf(pattern, sizeof(pattern), "%s/*/*" TSCOPE_FILE_SUFFIX, trace_directory);
  glob_t found;
  FILE *file = glob(pattern, 0, NULL, &found) ? NULL : fopen(found.gl_pathv[0], "rb");
  globfree(&found);
  if (!file)
    return trace;
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  trace.bytes = malloc(size);
  trace.size = trace.bytes ? fread(trace.bytes, 1, size, file) : 0;
  fclose(file);
  return trace;
}

static inline void trace_free(struct trace *trace) {
  free(trace->bytes);
}

/* How many records the trace says are lost for this reason. */
static inline u64 lost_for(enum tscope_loss reason) {
  struct trace trace = trace_read();
  u64 records = ((const struct tscope_file_header *)(const void *)trace.bytes)->lost[reason];
  trace_free(&trace);
  return records;
}

struct trace_cursor {
  const struct tscope_chunk_header *chunk;
  const struct tscope_record *record;
  u64 base; /* the origin of the record's time, in the chunk's clock units */
};

/* Moves to the next record of a type, in the order of the file. A zeroed cursor is before the first
 * record. False if there are no more. */
static inline bool trace_next(const struct trace *trace, struct trace_cursor *at, u8 type) {
  const u8 *chunk = at->chunk ? (const u8 *)at->chunk : trace->bytes + TSCOPE_HEADER_BYTES;
  for (; chunk + TSCOPE_CHUNK_BYTES <= trace->bytes + trace->size; chunk += TSCOPE_CHUNK_BYTES) {
    if (chunk != (const u8 *)at->chunk) {
      at->chunk = (const void *)chunk;
      at->record = NULL;
      at->base = at->chunk->base;
    }
    if (at->chunk->magic != TSCOPE_CHUNK_MAGIC)
      continue;
    const u8 *first = chunk + at->chunk->header_bytes;
    const u8 *next = at->record ? (const u8 *)at->record + 8u * at->record->words : first;
    for (; next < first + (u32)at->chunk->committed; next += 8u * at->record->words) {
      at->record = (const void *)next;
      if (at->record->type == TSCOPE_REC_TIME)
        at->base = ((const struct tscope_time_record *)(const void *)next)->base;
      if (at->record->type == type)
        return true;
    }
  }
  return false;
}

/* The n-th record (from 0) of a type; NULL when there are fewer. */
static inline const void *trace_record(const struct trace *trace, u8 type, u32 n) {
  struct trace_cursor at = {0};
  while (trace_next(trace, &at, type))
    if (n-- == 0)
      return at.record;
  return NULL;
}

/* The record of a type that began last; NULL when there is none. */
static inline const void *trace_last(const struct trace *trace, u8 type) {
  struct trace_cursor at = {0};
  const struct tscope_record *last = NULL;
  u64 latest = 0;
  while (trace_next(trace, &at, type))
    if (at.base + at.record->time >= latest) {
      latest = at.base + at.record->time;
      last = at.record;
    }
  return last;
}

static inline u32 trace_count(const struct trace *trace, u8 type) {
  struct trace_cursor at = {0};
  u32 n = 0;
  while (trace_next(trace, &at, type))
    n++;
  return n;
}

/* The current number of records of a type. */
static inline u32 count(u8 type) {
  struct trace trace = trace_read();
  u32 n = trace_count(&trace, type);
  trace_free(&trace);
  return n;
}

/* A copy of the record of a type that began last, in its current state; all zero if there is none.
 */
#define LAST(NAME, name)                                                                           \
  (*(struct tscope_##name##_record *)last_record(TSCOPE_REC_##NAME,                                \
                                                 &(struct tscope_##name##_record){0},              \
                                                 sizeof(struct tscope_##name##_record)))

static inline void *last_record(u8 type, void *copy, size_t bytes) {
  struct trace trace = trace_read();
  const void *record = trace_last(&trace, type);
  if (record)
    memcpy(copy, record, bytes);
  trace_free(&trace);
  return copy;
}

/* The text of an interned string, without a terminating zero; NULL if it is not in the trace. */
static inline const char *trace_string(const struct trace *trace, u32 number, u32 *bytes) {
  const struct tscope_string_record *string;
  struct trace_cursor at = {0};
  while (trace_next(trace, &at, TSCOPE_REC_STRING)) {
    string = (const void *)at.record;
    if (string->string == number) {
      *bytes = string->bytes;
      return (const char *)(string + 1);
    }
  }
  return NULL;
}

/* Checks that a string of the trace is `text`. */
static inline void assert_string(u32 number, const char *text) {
  struct trace trace = trace_read();
  u32 bytes = 0;
  const char *found = trace_string(&trace, number, &bytes);
  assert_non_null(found);
  assert_int_equal(bytes, strlen(text));
  assert_memory_equal(found, text, bytes);
  trace_free(&trace);
}
