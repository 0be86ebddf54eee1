/* SPDX-License-Identifier: MIT
 *
 * What values of settings mean.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "format/text_parts.h"

/* Sets `on`; false if the value is no word for on or off. */
static inline bool tscope_read_flag(const char *value, bool *on) {
  static const char *const no[] = {"off", "0", "no", "false"};
  static const char *const yes[] = {"on", "1", "yes", "true"};
  for (size_t i = 0; i < LENGTH_OF(no); i++) {
    if (strcasecmp(value, no[i]) == 0 || strcasecmp(value, yes[i]) == 0) {
      *on = strcasecmp(value, yes[i]) == 0;
      return true;
    }
  }
  return false;
}

/* Sets `number`; false if the value is anything but its digits. */
static inline bool tscope_read_number(const char *value, u64 *number) {
  const char *end;
  u64 digits = leading_number(value, UINT64_MAX, &end);
  bool is_number = end != value && !*end;
  if (is_number)
    *number = digits;
  return is_number;
}

/* Sets `bytes`, after which K, M, G or T may follow; false if the value is no size. */
static inline bool tscope_read_size(const char *value, u64 *bytes) {
  static const char units[] = "KMGT";
  const char *end;
  u64 size = leading_number(value, UINT64_MAX, &end);
  const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
  unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
  if (unit)
    end += end[1] == 'i' && end[2] == 'B' ? 3 : end[1] == 'B' || end[1] == 'i' ? 2 : 1;
  if (end == value || *end || size > UINT64_MAX >> shift)
    return false;
  *bytes = size << shift;
  return true;
}
