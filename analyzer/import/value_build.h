/* SPDX-License-Identifier: MIT
 *
 * Building trees of values, for readers of files: texts are stored once, and so are the keys of
 * dicts with the same keys in the same order, as in a list of records.
 *
 * Functions return 0 or negative errno.
 */
#pragma once

#include "base/arena.h"
#include "base/hash_index.h"
#include "import/value.h"

/* What is there already: texts, each of n bytes; or the keys of dicts, n of them. */
typedef HASHED(struct value_kept {
  const void *at;
  u32 n;
}) value_table;

struct value_builder {
  struct arena *arena; /* the tree's */
  value_table texts, shapes;
};

/* A STR, BYTES or BIG with a copy of the bytes. */
void value_make_text(struct value_builder *b, enum value_kind kind, const char *text, u32 bytes,
                     struct value *out);

/* An empty LIST, TUPLE, SET or DICT. */
void value_make_items(struct value_builder *b, enum value_kind kind, struct value *out);

/* Appends to a list, tuple or set. */
int value_append(struct value_builder *b, struct value_items *items, const struct value *more,
                 u32 n);

/* Adds n pairs to a dict: key, value, key, value, ... */
int value_put(struct value_builder *b, struct value_items *items, const struct value *pairs, u32 n);

/* Call it once on the finished tree: fills in depth and spread. -ELOOP if something contains
 * itself, -E2BIG if something is nested deeper than `most`. */
int value_finish(const struct value *root, u32 most);

/* Frees what only building needed; the tree stays. */
void value_builder_release(struct value_builder *b);
