/* SPDX-License-Identifier: MIT
 *
 * Autograd often keeps the result of an operator's backward pass as the gradient of a parameter,
 * without a copy. Its stack then looks like that of every other result of the backward pass. But
 * those are freed before the optimizer begins, and gradients of parameters are not.
 */
#include "import/memory_snapshot/memory_snapshot.h"

#include "base/arena.h"
#include "base/checked_memory.h"
#include "model/block_table.h"

struct gradient_search {
  struct memory_history *history;
  struct block_table backward; /* live blocks of the backward pass; `source` is the event's index */
  struct block_table kept;     /* those of them that an optimizer found */
};

/* Each source of the backward pass has a second one behind all others: its place, as a gradient. */
static u32 as_gradient(const struct memory_history *history, u32 source) {
  return source + history->n_sources / 2;
}

static void add_sources(struct memory_history *history, struct arena *arena) {
  u32 n = history->n_sources;
  struct memory_source *sources =
      arena_joined(arena, history->sources, n, history->sources, n, sizeof(*sources));
  for (u32 i = n; i < 2 * n; i++)
    if (sources[i].category == ALLOCATION_BACKWARD)
      sources[i].category = ALLOCATION_GRADIENTS;
  history->sources = sources;
  history->n_sources = 2 * n;
}

static void keep_all(struct gradient_search *s) {
  FOR_EACH(s->backward.slots, s->backward.room, block) {
    struct memory_event *event = block->used ? &s->history->events[block->source] : NULL;
    if (!event)
      continue;
    event->source = as_gradient(s->history, event->source);
    block_table_put(&s->kept, *block);
  }
  block_table_free(&s->backward);
  s->backward = (struct block_table){0};
}

static void look_at_event(struct gradient_search *s, u32 index) {
  const struct memory_event *event = &s->history->events[index];
  if (event->kind != MEMORY_ALLOC && event->kind != MEMORY_FREE)
    return;
  block_table_remove(&s->backward, event->address, NULL);
  block_table_remove(&s->kept, event->address, NULL);
  if (event->kind == MEMORY_FREE)
    return;
  enum allocation_category category = memory_source_of(s->history, event->source)->category;
  if (category == ALLOCATION_OPTIMIZER || category == ALLOCATION_GRADIENT_CLIPPING) {
    keep_all(s);
    return;
  }
  if (category == ALLOCATION_BACKWARD) {
    block_table_put(&s->backward, (struct held_block){.address = event->address, .source = index});
  }
}

void snapshot_find_gradients(struct memory_history *history, struct arena *arena) {
  struct gradient_search s = {.history = history};
  if (history->n_sources)
    add_sources(history, arena);
  for (u32 i = 0; i < history->n_events; i++)
    look_at_event(&s, i);
  FOR_EACH_CHANGED(history->blocks, history->n_blocks, block) {
    const struct held_block *kept = block_table_find(&s.kept, block->address);
    if (kept && block->state != MEMORY_BLOCK_FREE)
      block->source = history->events[kept->source].source;
  }
  block_table_free(&s.backward);
  block_table_free(&s.kept);
}
