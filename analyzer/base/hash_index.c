/* SPDX-License-Identifier: MIT */
#include "base/hash_index.h"

#include <string.h>

#include "base/checked_memory.h"

static void put_slot(struct hash_slot *slots, u32 room, struct hash_slot slot) {
  u32 at = (u32)table_hash_number(slot.hash) & (room - 1);
  while (slots[at].index_plus_1)
    at = (at + 1) & (room - 1);
  slots[at] = slot;
}

void hash_index_add(struct hash_index *index, u64 hash, u32 value) {
  if (index->n >= index->room / 2) {
    u32 room = index->room ? index->room * 2 : 64;
    struct hash_slot *slots = memory_zeroed(room, sizeof(*slots));
    u32 empty = 0; /* behind it a row of slots begins, which may go on from the last to the first */
    while (empty < index->room && index->slots[empty].index_plus_1)
      empty++;
    for (u32 i = 0; i < index->room; i++) {
      struct hash_slot slot = index->slots[(empty + i) & (index->room - 1)];
      if (slot.index_plus_1)
        put_slot(slots, room, slot);
    }
    free(index->slots);
    index->slots = slots;
    index->room = room;
  }
  put_slot(index->slots, index->room, (struct hash_slot){.hash = hash, .index_plus_1 = value + 1});
  index->n++;
}

void hash_index_clear(struct hash_index *index) {
  index->n = 0;
  if (index->room)
    memset(index->slots, 0, index->room * sizeof(*index->slots));
}
