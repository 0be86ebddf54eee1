/* SPDX-License-Identifier: MIT
 *
 * The launches of a rank whose steps nothing names, read from the ring once more.
 */
#include "base/hash.h"
#include "import/tscope/events/reading.h"
#include "import/tscope/files/visit.h"
#include "join/launch_rounds.h"

struct launches {
  const struct definitions *definitions;
  VECTOR(struct launched) at;
};

/* What is launched, with and without its size. */
static void identify(const struct definitions *definitions, const struct tscope_record *record,
                     struct launched *launched) {
  const struct tscope_launch_record *launch = (const void *)record;
  const struct tscope_memcpy_record *copy = (const void *)record;
  u32 kind = hash_number(1, record->type);
  if (record->type == TSCOPE_REC_LAUNCH) {
    u32 shape = launch->shape;
    u32 kernel = shape < definitions->n_shapes ? definitions->shapes[shape].kernel : 0;
    launched->shape = hash_number(kind, shape);
    launched->name = hash_number(kind, kernel);
  } else if (record->type == TSCOPE_REC_GRAPH_LAUNCH) {
    launched->shape = launched->name = hash_number(kind, launch->shape);
  } else {
    launched->name = hash_number(kind, copy->kind);
    launched->shape = hash_number(launched->name, copy->bytes);
  }
}

static void read_launches(void *user, const struct trace_chunk *chunk) {
  struct launches *launches = user;
  struct trace_cursor cursor = trace_records(chunk);
  struct chunk_clock clock = chunk_clock(&launches->definitions->ticks, &chunk->header);
  for (const struct tscope_record *record; (record = trace_next(&cursor));) {
    if (record->type < TSCOPE_REC_LAUNCH || record->type > TSCOPE_REC_MEMSET)
      continue;
    u64 time = trace_time(&cursor, record);
    struct launched launched = {.start = chunk_ns(&clock, time),
                                .end = chunk_ns(&clock, time + trace_dur(record)),
                                .thread = chunk->header.thread};
    identify(launches->definitions, record, &launched);
    VECTOR_PUSH(&launches->at, launched);
  }
}

void read_rounds(struct rank_events *events, const struct trace_file *file) {
  struct launches launches = {.definitions = events->definitions};
  if (!rank_needs_rounds(events))
    return;
  trace_visit(file, &(struct trace_visit){
                        .chunks = TRACE_RING_TICKS, .on_chunk = read_launches, .user = &launches});
  find_launch_rounds(events, launches.at.at, launches.at.n);
  free(launches.at.at);
}
