/* SPDX-License-Identifier: MIT */
#include "import/kineto/json_scan.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"

/* What ends a number or literal. */
static const bool ends_scalar[256] = {
    [0] = true, /* where the text ends, if not in it */
    [' '] = true, ['\n'] = true, ['\r'] = true, ['\t'] = true, [','] = true, [':'] = true,
    ['"'] = true, ['{'] = true,  ['['] = true,  ['}'] = true,  [']'] = true,
};

const char *scan_scalar(const char *p, const char *end, struct json_text *text) {
  if (*p == '"')
    return scan_string(p + 1, end, text);
  text->at = p;
  text->escaped = false;
  for (;; p++) {
    while (!ends_scalar[(u8)*p])
      p++;
    if (*p || p >= end) /* a zero byte ends the text, and nothing in it */
      break;
  }
  text->n = (u32)(p - text->at);
  return p < end ? p : NULL;
}

/* Where one is within a value. */
struct within {
  u64 depth;
  bool in_string;
  const char *escaped; /* what a backslash is before */
};

/* Quotes, backslashes, and brackets, of which two differ by one bit. */
static scan_chars find_in_value(const char *p) {
  scan_chars chars = scan_chars_at(p), brackets = chars | ' ';
  return (scan_chars)((brackets == '{') | (brackets == '}') | (chars == '"') | (chars == '\\'));
}

/* Whether the value ends with the bracket, quote or backslash at p. */
static bool ends_value(struct within *within, const char *p) {
  if (p == within->escaped)
    return false;
  if (*p == '\\')
    within->escaped = within->in_string ? p + 1 : NULL;
  else if (*p == '"')
    within->in_string = !within->in_string;
  else if (!within->in_string)
    within->depth += *p == '{' || *p == '[' ? 1 : -1;
  return within->depth == 0;
}

/* Behind an object or array. What comes next is looked at while it is not yet known what this was:
 * so no place in the text is computed from the last. */
static const char *scan_container(const char *p, const char *end) {
  struct within within = {0};
  for (; p < end; p += sizeof(scan_chars)) {
    scan_halves found = (scan_halves)find_in_value(p);
    for (u32 half = 0; half < 2; half++)
      for (u64 left = found[half] & 0x8080808080808080ull; left; left &= left - 1) {
        const char *at = p + half * 8 + __builtin_ctzll(left) / 8;
        if (ends_value(&within, at))
          return at < end ? at + 1 : NULL;
      }
  }
  return NULL;
}

const char *scan_value(const char *p, const char *end) {
  struct json_text text;
  p = scan_space(p);
  if (p >= end)
    return NULL;
  if (*p == '{' || *p == '[')
    return scan_container(p, end);
  bool none = *p == '}' || *p == ']' || *p == ',' || *p == ':';
  return none ? p : scan_scalar(p, end, &text);
}

/* Up to eight digits at p as they come, one in each byte; how many. */
static inline u32 load_digits(const char *p, u64 *digits) {
  u64 word;
  memcpy(&word, p, sizeof(word));
  word ^= 0x3030303030303030ull;
  *digits = word;
  u64 others = (word | (word + 0x7676767676767676ull)) & 0x8080808080808080ull;
  return others ? (u32)__builtin_ctzll(others) / 8 : 8;
}

/* The number that the first n of them make: neighbours are put together three times. */
static inline u64 number_of_digits(u64 digits, u32 n) {
  if (n == 0)
    return 0;
  digits <<= 64 - 8 * n; /* noughts before them */
  digits = (digits * (1 + (10 << 8)) >> 8) & 0x00ff00ff00ff00ffull;
  digits = (digits * (1 + (100 << 16)) >> 16) & 0x0000ffff0000ffffull;
  return digits * (1 + (10000ull << 32)) >> 32;
}

static const u32 powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* Digits with up to three after the point; false if more are needed. */
static bool parse_plain(const char *p, const char *end, u64 *whole, u64 *thousandths) {
  const char *begin = p;
  u64 digits;
  u32 n;
  *whole = *thousandths = 0;
  do {
    n = load_digits(p, &digits);
    *whole = *whole * powers_of_ten[n] + number_of_digits(digits, n);
    p += n;
  } while (n == 8 && p - begin < 18);
  if (p - begin > 18)
    return false;
  bool any = p > begin;
  if (p < end && *p == '.') {
    u32 kept = n = load_digits(++p, &digits);
    any |= n > 0;
    if (n > 3) {
      kept = 3;
      *thousandths = (digits >> 24 & 0xff) >= 5;
    }
    *thousandths += number_of_digits(digits, kept) * powers_of_ten[3 - kept];
    for (p += n; n == 8; p += n)
      n = load_digits(p, &digits);
  }
  return any && p == end;
}

static long double parse_other(struct json_text text) {
  char copy[64], *end;
  if (text.n == 0 || text.n >= sizeof(copy))
    return NAN;
  memcpy(copy, text.at, text.n);
  copy[text.n] = 0;
  long double value = strtold(copy, &end);
  return *end ? NAN : value;
}

static i64 clamp(long double value, i64 otherwise) {
  if (isnan(value) || isinf(value))
    return otherwise;
  if (value >= 9.2e18L)
    return INT64_MAX;
  return value <= -9.2e18L ? -INT64_MAX : (i64)llroundl(value);
}

i64 scan_integer(struct json_text text, i64 otherwise) {
  if (!text.n)
    return otherwise;
  const char *p = text.at, *end = text.at + text.n;
  bool negative = *p == '-';
  u64 whole, thousandths;
  if (parse_plain(p + negative, end, &whole, &thousandths))
    return negative ? -(i64)whole : (i64)whole;
  return clamp(parse_other(text), otherwise);
}

i64 scan_thousandths(struct json_text text, i64 otherwise) {
  const char *p = text.at, *end = text.at + text.n;
  bool negative = text.n && *p == '-';
  u64 whole, thousandths;
  if (parse_plain(p + negative, end, &whole, &thousandths) && whole < INT64_MAX / 1000) {
    i64 value = (i64)(whole * 1000 + thousandths);
    return negative ? -value : value;
  }
  return clamp(parse_other(text) * 1000, otherwise);
}

/* The number of four hexadecimal digits; UINT32_MAX if they are none. */
static u32 hex4(const char *p, const char *end) {
  u32 value = 0;
  for (u32 i = 0; i < 4; i++) {
    if (p + i >= end || !isxdigit((unsigned char)p[i]))
      return UINT32_MAX;
    value = value * 16 + (u32)(p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
  }
  return value;
}

/* UTF-8 of a code point takes no more bytes than its escape. */
u32 scan_unescape(struct json_text text, char *out) {
  if (!text.n)
    return 0;
  const char *p = text.at, *end = text.at + text.n;
  u32 bad = 0;
  while (p < end) {
    if (*p != '\\') {
      *out++ = *p++;
      continue;
    }
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *known = p + 1 < end && p[1] ? strchr(from, p[1]) : NULL;
    u32 code = p + 1 < end && p[1] == 'u' ? hex4(p + 2, end) : UINT32_MAX;
    if (known) {
      *out++ = to[known - from];
      p += 2;
    } else if (code != UINT32_MAX && (code < 0xd800 || code > 0xdfff)) {
      out += utf8_write(code ? code : '?', out);
      p += 6;
    } else {
      *out++ = '?';
      bad += code == UINT32_MAX; /* half of a pair is valid, but cannot be shown */
      p += code != UINT32_MAX ? 6 : p + 1 < end ? 2 : 1;
    }
  }
  *out = 0;
  return bad;
}
