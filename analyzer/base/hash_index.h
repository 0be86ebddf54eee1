/* SPDX-License-Identifier: MIT
 *
 * Finds items of a list by a hash of each: a table from hashes to indices into the list. {0} is an
 * empty one; it is freed with free(index.slots).
 *
 *   HASH_INDEX_EACH(&index, hash, i)
 *     if (is_same(&list.at[i], wanted))
 *       return i;
 *   hash_index_add(&index, hash, list.n);
 *   VECTOR_PUSH(&list, wanted);
 */
#ifndef TSCOPE_HASH_INDEX_H
#define TSCOPE_HASH_INDEX_H

#include "base/intervals.h"
#include "format/tscope_format.h"

struct hash_index {
  struct hash_slot {
    u64 hash;
    u32 index_plus_1; /* 0 when empty */
  } * slots;
  u32 n, room; /* a power of two, never more than half full */
};

/* The next index with that hash; start with *at = 0. INDEX_NONE when there is none left. */
static inline u32 hash_index_next(const struct hash_index *index, u64 hash, u32 *at) {
  while (*at < index->room) {
    const struct hash_slot *slot = &index->slots[(hash + (*at)++) & (index->room - 1)];
    if (!slot->index_plus_1)
      return INDEX_NONE;
    if (slot->hash == hash)
      return slot->index_plus_1 - 1;
  }
  return INDEX_NONE;
}

#define HASH_INDEX_EACH(index, hash, i)                                                            \
  for (u32 at_ = 0, i; (i = hash_index_next(index, hash, &at_)) != INDEX_NONE;)

void hash_index_add(struct hash_index *index, u64 hash, u32 value);

/* Forgets all. */
void hash_index_clear(struct hash_index *index);

#endif
