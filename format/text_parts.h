/* SPDX-License-Identifier: MIT
 *
 * Parts of texts.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

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

/* The last part of a path: a file's name. */
static inline const char *tscope_file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}
