/* SPDX-License-Identifier: MIT
 *
 * Plain data as it was in a file: what both Python's pickle and JSON can express. A tree of values
 * in an arena. A value is 16 bytes and is copied freely; what it holds is shared and never changes
 * once read. What the file refers to twice is here once.
 *
 * Every accessor takes any value, or NULL, and returns "not that" (NULL, false, 0) for a wrong
 * kind, so that a chain of look-ups needs one check at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "format/tscope_format.h"

enum value_kind {
  VALUE_NONE = 1,
  VALUE_BOOL,
  VALUE_INT,
  VALUE_BIG, /* an integer beyond 64 bits: two's complement, least significant byte first */
  VALUE_FLOAT,
  VALUE_STR,
  VALUE_BYTES,
  VALUE_LIST,
  VALUE_TUPLE,
  VALUE_SET,
  VALUE_DICT,
};

struct value_items;

struct value {
  enum value_kind kind;
  u32 n; /* bytes of a STR, BYTES or BIG */
  union {
    bool boolean;
    i64 integer;
    double real;
    const char *text;          /* NUL-terminated, and may hold NULs too; STR: as in the file, not
                                  checked to be UTF-8 */
    struct value_items *items; /* of a LIST, TUPLE, SET or DICT */
  };
};

struct value_items {
  struct value *at;   /* [n] items; of a dict, the values */
  struct value *keys; /* [n] of a dict; dicts with the same keys share them */
  u32 n;
  u32 room;     /* while it is being built */
  u32 depth;    /* of what is inside, itself included; an empty list has 1 */
  float spread; /* values found by following every reference from here, itself included; what is
                   shared counts each time. A reader who walks everything checks this first */
};

/* How many items a list, tuple, set or dict has. */
static inline u32 value_count(const struct value *value) {
  return value && value->kind >= VALUE_LIST ? value->items->n : 0;
}

/* The i-th item; of a dict, the i-th value in the order of the file. */
static inline const struct value *value_item(const struct value *value, u32 i) {
  return i < value_count(value) ? &value->items->at[i] : NULL;
}

static inline const struct value *value_key(const struct value *value, u32 i) {
  return value && value->kind == VALUE_DICT && i < value->items->n ? &value->items->keys[i] : NULL;
}

/* What a dict has under a text; the last, where the file gives several. Linear in the dict. */
const struct value *value_get(const struct value *value, const char *key);

/* The text of a STR, NULL of anything else. */
static inline const char *value_text(const struct value *value) {
  return value && value->kind == VALUE_STR ? value->text : NULL;
}

/* An INT; false, and `out` as it was, of anything else. */
bool value_integer(const struct value *value, i64 *out);

/* An INT that may be the number of a rank, or how many there are; INDEX_NONE of anything else. */
u32 value_rank(const struct value *value);

/* An INT or FLOAT; NAN of anything else. */
double value_number(const struct value *value);

static inline bool value_is_true(const struct value *value) {
  return value && value->kind == VALUE_BOOL && value->boolean;
}

static inline bool value_is_sequence(const struct value *value) {
  return value && (value->kind == VALUE_LIST || value->kind == VALUE_TUPLE);
}

static inline double value_spread(const struct value *value) {
  return value && value->kind >= VALUE_LIST ? (double)value->items->spread : 1;
}
