/* SPDX-License-Identifier: MIT
 *
 * The JSON of traces, scanned in place: there are gigabytes of it, so nothing is copied and no tree
 * is built. It accepts what is often wrong in real files: NaN, Infinity, trailing commas and bad
 * escapes. Every function gets the end of the text; at least SCAN_PADDING readable zero bytes
 * must follow there.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "format/tscope_format.h"

#define SCAN_PADDING 16u

/* A string between its quotes, or a number or literal as it is written. */
struct json_text {
  const char *at;
  u32 n;
  bool escaped; /* has backslashes */
};

/* Blanks such as a line begins with, eight at a time. */
static inline const char *scan_indent(const char *p) {
  u64 word;
  do {
    memcpy(&word, p, sizeof(word));
    word ^= 0x2020202020202020ull;
    p += word ? __builtin_ctzll(word) / 8 : (int)sizeof(word);
  } while (!word);
  return p;
}

static inline const char *scan_space(const char *p) {
  while ((u8)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
    p = *p == '\n' ? scan_indent(p + 1) : p + 1;
  return p;
}

/* Sixteen characters that are looked at together, and which of them were found: 255 each. */
typedef u8 scan_chars __attribute__((vector_size(16), may_alias));
typedef u64 scan_halves __attribute__((vector_size(16)));

static inline scan_chars scan_chars_at(const char *p) {
  scan_chars chars;
  memcpy(&chars, p, sizeof(chars));
  return chars;
}

/* The place of the first that was found, 16 if none was. */
static inline u32 scan_first(scan_chars found) {
  scan_halves halves = (scan_halves)found;
  return halves[0]   ? (u32)__builtin_ctzll(halves[0]) / 8
         : halves[1] ? 8 + (u32)__builtin_ctzll(halves[1]) / 8
                     : 16;
}

/* From after the opening quote to after the closing one. NULL if the text ends before. */
static inline const char *scan_string(const char *p, const char *end, struct json_text *text) {
  text->at = p;
  text->escaped = false;
  while (p < end) {
    scan_chars chars = scan_chars_at(p);
    u32 found = scan_first((scan_chars)((chars == '"') | (chars == '\\')));
    p += found;
    if (found == sizeof(chars))
      continue;
    if (p >= end)
      return NULL;
    if (*p == '"') {
      text->n = (u32)(p - text->at);
      return p + 1;
    }
    text->escaped = true;
    p += 2;
  }
  return NULL;
}

/* A number, literal or string at p; false for an object or array. Returns the position after it,
 * NULL if the text ends before that is certain. */
const char *scan_scalar(const char *p, const char *end, struct json_text *text);

/* Skips any value, however deep. NULL if the text ends before the value does. */
const char *scan_value(const char *p, const char *end);

/* The number in a text, with or without quotes; `otherwise` if it is not a number (null, NaN).
 * scan_thousandths() gives it times 1000, rounded: both saturate. No digit follows the text, but as
 * many bytes as behind all of it. */
i64 scan_integer(struct json_text text, i64 otherwise);
i64 scan_thousandths(struct json_text text, i64 otherwise);

/* Writes a string without its escapes, and with '?' for bad ones, into out of text.n + 1 bytes.
 * Returns how many were bad. */
u32 scan_unescape(struct json_text text, char *out);

static inline bool text_is(struct json_text text, const char *word, u32 n) {
  return text.n == n && memcmp(text.at, word, n) == 0;
}
#define TEXT_IS(text, literal) text_is(text, literal, sizeof(literal) - 1)
