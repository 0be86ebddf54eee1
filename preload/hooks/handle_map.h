/* SPDX-License-Identifier: MIT
 *
 * A bounded map from handles to the numbers that streams, kernels or communicators have in the
 * trace. Any thread reads it without a lock. Entries are added and removed under the map's own
 * lock, for which only threads that add at the same moment compete. Zero-initialised except
 * `capacity`. The slots are reserved when the first entry comes: a program that has none, and locks
 * its memory, does not lock them.
 *
 * A key is within HANDLE_MAP_PROBES slots of its place, or not in the map. So the cost of a look-up
 * is bounded even if the map is full. An entry that finds no slot there is refused.
 *
 * What is no such map has a table of its own, and says why: names before any constructor has run
 * (hooked_symbols.c), texts, on which maps rest (trace_definitions.c), hashes that any thread adds
 * without a lock (known_stacks.h), objects that are found by an address within them
 * (library_instances.c), totals that are added to in their slots (tensor_memory.c), and caches, in
 * which the newest takes the place of another.
 *
 * Two keys mark slots without an entry. A job may pass either of them as a handle (NULL, or -1), so
 * they are never found and never added.
 */
#pragma once

#include <stdbool.h>

#include "record/lock.h"

#define HANDLE_MAP_PROBES 64u
#define HANDLE_MAP_EMPTY 0ull         /* no entry was ever here: a search ends */
#define HANDLE_MAP_REMOVED UINT64_MAX /* an entry was removed: a search goes on */

struct handle_slot {
  u64 key;
  u64 value;
};

struct handle_map {
  struct handle_slot *slots; /* NULL: it has no entry yet */
  u32 capacity;              /* a power of two */
  struct tscope_lock lock;
};

#define HANDLE_MAP(name, capacity_) static struct handle_map name = {.capacity = (capacity_)}

/* Mixes a key so that its low bits depend on all of them. */
static inline u64 handle_hash(u64 key) {
  key *= 0x9e3779b97f4a7c15ull;
  return key ^ key >> 32;
}

static inline bool handle_map_is_key(u64 key) {
  return key != HANDLE_MAP_EMPTY && key != HANDLE_MAP_REMOVED;
}

static inline struct handle_slot *handle_map_find(const struct handle_map *map, u64 key) {
  struct handle_slot *slots = __atomic_load_n(&map->slots, __ATOMIC_ACQUIRE);
  if (!slots || !handle_map_is_key(key))
    return NULL;
  u64 index = handle_hash(key);
  for (u32 probe = 0; probe < HANDLE_MAP_PROBES; probe++, index++) {
    struct handle_slot *slot = &slots[index & (map->capacity - 1)];
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

/* Adds or replaces an entry. False if there is no room, if `key` is one of the two that mark empty
 * slots, or if the lock is not available. */
bool handle_map_put(struct handle_map *map, u64 key, u64 value);

/* The same for who holds the map's lock. */
bool handle_map_put_locked(struct handle_map *map, u64 key, u64 value);

/* Removes an entry and returns its value. False if there was none. */
bool handle_map_remove(struct handle_map *map, u64 key, u64 *value);
bool handle_map_remove_locked(struct handle_map *map, u64 key, u64 *value);
