/* SPDX-License-Identifier: MIT
 *
 * Values of JSON that may not be known: null then.
 */
#ifndef TSCOPE_JSON_VALUES_H
#define TSCOPE_JSON_VALUES_H

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"

static inline json_t *number_or_null(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

/* Bytes that are not UTF-8 are replaced. */
static inline json_t *text_or_null(const char *text) {
  char *valid = text ? utf8_valid_copy(text) : NULL;
  json_t *string = valid ? json_string(valid) : json_null();
  free(valid);
  return string;
}

#endif
