/* SPDX-License-Identifier: MIT
 *
 * Texts that may be NULL, which is as good as "" where two are put in order.
 */
#ifndef TSCOPE_TEXTS_H
#define TSCOPE_TEXTS_H

#include <stdbool.h>
#include <string.h>

static inline bool text_ends_with(const char *text, const char *end) {
  size_t length = text ? strlen(text) : 0, of_end = strlen(end);
  return length >= of_end && memcmp(text + length - of_end, end, of_end) == 0;
}

static inline bool text_starts_with(const char *text, const char *start) {
  return text && strncmp(text, start, strlen(start)) == 0;
}

static inline bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static inline const char *text_or_empty(const char *text) {
  return text ? text : "";
}

static inline int compare_texts(const char *a, const char *b) {
  return strcmp(text_or_empty(a), text_or_empty(b));
}

/* Of a path. */
static inline const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

#endif
