/* SPDX-License-Identifier: MIT
 *
 * How high the peak would be without the allocations of one category: the whole recording is
 * replayed without them, so that a second peak elsewhere is not missed. This is the effect of
 * reducing that category to nothing, and so the most that anything can save.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/memory/memory.h"

#define MOST_CATEGORIES (MEMORY_ROWS + 1u)

struct without {
  struct memory_replay replay;
  u32 *category; /* [n_sources] index into the result's by_category, INDEX_NONE */
  u32 n;
  bool known[MOST_CATEGORIES];
  i64 live[MOST_CATEGORIES], peak[MOST_CATEGORIES];
};

static void map_sources(struct without *w, const struct memory_history *history,
                        const struct memory_result *result) {
  w->category = memory_array(size_sum(history->n_sources, 1), sizeof(*w->category));
  for (u32 s = 0; s < history->n_sources; s++) {
    w->category[s] = INDEX_NONE;
    for (u32 c = 0; c < w->n; c++)
      if (history->sources[s].category &&
          history->sources[s].category == result->by_category[c].kind)
        w->category[s] = c, w->known[c] = true;
  }
}

static void add_bytes(struct without *w, u32 source, i64 bytes) {
  const struct memory_history *history = w->replay.history;
  u32 c = source < history->n_sources ? w->category[source] : INDEX_NONE;
  if (c != INDEX_NONE)
    w->live[c] = memory_add(w->live[c], bytes);
}

/* What was there before the recording counts where its origin is known. */
static void add_initial_blocks(struct without *w) {
  FOR_EACH(w->replay.live.slots, w->replay.live.room, block)
    if (block->used)
      add_bytes(w, block->source, MAX(block->bytes, 0));
  for (u32 c = 0; c < w->n; c++)
    w->peak[c] = w->replay.history->allocated_before - w->live[c];
}

static void replay_event(struct without *w, u32 index) {
  const struct memory_event *event = &w->replay.history->events[index];
  if (event->kind == MEMORY_ALLOC || event->kind == MEMORY_FREE) {
    const struct held_block *freed = block_table_find(&w->replay.live, event->address);
    if (freed)
      add_bytes(w, freed->source, -MAX(freed->bytes, 0));
  }
  if (event->kind == MEMORY_ALLOC)
    add_bytes(w, event->source, MAX(event->bytes, 0));
  for (u32 c = 0; c < w->n; c++)
    w->peak[c] = MAX(event->allocated - w->live[c], w->peak[c]);
  memory_replay_to(&w->replay, index + 1);
}

void memory_peak_without(const struct memory_history *history, struct memory_result *result) {
  struct without w = {.n = result->n_by_category};
  memory_replay_begin(&w.replay, history);
  map_sources(&w, history, result);
  add_initial_blocks(&w);
  for (u32 i = 0; i < history->n_events; i++)
    replay_event(&w, i);
  for (u32 c = 0; c < w.n; c++) {
    double lower = result->peak_allocated_bytes - (double)w.peak[c];
    result->by_category[c].lowers_peak_bytes = !w.known[c] ? NAN : MAX(lower, 0);
  }
  memory_replay_free(&w.replay);
  free(w.category);
}
