/* SPDX-License-Identifier: MIT
 *
 * Values of JSON that may not be known: null then; and lists.
 */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/each.h"
#include "base/utf8.h"

/* Whole numbers are written as whole numbers. */
static inline json_t *number_or_null(double value) {
  if (!isfinite(value))
    return json_null();
  return value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value)
                                                     : json_real(value);
}

/* Bytes that are not UTF-8 are replaced. */
static inline json_t *text_or_null(const char *text) {
  char *valid = text ? utf8_valid_copy(text) : NULL;
  json_t *string = valid ? json_string(valid) : json_null();
  free(valid);
  return string;
}

/* An array with a value made of each element of a list, to which `one` points. */
#define JSON_LIST(at, n, one, value)                                                               \
  ({                                                                                               \
    json_t *list_ = json_array();                                                                  \
    FOR_EACH(at, n, one)                                                                           \
      json_array_append_new(list_, value);                                                         \
    list_;                                                                                         \
  })
