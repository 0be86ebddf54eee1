/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_TEXT_END_H
#define TSCOPE_TEXT_END_H

#include <stdbool.h>
#include <string.h>

/* `text` may be NULL. */
static inline bool text_ends_with(const char *text, const char *end) {
  size_t length = text ? strlen(text) : 0, of_end = strlen(end);
  return length >= of_end && memcmp(text + length - of_end, end, of_end) == 0;
}

#endif
