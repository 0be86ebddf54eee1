/* SPDX-License-Identifier: MIT
 *
 * A bounded map from handles to numbers that any thread reads without a lock: what a stream, a
 * kernel or a communicator is called in the trace. Entries are added and removed under the map's
 * own lock, which only threads adding at the same moment contend for. Zero-initialised but for
 * `slots` and `capacity`; nothing is ever allocated.
 *
 * A key is found within HANDLE_MAP_PROBES slots of its place or not at all, so that a look-up is
 * bounded however full the map is; an entry that finds no slot there is refused.
 *
 * Two keys mark slots without an entry. A job may pass either as a handle (NULL, or -1), so they
 * are never found and never put in.
 */
#ifndef TSCOPE_HANDLE_MAP_H
#define TSCOPE_HANDLE_MAP_H

#include <stdbool.h>

#include "record/lock.h"

#pragma GCC visibility push(hidden)

#define HANDLE_MAP_PROBES 64u
#define HANDLE_MAP_EMPTY 0ull      /* no entry was ever here: a search ends */
#define HANDLE_MAP_GONE UINT64_MAX /* an entry was taken out: a search goes on */

struct handle_slot {
  u64 key;
  u64 value;
};

struct handle_map {
  struct handle_slot *slots;
  u32 capacity; /* a power of two */
  struct tscope_lock lock;
};

#define HANDLE_MAP(name, capacity_)                                                                \
  static struct handle_slot name##_slots[capacity_];                                               \
  static struct handle_map name = {.slots = name##_slots, .capacity = (capacity_)}

/* Mixes a key so that its low bits depend on all of them. */
static inline u64 handle_hash(u64 key) {
  key *= 0x9e3779b97f4a7c15ull;
  return key ^ key >> 32;
}

static inline bool handle_map_is_key(u64 key) {
  return key != HANDLE_MAP_EMPTY && key != HANDLE_MAP_GONE;
}

static inline struct handle_slot *handle_map_find(const struct handle_map *map, u64 key) {
  if (!handle_map_is_key(key))
    return NULL;
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

/* Adds or replaces an entry. False when there is no room, when `key` cannot be one, or when the
 * lock is not available. */
bool handle_map_put(struct handle_map *map, u64 key, u64 value);

/* The same for who holds the map's lock. */
bool handle_map_put_locked(struct handle_map *map, u64 key, u64 value);

/* Removes an entry and says what it held. False when there was none. */
bool handle_map_take(struct handle_map *map, u64 key, u64 *value);
bool handle_map_take_locked(struct handle_map *map, u64 key, u64 *value);

#pragma GCC visibility pop

#endif
