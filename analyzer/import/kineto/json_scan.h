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

static inline const char *scan_space(const char *p) {
  while ((u8)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
    p++;
  return p;
}

/* Any byte of the word that is zero, as its high bit; the lowest one found is right. */
static inline u64 scan_zero_bytes(u64 word) {
  return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
}

/* From after the opening quote to after the closing one. NULL if the text ends before. */
static inline const char *scan_string(const char *p, const char *end, struct json_text *text) {
  text->at = p;
  text->escaped = false;
  while (p < end) {
    u64 word;
    memcpy(&word, p, sizeof(word));
    u64 found = scan_zero_bytes(word ^ 0x2222222222222222ull) | /* " */
                scan_zero_bytes(word ^ 0x5c5c5c5c5c5c5c5cull);  /* \ */
    if (!found) {
      p += sizeof(word);
      continue;
    }
    p += __builtin_ctzll(found) / 8;
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
 * scan_thousandths() gives it times 1000, rounded: both saturate. */
i64 scan_integer(struct json_text text, i64 otherwise);
i64 scan_thousandths(struct json_text text, i64 otherwise);

/* Writes a string without its escapes, and with '?' for bad ones, into out of text.n + 1 bytes.
 * Returns how many were bad. */
u32 scan_unescape(struct json_text text, char *out);

static inline bool text_is(struct json_text text, const char *word, u32 n) {
  return text.n == n && memcmp(text.at, word, n) == 0;
}
#define TEXT_IS(text, literal) text_is(text, literal, sizeof(literal) - 1)
