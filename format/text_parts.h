/* SPDX-License-Identifier: MIT
 *
 * Parts of texts. Safe in signal handlers.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "format/values.h"

static inline bool tscope_begins_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static inline bool tscope_ends_with(const char *text, const char *end) {
  size_t bytes = strlen(text), of_end = strlen(end);
  return bytes >= of_end && strcmp(text + bytes - of_end, end) == 0;
}

/* Whether `word` is one of the words of a text, with one or more of the bytes in `between` between
 * them. */
static inline bool tscope_has_word(const char *text, const char *between, const char *word) {
  size_t bytes = strlen(word);
  for (const char *at = text + strspn(text, between); *at; at += strspn(at, between)) {
    if (strcspn(at, between) == bytes && tscope_begins_with(at, word))
      return true;
    at += strcspn(at, between);
  }
  return false;
}

/* The number whose digits a text begins with, or `most` if it is larger, and 0 if there are none;
 * *end, which may be NULL, gets what is behind them. */
static inline u64 leading_number(const char *text, u64 most, const char **end) {
  u64 number = 0;
  for (; *text >= '0' && *text <= '9'; text++)
    number = number <= most / 10 ? MIN(10 * number + (u64)(*text - '0'), most) : most;
  if (end)
    *end = text;
  return number;
}

/* The numbers that a text begins with, with spaces between them; false if it has fewer. */
static inline bool leading_numbers(const char *text, u64 *numbers, size_t n) {
  bool found = true;
  for (size_t i = 0; i < n && found; i++) {
    const char *at = text + strspn(text, " ");
    numbers[i] = leading_number(at, UINT64_MAX, &text);
    found = text > at;
  }
  return found;
}

/* Puts more behind a text for which there are so many bytes, as much as fits. */
__attribute__((format(printf, 3, 4))) static inline void tscope_append(char *text, size_t bytes,
                                                                       const char *format, ...) {
  size_t length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, bytes - length, format, arguments);
  va_end(arguments);
}

/* The last part of a path: a file's name. */
static inline const char *tscope_file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}
