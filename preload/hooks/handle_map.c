/* SPDX-License-Identifier: MIT */
#include "hooks/handle_map.h"

#include <sys/mman.h>

#include "record/hook.h"
#include "record/reserve.h"

/* The lock is held. */
static bool make_slots(struct handle_map *map) {
  if (map->slots)
    return true;
  TSCOPE_KEEP_ERRNO;
  void *made = tscope_reserve_map(-1, map->capacity * sizeof(*map->slots));
  if (made != MAP_FAILED)
    __atomic_store_n(&map->slots, made, __ATOMIC_RELEASE);
  return made != MAP_FAILED;
}

bool handle_map_put_locked(struct handle_map *map, u64 key, u64 value) {
  if (!handle_map_is_key(key) || !make_slots(map))
    return false;
  struct handle_slot *slot = handle_map_find(map, key);
  if (slot) {
    __atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
    return true;
  }
  u64 index = handle_hash(key);
  for (u32 probe = 0; probe < HANDLE_MAP_PROBES; probe++, index++) {
    slot = &map->slots[index & (map->capacity - 1)];
    if (!handle_map_is_key(slot->key)) {
      __atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
      __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
      return true;
    }
  }
  return false;
}

bool handle_map_put(struct handle_map *map, u64 key, u64 value) {
  if (!handle_map_is_key(key) || !tscope_lock(&map->lock))
    return false;
  bool kept = handle_map_put_locked(map, key, value);
  tscope_unlock(&map->lock);
  return kept;
}

/* Where the slot behind is empty, no search goes on there: then this one is empty too, and so are
 * those before it whose entries were removed. Otherwise a map whose keys come and go would fill
 * with such slots, and each search would go through as many as it may. */
static void give_up_slot(struct handle_map *map, u64 index) {
  u64 last = map->capacity - 1;
  bool ends = map->slots[(index + 1) & last].key == HANDLE_MAP_EMPTY;
  do {
    __atomic_store_n(&map->slots[index].key, ends ? HANDLE_MAP_EMPTY : HANDLE_MAP_REMOVED,
                     __ATOMIC_RELEASE);
    index = (index - 1) & last;
  } while (ends && map->slots[index].key == HANDLE_MAP_REMOVED);
}

bool handle_map_remove_locked(struct handle_map *map, u64 key, u64 *value) {
  struct handle_slot *slot = handle_map_find(map, key);
  if (!slot)
    return false;
  *value = slot->value;
  give_up_slot(map, (u64)(slot - map->slots));
  return true;
}

bool handle_map_remove(struct handle_map *map, u64 key, u64 *value) {
  if (!handle_map_find(map, key) || !tscope_lock(&map->lock))
    return false;
  bool removed = handle_map_remove_locked(map, key, value);
  tscope_unlock(&map->lock);
  return removed;
}
