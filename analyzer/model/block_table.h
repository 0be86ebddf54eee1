/* SPDX-License-Identifier: MIT
 *
 * The blocks that live at one moment, by address. They come and go by the million:
 * base/hash_index.h only adds.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

struct held_block {
  u64 address;
  i64 bytes;
  i64 time; /* of its allocation, NS_UNKNOWN before the recording */
  u32 source, stack;
  bool used;   /* of the table's slot */
  bool before; /* it was there when recording began */
};

struct block_table {
  struct held_block *slots; /* some unused */
  u32 room, n;
};

/* Adds a block; replaces one with the same address. */
void block_table_put(struct block_table *table, struct held_block block);

const struct held_block *block_table_find(const struct block_table *table, u64 address);

/* Removes the block of this address. False if there is none; `removed` may be NULL. */
bool block_table_remove(struct block_table *table, u64 address, struct held_block *removed);

void block_table_free(struct block_table *table);
