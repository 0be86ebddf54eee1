/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/visit.h"

#include <stdlib.h>

#include "base/sorting.h"
#include "base/vector.h"
#include "import/file_budget.h"
#include "import/tscope/files/chunk_read.h"

struct chunk_place {
  u32 thread, sequence;
  u32 index;      /* in the file */
  u8 clock;       /* enum tscope_chunk_clock */
  bool after_gap; /* the chunk before it, by the same thread, was overwritten */
};

struct chunk_walk {
  const struct trace_file *file;
  struct trace_visit *visit;
  u8 *buffer;
  VECTOR(struct chunk_place) later; /* ring chunks, to be visited by writer */
};

ORDER_BY(by_sequence, struct chunk_place, UP(thread) UP(sequence))

ORDER_BY(by_place, struct chunk_place, UP(thread) UP(clock) UP(sequence))

/* By writer (thread and clock), and then as they were written. */
static void sort_places(struct chunk_place *places, u32 n) {
  /* A thread numbers its chunks on either clock in one sequence. */
  SORT(places, n, by_sequence);
  for (u32 i = 0; i < n; i++) {
    bool follows = i > 0 && places[i - 1].thread == places[i].thread;
    places[i].after_gap = places[i].sequence != (follows ? places[i - 1].sequence + 1 : 0);
  }
  SORT(places, n, by_place);
}

static unsigned kind_of(const struct trace_chunk *chunk) {
  if (chunk->header.retention == TSCOPE_RETAINED)
    return TRACE_RETAINED;
  return chunk->header.clock == TSCOPE_CLOCK_TICKS ? TRACE_RING_TICKS : TRACE_RING_GPU;
}

static void load_and_show(struct chunk_walk *walk, u32 index, struct trace_chunk *chunk) {
  if (trace_chunk_load(walk->file, index, 0, walk->buffer, chunk) == TRACE_CHUNK_READ)
    walk->visit->on_chunk(walk->visit->user, chunk);
}

static void add_given_up(struct chunk_walk *walk, const struct tscope_chunk_header *chunk) {
  struct trace_visit *visit = walk->visit;
  u64 given_up = chunk->magic == TSCOPE_CHUNK_MAGIC ? tscope_given_up(chunk) : 0;
  if (walk->file->header.version_minor < 2 || !given_up ||
      chunk->given_up_as >= TSCOPE_LOSS_REASONS)
    return;
  visit->given_up =
      given_up > UINT64_MAX - visit->given_up ? UINT64_MAX : visit->given_up + given_up;
  if (!visit->given_up_as || !chunk->committed)
    visit->given_up_as = chunk->given_up_as;
}

static void visit_chunk(struct chunk_walk *walk, u32 index) {
  struct trace_visit *visit = walk->visit;
  struct trace_chunk chunk;
  enum trace_chunk_state state = trace_chunk_peek(walk->file, index, &chunk);
  visit->damaged += state == TRACE_CHUNK_DAMAGED;
  if (state != TRACE_CHUNK_DAMAGED)
    add_given_up(walk, &chunk.header);
  if (state != TRACE_CHUNK_READ)
    return;
  visit->records += chunk.count;
  if (visit->by_writer && chunk.header.retention == TSCOPE_RING)
    VECTOR_PUSH(&walk->later,
                (struct chunk_place){.index = index, SAME(&chunk.header, thread, sequence, clock)});
  else if (visit->chunks & kind_of(&chunk))
    load_and_show(walk, index, &chunk);
}

static void visit_later(struct chunk_walk *walk, const struct chunk_place *place) {
  struct trace_chunk chunk;
  if (trace_chunk_peek(walk->file, place->index, &chunk) != TRACE_CHUNK_READ ||
      !(walk->visit->chunks & kind_of(&chunk)))
    return;
  chunk.after_gap = place->after_gap;
  load_and_show(walk, place->index, &chunk);
}

void trace_visit(const struct trace_file *file, struct trace_visit *visit) {
  struct chunk_walk walk = {.file = file, .visit = visit, .buffer = trace_chunk_buffer(file)};
  for (u32 i = trace_chunk_from(file, 0); i < file->n_chunks && !budget_is_over();
       i = trace_chunk_from(file, i + 1))
    visit_chunk(&walk, i);
  if (walk.later.n)
    sort_places(walk.later.at, walk.later.n);
  for (u32 i = 0; i < walk.later.n && !budget_is_over(); i++)
    visit_later(&walk, &walk.later.at[i]);
  FREE_EACH(&walk, later.at, buffer);
}
