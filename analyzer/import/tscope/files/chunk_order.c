/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/chunk_order.h"

#include <stdlib.h>

#include "base/vector.h"

static int by_sequence(const void *left, const void *right) {
  const struct chunk_place *a = left, *b = right;
  if (a->thread != b->thread)
    return a->thread < b->thread ? -1 : 1;
  return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static int by_place(const void *left, const void *right) {
  const struct chunk_place *a = left, *b = right;
  if (a->thread != b->thread)
    return a->thread < b->thread ? -1 : 1;
  if (a->clock != b->clock)
    return a->clock < b->clock ? -1 : 1;
  return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

struct chunk_place *ring_chunks(const struct trace_file *file, u32 *n) {
  VECTOR(struct chunk_place) found = {0};
  struct trace_chunk chunk;
  for (u32 i = trace_chunk_from(file, 0); i < file->n_chunks; i = trace_chunk_from(file, i + 1)) {
    if (trace_chunk_peek(file, i, &chunk) != TRACE_CHUNK_READ ||
        chunk.header.retention != TSCOPE_RING)
      continue;
    VECTOR_PUSH(&found, (struct chunk_place){.thread = chunk.header.thread,
                                             .sequence = chunk.header.sequence,
                                             .index = i,
                                             .clock = chunk.header.clock});
  }
  struct chunk_place *places = found.at;
  *n = found.n;
  if (!*n)
    return places;
  /* A thread numbers its chunks on either clock in one sequence. */
  qsort(places, *n, sizeof(*places), by_sequence);
  for (u32 i = 0; i < *n; i++) {
    bool follows = i > 0 && places[i - 1].thread == places[i].thread;
    places[i].after_gap = places[i].sequence != (follows ? places[i - 1].sequence + 1 : 0);
  }
  qsort(places, *n, sizeof(*places), by_place);
  return places;
}
