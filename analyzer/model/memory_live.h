/* SPDX-License-Identifier: MIT
 *
 * The blocks that live at one moment, by address. They come and go by the million:
 * base/hash_index.h only adds.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

struct live_block {
  u64 address;
  i64 bytes;
  i64 time; /* of its allocation, NS_UNKNOWN before the recording */
  u32 source, stack;
  bool used;   /* of the table's slot */
  bool before; /* it was there when recording began */
};

struct live_set {
  struct live_block *slots; /* some unused */
  u32 room, n;
};

/* Adds a block; replaces one with the same address. */
void live_put(struct live_set *set, struct live_block block);

const struct live_block *live_find(const struct live_set *set, u64 address);

/* Removes the block of this address. False if there is none; `removed` may be NULL. */
bool live_remove(struct live_set *set, u64 address, struct live_block *removed);

void live_free(struct live_set *set);
