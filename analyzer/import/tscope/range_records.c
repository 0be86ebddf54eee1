/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/visit.h"
#include "import/tscope/trace_source.h"

#include "base/checked_memory.h"
#include "base/hash.h"
#include "model/building.h"

/* By number of name and domain, open addressing. */
struct slot {
  u32 name, domain;
  bool used;
  struct named_range range;
};

struct collecting {
  struct definitions definitions;
  struct arena text;
  struct slot *slots; /* [mask + 1]; NULL while n is 0 */
  u32 n, mask;
};

static struct slot *slot_of(const struct collecting *collecting, u32 name, u32 domain) {
  const u32 key[] = {name, domain};
  u32 place = (u32)hash_bytes(0, key, sizeof(key));
  for (;; place++) {
    struct slot *slot = &collecting->slots[place & collecting->mask];
    if (!slot->used || (slot->name == name && slot->domain == domain))
      return slot;
  }
}

static void grow(struct collecting *collecting) {
  struct collecting larger = *collecting;
  larger.mask = collecting->mask * 2 + 1;
  larger.slots = memory_zeroed(size_sum(larger.mask, 1), sizeof(*larger.slots));
  for (u32 i = 0; collecting->slots && i <= collecting->mask; i++)
    if (collecting->slots[i].used)
      *slot_of(&larger, collecting->slots[i].name, collecting->slots[i].domain) =
          collecting->slots[i];
  free(collecting->slots);
  *collecting = larger;
}

static void add_range(struct collecting *collecting, const struct tscope_range_record *record,
                      i64 dur) {
  if (2 * (collecting->n + 1) > collecting->mask) {
    grow(collecting);
  }
  struct slot *slot = slot_of(collecting, record->name, record->domain);
  collecting->n += !slot->used;
  slot->used = true;
  slot->name = record->name;
  slot->domain = record->domain;
  slot->range.count++;
  if (__builtin_add_overflow(slot->range.sum, dur, &slot->range.sum))
    slot->range.sum = INT64_MAX; /* of a damaged file */
  slot->range.longest = dur > slot->range.longest ? dur : slot->range.longest;
}

static void read_chunk(void *user, const struct trace_chunk *chunk) {
  struct collecting *collecting = user;
  struct trace_cursor cursor = trace_records(chunk);
  struct chunk_clock clock = chunk_clock(&collecting->definitions.ticks, &chunk->header);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    const struct tscope_range_record *range = (const void *)record;
    if (record->type != TSCOPE_REC_RANGE || record->tag == TSCOPE_RANGE_MARK)
      continue;
    u64 time = trace_time(&cursor, record), dur = trace_dur(record, range->dur, sizeof(*range));
    i64 end = chunk_end_ns(&clock, time, dur), start = chunk_ns(&clock, time);
    if (end != NS_UNKNOWN && end >= start) {
      add_range(collecting, range, end - start);
    }
  }
}

static void read_file(struct collecting *collecting, const struct trace_file *file) {
  struct trace_visit visit = {.chunks = TRACE_RING, .on_chunk = read_chunk, .user = collecting};
  definitions_read(&collecting->definitions, file, &collecting->text);
  trace_visit(file, &visit);
}

static const char *copy_string(const struct collecting *collecting, struct arena *arena,
                               u32 string) {
  const char *text = definition_string(&collecting->definitions, string);
  return text ? arena_text(arena, text) : "";
}

static void copy_ranges(const struct collecting *collecting, struct arena *arena,
                        struct named_range **ranges, u32 *n) {
  *ranges = arena_array(arena, size_sum(collecting->n, 1), sizeof(**ranges));
  for (u32 i = 0; collecting->slots && i <= collecting->mask; i++) {
    const struct slot *slot = &collecting->slots[i];
    if (!slot->used)
      continue;
    struct named_range *range = &(*ranges)[(*n)++];
    *range = slot->range;
    range->name = copy_string(collecting, arena, slot->name);
    range->domain = copy_string(collecting, arena, slot->domain);
  }
}

int trace_named_ranges(const struct model *model, u32 rank, struct arena *arena,
                       struct named_range **ranges, u32 *n) {
  struct collecting collecting = {0};
  struct trace_file file;
  char why[256];
  *ranges = NULL;
  *n = 0;
  if (!model_events(model, rank)->named_ranges)
    return 0;
  int error = trace_file_open(&file, model->ranks[rank].path, why, sizeof(why));
  if (error)
    return error;
  read_file(&collecting, &file);
  copy_ranges(&collecting, arena, ranges, n);
  trace_file_close(&file);
  free(collecting.slots);
  definitions_free_text(&collecting.definitions);
  arena_release(&collecting.text);
  return 0;
}
