/* SPDX-License-Identifier: MIT
 *
 * Texts that may be NULL, which is as good as "" where two are put in order; their lines, and the
 * numbers in them; and tables of words.
 */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/each.h"
#include "format/text_parts.h"
#include "format/tscope_format.h"

static inline bool text_ends_with(const char *text, const char *end) {
  return text && tscope_ends_with(text, end);
}

static inline bool text_ends_with_any_case(const char *text, const char *end) {
  size_t length = text ? strlen(text) : 0, of_end = strlen(end);
  return length >= of_end && strcasecmp(text + length - of_end, end) == 0;
}

static inline bool text_starts_with(const char *text, const char *start) {
  return text && tscope_begins_with(text, start);
}

static inline bool text_contains(const char *text, const char *part) {
  return text && strstr(text, part) != NULL;
}

static inline bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether it is a piece of another text, of so many bytes. */
static inline bool text_is_piece(const char *text, const char *piece, size_t bytes) {
  return text && strncmp(text, piece, bytes) == 0 && !text[bytes];
}

static inline const char *text_or_empty(const char *text) {
  return text ? text : "";
}

static inline int compare_texts(const char *a, const char *b) {
  return strcmp(text_or_empty(a), text_or_empty(b));
}

/* Words, and what each means. */
struct word {
  const char *word;
  u8 means;
};

/* What the first word means that matches(text, word); 0 if none does. */
#define MEANING_OF(text, words, matches)                                                           \
  ({                                                                                               \
    const struct word *first_ = FIND(words, LENGTH_OF(words), word_, matches(text, word_->word));  \
    first_ ? first_->means : 0;                                                                    \
  })

/* Whether one of the words matches. */
#define MATCHES_ANY(text, words, matches) ANY(words, LENGTH_OF(words), word_, matches(text, *word_))

/* Whether a word is in a list of words with `separator` between them. */
static inline bool is_in_words(const char *word, const char *words, char separator) {
  return word && words && tscope_has_word(words, (const char[]){separator, '\0'}, word);
}

/* Takes the first of some lines off `lines`, of so many bytes; NULL if none is left. */
static inline const char *text_next_line(const char **lines, int *bytes) {
  const char *line = *lines && **lines ? *lines : NULL, *end = line ? strchrnul(line, '\n') : NULL;
  *bytes = (int)(end - line);
  *lines = end && *end ? end + 1 : end;
  return line;
}

/* A line "name=value"; without a "=" its value is NULL. */
struct named_value {
  const char *name, *value;
  int of_name, of_value; /* lengths */
};

/* Takes the first off the lines; false if none is left. */
static inline bool next_named_value(const char **lines, struct named_value *line) {
  int bytes;
  const char *at = text_next_line(lines, &bytes),
             *equals = at ? memchr(at, '=', (size_t)bytes) : NULL;
  int of_name = equals ? (int)(equals - at) : bytes;
  *line = (struct named_value){at, equals ? equals + 1 : NULL, of_name,
                               equals ? bytes - of_name - 1 : 0};
  return at != NULL;
}

/* The value of `name` among lines of "name=value", up to the end of its line; NULL if it is not
 * there. */
static inline const char *value_among(const char *lines, const char *name, size_t *bytes) {
  for (struct named_value line; next_named_value(&lines, &line);)
    if (line.value && text_is_piece(name, line.name, (size_t)line.of_name)) {
      *bytes = (size_t)line.of_value;
      return line.value;
    }
  return NULL;
}

/* Of a path; of a folder with a / behind it the whole. */
static inline const char *last_part(const char *path) {
  const char *file = tscope_file_of(path);
  return *file ? file : path;
}

/* "forward" of "Model.forward". */
static inline const char *last_name(const char *function) {
  const char *dot = strrchr(function, '.');
  return dot ? dot + 1 : function;
}

/* "my/model.py": enough of a path to recognise a file. */
static inline const char *last_two_parts(const char *path) {
  const char *from = last_part(path);
  if (from > path + 1)
    for (from--; from > path && from[-1] != '/';)
      from--;
  return from;
}
