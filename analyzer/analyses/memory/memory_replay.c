/* SPDX-License-Identifier: MIT
 *
 * Runs through a history with the blocks that live at each moment.
 */

#include "analyses/memory/memory.h"

/* What is freed without having been allocated was there before; `during` is then what is alive of
 * what was allocated in the recording. */
static void add_freed_later(struct memory_replay *replay, struct block_table *during) {
  const struct memory_history *history = replay->history;
  FOR_EACH(history->events, history->n_events, event) {
    if (event->kind == MEMORY_ALLOC)
      block_table_put(during,
                      (struct held_block){.address = event->address, .bytes = event->bytes});
    else if (event->kind == MEMORY_FREE && !block_table_remove(during, event->address, NULL)) {
      replay->conflicts += block_table_find(&replay->live, event->address) != NULL;
      block_table_put(&replay->live, (struct held_block){.address = event->address,
                                                         .bytes = event->bytes,
                                                         .time = NS_UNKNOWN,
                                                         .before = true});
    }
  }
}

/* What is there at the end without having been allocated was there before, too. */
static void add_kept(struct memory_replay *replay, struct block_table *during) {
  const struct memory_history *history = replay->history;
  FOR_EACH(history->blocks, history->n_blocks, block) {
    if (block->state != MEMORY_BLOCK_ALLOCATED || block_table_remove(during, block->address, NULL))
      continue;
    if (block_table_find(&replay->live, block->address)) {
      replay->conflicts++;
      continue;
    }
    block_table_put(&replay->live, (struct held_block){.time = NS_UNKNOWN,
                                                       .before = true,
                                                       SAME(block, address, bytes, source, stack)});
  }
  if (history->segments)
    replay->conflicts += during->n;
}

static i64 bytes_of(const struct block_table *set) {
  i64 sum = 0;
  FOR_EACH(set->slots, set->room, block)
    sum = memory_add(sum, block->used ? MAX(block->bytes, 0) : 0);
  return sum;
}

void memory_replay_begin(struct memory_replay *replay, const struct memory_history *history) {
  *replay = (struct memory_replay){.history = history};
  struct block_table during = {0};
  add_freed_later(replay, &during);
  add_kept(replay, &during);
  block_table_free(&during);
  replay->known_bytes = bytes_of(&replay->live);
}

static void apply_event(struct memory_replay *replay, const struct memory_event *event) {
  struct held_block freed;
  bool there = event->kind == MEMORY_ALLOC || event->kind == MEMORY_FREE
                   ? block_table_remove(&replay->live, event->address, &freed)
                   : false;
  if (there)
    replay->known_bytes = memory_add(replay->known_bytes, -MAX(freed.bytes, 0));
  if (event->kind != MEMORY_ALLOC)
    return;
  replay->known_bytes = memory_add(replay->known_bytes, MAX(event->bytes, 0));
  block_table_put(&replay->live,
                  (struct held_block){SAME(event, address, bytes, time, source, stack)});
}

void memory_replay_to(struct memory_replay *replay, u32 until) {
  while (replay->next < until && replay->next < replay->history->n_events)
    apply_event(replay, &replay->history->events[replay->next++]);
}

void memory_replay_free(struct memory_replay *replay) {
  block_table_free(&replay->live);
}
