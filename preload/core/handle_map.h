/* SPDX-License-Identifier: MIT
 *
 * A bounded map from handles to numbers that any thread reads without a lock: what a stream, a
 * kernel or a communicator is called in the trace. Entries are added and removed under the map's
 * own lock, which only threads adding at the same moment contend for. Zero-initialised but for
 * `slots` and `capacity`; nothing is ever allocated.
 *
 * A key is found within HANDLE_MAP_PROBES slots of its place or not at all, so that a look-up is
 * bounded however full the map is; an entry that finds no slot there is refused.
 */
#ifndef TSCOPE_HANDLE_MAP_H
#define TSCOPE_HANDLE_MAP_H

#include <sched.h>
#include <stdbool.h>

#include "tscope_format.h"

#define HANDLE_MAP_PROBES 64u
#define HANDLE_MAP_EMPTY 0ull /* never a key */
#define HANDLE_MAP_GONE UINT64_MAX

struct handle_slot {
  u64 key;
  u64 value;
};

struct handle_map {
  struct handle_slot *slots;
  u32 capacity; /* a power of two */
  u32 locked;
};

#define HANDLE_MAP(name, capacity_)                                                                \
  static struct handle_slot name##_slots[capacity_];                                               \
  static struct handle_map name = {.slots = name##_slots, .capacity = (capacity_)}

static inline void handle_map_lock(struct handle_map *map) {
  while (__atomic_exchange_n(&map->locked, 1, __ATOMIC_ACQUIRE))
    sched_yield();
}

static inline void handle_map_unlock(struct handle_map *map) {
  __atomic_store_n(&map->locked, 0, __ATOMIC_RELEASE);
}

/* Mixes a key so that its low bits depend on all of them. */
static inline u64 handle_hash(u64 key) {
  key *= 0x9e3779b97f4a7c15ull;
  return key ^ key >> 32;
}

static inline struct handle_slot *handle_map_find(const struct handle_map *map, u64 key) {
  u64 place = handle_hash(key);
  for (u32 probe = 0; probe < HANDLE_MAP_PROBES; probe++, place++) {
    struct handle_slot *slot = &map->slots[place & (map->capacity - 1)];
    u64 found = __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE);
    if (found == key)
      return slot;
    if (found == HANDLE_MAP_EMPTY)
      return NULL;
  }
  return NULL;
}

/* False when there is no such key. */
static inline bool handle_map_get(const struct handle_map *map, u64 key, u64 *value) {
  struct handle_slot *slot = handle_map_find(map, key);
  if (!slot)
    return false;
  *value = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);
  return true;
}

/* Adds or replaces an entry; the caller holds the lock. False when there is no room. */
static inline bool handle_map_put_locked(struct handle_map *map, u64 key, u64 value) {
  struct handle_slot *slot = handle_map_find(map, key);
  if (slot) {
    __atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
    return true;
  }
  u64 place = handle_hash(key);
  for (u32 probe = 0; probe < HANDLE_MAP_PROBES; probe++, place++) {
    slot = &map->slots[place & (map->capacity - 1)];
    if (slot->key == HANDLE_MAP_EMPTY || slot->key == HANDLE_MAP_GONE) {
      __atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
      __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
      return true;
    }
  }
  return false;
}

static inline bool handle_map_put(struct handle_map *map, u64 key, u64 value) {
  handle_map_lock(map);
  bool kept = handle_map_put_locked(map, key, value);
  handle_map_unlock(map);
  return kept;
}

/* Removes an entry and says what it held. False when there was none. */
static inline bool handle_map_take(struct handle_map *map, u64 key, u64 *value) {
  handle_map_lock(map);
  struct handle_slot *slot = handle_map_find(map, key);
  if (slot) {
    *value = slot->value;
    __atomic_store_n(&slot->key, HANDLE_MAP_GONE, __ATOMIC_RELEASE);
  }
  handle_map_unlock(map);
  return slot != NULL;
}

#endif
