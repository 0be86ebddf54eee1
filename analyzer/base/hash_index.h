/* SPDX-License-Identifier: MIT
 *
 * Finds items of a list by a hash of each: a table from hashes to indices into the list. {0} is an
 * empty one; it is freed with free(index.slots).
 */
#pragma once

#include "base/hash.h"
#include "base/intervals.h"
#include "base/vector.h"
#include "format/tscope_format.h"

struct hash_index {
  struct hash_slot {
    u64 hash;
    u32 index_plus_1; /* 0 when empty */
  } * slots;
  u32 n, room; /* a power of two, never more than half full */
};

/* The next index with that hash, in the order in which they were added; start with *at = 0.
 * INDEX_NONE when there is none left. */
static inline u32 hash_index_next(const struct hash_index *index, u64 hash, u32 *at) {
  u64 first = table_hash_number(hash);
  while (*at < index->room) {
    const struct hash_slot *slot = &index->slots[(first + (*at)++) & (index->room - 1)];
    if (!slot->index_plus_1)
      return INDEX_NONE;
    if (slot->hash == hash)
      return slot->index_plus_1 - 1;
  }
  return INDEX_NONE;
}

/* The one that was added first; INDEX_NONE. */
static inline u32 hash_index_first(const struct hash_index *index, u64 hash) {
  u32 at = 0;
  return hash_index_next(index, hash, &at);
}

#define HASH_INDEX_EACH(index, hash, i)                                                            \
  for (u32 at_ = 0, i; (i = hash_index_next(index, hash, &at_)) != INDEX_NONE;)

void hash_index_add(struct hash_index *index, u64 hash, u32 value);

/* Forgets all. */
void hash_index_clear(struct hash_index *index);

/* A vector of what is known by its hash; freed with free(list.at) and free(list.index.slots).
 *
 *   return HASHED_OR_ADD(&list, hash, one, is_same(one, &wanted), wanted);
 */
#define HASHED(type)                                                                               \
  struct {                                                                                         \
    type *at;                                                                                      \
    u32 n, room;                                                                                   \
    struct hash_index index;                                                                       \
  }

/* Index of the one that is `that`, of those with the hash; else INDEX_NONE. */
#define HASHED_INDEX(list, hash, one, that)                                                        \
  ({                                                                                               \
    u32 found_ = INDEX_NONE;                                                                       \
    HASH_INDEX_EACH(&(list)->index, hash, i_) {                                                    \
      __typeof__(&(list)->at[0]) one = &(list)->at[i_];                                            \
      if (that) {                                                                                  \
        found_ = i_;                                                                               \
        break;                                                                                     \
      }                                                                                            \
    }                                                                                              \
    found_;                                                                                        \
  })

/* Appends; its index. */
#define HASHED_ADD(list, hash, ...)                                                                \
  ({                                                                                               \
    hash_index_add(&(list)->index, hash, (list)->n);                                               \
    VECTOR_PUSH(list, __VA_ARGS__);                                                                \
    (list)->n - 1;                                                                                 \
  })

/* Index of the one that is there already, or is added. */
#define HASHED_OR_ADD(list, hash, one, that, ...)                                                  \
  ({                                                                                               \
    u64 hash_ = (hash);                                                                            \
    u32 index_ = HASHED_INDEX(list, hash_, one, that);                                             \
    index_ == INDEX_NONE ? HASHED_ADD(list, hash_, __VA_ARGS__) : index_;                          \
  })
