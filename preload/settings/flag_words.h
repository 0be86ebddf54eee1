/* SPDX-License-Identifier: MIT
 *
 * The words for a setting that is on or off.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <strings.h>

/* Sets `on`; false if the value is no such word. */
static inline bool tscope_read_flag(const char *value, bool *on) {
  static const char *const no[] = {"off", "0", "no", "false"};
  static const char *const yes[] = {"on", "1", "yes", "true"};
  for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
    if (strcasecmp(value, no[i]) == 0 || strcasecmp(value, yes[i]) == 0) {
      *on = strcasecmp(value, yes[i]) == 0;
      return true;
    }
  }
  return false;
}
