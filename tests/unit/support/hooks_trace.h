/* SPDX-License-Identifier: MIT
 *
 * Reads what this process has recorded so far, straight from its trace file.
 */
#pragma once

#include "scratch.h"
#include "trace.h"

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

/* Zeroed where there is none yet. */
static inline struct trace trace_read(void) {
  struct trace trace = {0};
  char *path = NULL;
  if (trace_find(trace_directory, &path, 1))
    assert_true(trace_open(&trace, path));
  free(path);
  return trace;
}

/* How many records the trace says are lost for this reason. */
static inline u64 lost_for(enum tscope_loss reason) {
  struct trace trace = trace_read();
  u64 records = trace.header->lost[reason];
  trace_close(&trace);
  return records;
}

/* The n-th record (from 0) of a type; NULL when there are fewer. */
static inline const void *trace_record(const struct trace *trace, u8 type, u32 n) {
  struct trace_record at = {0};
  while (trace_next_of(trace, &at, type))
    if (n-- == 0)
      return at.record;
  return NULL;
}

/* The record of a type that began last; NULL when there is none. */
static inline const void *trace_last(const struct trace *trace, u8 type) {
  struct trace_record at = {0};
  const struct tscope_record *last = NULL;
  u64 latest = 0;
  while (trace_next_of(trace, &at, type))
    if (at.time >= latest) {
      latest = at.time;
      last = at.record;
    }
  return last;
}

static inline u32 trace_count(const struct trace *trace, u8 type) {
  struct trace_record at = {0};
  u32 n = 0;
  while (trace_next_of(trace, &at, type))
    n++;
  return n;
}

/* The current number of records of a type. */
static inline u32 count(u8 type) {
  struct trace trace = trace_read();
  u32 n = trace_count(&trace, type);
  trace_close(&trace);
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
  trace_close(&trace);
  return copy;
}

/* Checks that a string of the trace is `text`. */
static inline void assert_string(u32 number, const char *text) {
  struct trace trace = trace_read();
  struct trace_text found = trace_string(&trace, number);
  assert_int_equal(found.bytes, strlen(text));
  assert_memory_equal(found.text, text, found.bytes);
  trace_close(&trace);
}
