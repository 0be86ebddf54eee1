/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/visit.h"
#include "import/tscope/trace_source.h"

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "model/building.h"

struct found_range {
  u32 name, domain;
  struct named_range range;
};

struct range_collecting {
  struct definitions definitions;
  struct arena text;
  HASHED(struct found_range) found;
};

static struct named_range *range_of(struct range_collecting *collecting, u32 name, u32 domain) {
  const u32 key[] = {name, domain};
  u32 i = HASHED_OR_ADD(&collecting->found, table_hash(0, key, sizeof(key)), one,
                        one->name == name && one->domain == domain,
                        (struct found_range){.name = name, .domain = domain});
  return &collecting->found.at[i].range;
}

static void add_range(struct range_collecting *collecting, const struct tscope_range_record *record,
                      i64 dur) {
  struct named_range *range = range_of(collecting, record->name, record->domain);
  range->count++;
  if (__builtin_add_overflow(range->sum, dur, &range->sum))
    range->sum = INT64_MAX; /* of a damaged file */
  range->longest = MAX(dur, range->longest);
}

static void read_chunk(void *user, const struct trace_chunk *chunk) {
  struct range_collecting *collecting = user;
  struct trace_cursor cursor = trace_records(chunk);
  struct chunk_clock clock = chunk_clock(&collecting->definitions.ticks, &chunk->header);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    const struct tscope_range_record *range = (const void *)record;
    if (record->type != TSCOPE_REC_RANGE || record->tag == TSCOPE_RANGE_MARK)
      continue;
    u64 time = trace_time(&cursor, record), dur = trace_dur(record);
    i64 end = chunk_end_ns(&clock, time, dur), start = chunk_ns(&clock, time);
    if (end != NS_UNKNOWN && end >= start)
      add_range(collecting, range, end - start);
  }
}

static const char *copy_string(const struct range_collecting *collecting, struct arena *arena,
                               u32 string) {
  const char *text = definition_string(&collecting->definitions, string);
  return text ? arena_text(arena, text) : "";
}

static void copy_ranges(const struct range_collecting *collecting, struct arena *arena,
                        struct named_range **ranges, u32 *n) {
  *ranges = arena_array(arena, collecting->found.n, sizeof(**ranges));
  for (; *n < collecting->found.n; (*n)++) {
    const struct found_range *found = &collecting->found.at[*n];
    struct named_range *range = &(*ranges)[*n];
    *range = found->range;
    range->name = copy_string(collecting, arena, found->name);
    range->domain = copy_string(collecting, arena, found->domain);
  }
}

int trace_named_ranges(const struct model *model, u32 rank, struct arena *arena,
                       struct named_range **ranges, u32 *n) {
  struct range_collecting collecting = {0};
  struct trace_file file;
  *ranges = NULL;
  *n = 0;
  if (!model_events(model, rank)->named_ranges)
    return 0;
  int error = trace_file_open(&file, model->ranks[rank].path, NULL, 0);
  if (error)
    return error;
  definitions_read(&collecting.definitions, &file, &collecting.text);
  trace_visit(&file, &(struct trace_visit){
                         .chunks = TRACE_RING, .on_chunk = read_chunk, .user = &collecting});
  copy_ranges(&collecting, arena, ranges, n);
  trace_file_close(&file);
  FREE_EACH(&collecting.found, at, index.slots);
  definitions_free_text(&collecting.definitions);
  arena_release(&collecting.text);
  return 0;
}
