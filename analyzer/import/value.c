/* SPDX-License-Identifier: MIT */
#include "import/value.h"

#include <math.h>
#include <string.h>

#include "base/intervals.h"

const struct value *value_get(const struct value *value, const char *key) {
  if (!value || value->kind != VALUE_DICT)
    return NULL;
  const struct value_items *items = value->items;
  size_t bytes = strlen(key);
  for (u32 i = items->n; i-- > 0;) {
    const struct value *at = &items->keys[i];
    if (at->kind == VALUE_STR && at->n == bytes && memcmp(at->text, key, bytes) == 0)
      return &items->at[i];
  }
  return NULL;
}

bool value_integer(const struct value *value, i64 *out) {
  if (!value || value->kind != VALUE_INT)
    return false;
  *out = value->integer;
  return true;
}

u32 value_rank(const struct value *value) {
  i64 rank;
  return value_integer(value, &rank) && rank >= 0 && rank < INDEX_NONE ? (u32)rank : INDEX_NONE;
}

double value_number(const struct value *value) {
  if (value && value->kind == VALUE_INT)
    return (double)value->integer;
  return value && value->kind == VALUE_FLOAT ? value->real : (double)NAN;
}
