/* SPDX-License-Identifier: MIT */
#include "model/block_table.h"

#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/hash.h"

#define LEAST_ROOM 64u

/* Linear probing without marks for removed entries: later entries move up. */

static u32 home_of(const struct block_table *table, u64 address) {
  return (u32)table_hash_number(address) & (table->room - 1);
}

static u32 slot_of(const struct block_table *table, u64 address) {
  u32 at = home_of(table, address);
  while (table->slots[at].used && table->slots[at].address != address)
    at = (at + 1) & (table->room - 1);
  return at;
}

static void grow(struct block_table *table) {
  if (table->room > UINT32_MAX / 4)
    memory_is_short(table->room, 2 * sizeof(*table->slots));
  struct block_table more = {.room = table->room ? table->room * 2 : LEAST_ROOM};
  more.slots = memory_zeroed(more.room, sizeof(*more.slots));
  FOR_EACH(table->slots, table->room, slot)
    if (slot->used)
      more.slots[slot_of(&more, slot->address)] = *slot;
  more.n = table->n;
  free(table->slots);
  *table = more;
}

void block_table_put(struct block_table *table, struct held_block block) {
  if (table->n >= table->room - table->room / 4)
    grow(table);
  struct held_block *slot = &table->slots[slot_of(table, block.address)];
  table->n += !slot->used;
  *slot = block;
  slot->used = true;
}

const struct held_block *block_table_find(const struct block_table *table, u64 address) {
  if (!table->n)
    return NULL;
  const struct held_block *slot = &table->slots[slot_of(table, address)];
  return slot->used ? slot : NULL;
}

bool block_table_remove(struct block_table *table, u64 address, struct held_block *removed) {
  if (!table->n)
    return false;
  u32 mask = table->room - 1, hole = slot_of(table, address);
  if (!table->slots[hole].used)
    return false;
  if (removed)
    *removed = table->slots[hole];
  for (u32 at = (hole + 1) & mask; table->slots[at].used; at = (at + 1) & mask) {
    /* It may move up if its home is not between the hole and itself. */
    u32 home = home_of(table, table->slots[at].address);
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      table->slots[hole] = table->slots[at];
      hole = at;
    }
  }
  table->slots[hole].used = false;
  table->n--;
  return true;
}

void block_table_free(struct block_table *table) {
  free(table->slots);
  *table = (struct block_table){0};
}
