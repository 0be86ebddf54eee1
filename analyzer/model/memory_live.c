/* SPDX-License-Identifier: MIT */
#include "model/memory_live.h"

#include <stdlib.h>

#include "base/checked_memory.h"

#define LEAST_ROOM 64u

/* Linear probing without marks for removed entries: later entries move up. */

static u32 home_of(const struct live_set *set, u64 address) {
  return (u32)((address * 0x9e3779b97f4a7c15ull) >> 32) & (set->room - 1);
}

static u32 slot_of(const struct live_set *set, u64 address) {
  u32 at = home_of(set, address);
  while (set->slots[at].used && set->slots[at].address != address)
    at = (at + 1) & (set->room - 1);
  return at;
}

static void grow(struct live_set *set) {
  if (set->room > UINT32_MAX / 4)
    memory_is_short(set->room, 2 * sizeof(*set->slots));
  struct live_set more = {.room = set->room ? set->room * 2 : LEAST_ROOM};
  more.slots = memory_zeroed(more.room, sizeof(*more.slots));
  for (u32 i = 0; i < set->room; i++)
    if (set->slots[i].used)
      more.slots[slot_of(&more, set->slots[i].address)] = set->slots[i];
  more.n = set->n;
  free(set->slots);
  *set = more;
}

void live_put(struct live_set *set, struct live_block block) {
  if (set->n >= set->room - set->room / 4)
    grow(set);
  struct live_block *slot = &set->slots[slot_of(set, block.address)];
  set->n += !slot->used;
  *slot = block;
  slot->used = true;
}

const struct live_block *live_find(const struct live_set *set, u64 address) {
  if (!set->n)
    return NULL;
  const struct live_block *slot = &set->slots[slot_of(set, address)];
  return slot->used ? slot : NULL;
}

bool live_remove(struct live_set *set, u64 address, struct live_block *removed) {
  if (!set->n)
    return false;
  u32 mask = set->room - 1, hole = slot_of(set, address);
  if (!set->slots[hole].used)
    return false;
  if (removed)
    *removed = set->slots[hole];
  for (u32 at = (hole + 1) & mask; set->slots[at].used; at = (at + 1) & mask) {
    /* It may move up if its home is not between the hole and itself. */
    u32 home = home_of(set, set->slots[at].address);
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      set->slots[hole] = set->slots[at];
      hole = at;
    }
  }
  set->slots[hole].used = false;
  set->n--;
  return true;
}

void live_free(struct live_set *set) {
  free(set->slots);
  *set = (struct live_set){0};
}
