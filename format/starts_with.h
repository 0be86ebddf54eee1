/* SPDX-License-Identifier: MIT
 *
 * Whether a text begins with another.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool tscope_begins_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}
