/* SPDX-License-Identifier: MIT */
#include "import/kineto/json_scan.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"

/* What ends a number or literal, and what matters where a value is skipped. */
enum { ENDS_SCALAR = 1, IN_VALUES = 2 };
static const u8 uses[256] = {
    [0] = IN_VALUES, /* where the text ends, if not in it */
    [' '] = ENDS_SCALAR,
    ['\n'] = ENDS_SCALAR,
    ['\r'] = ENDS_SCALAR,
    ['\t'] = ENDS_SCALAR,
    [','] = ENDS_SCALAR,
    [':'] = ENDS_SCALAR,
    ['"'] = ENDS_SCALAR | IN_VALUES,
    ['{'] = ENDS_SCALAR | IN_VALUES,
    ['['] = ENDS_SCALAR | IN_VALUES,
    ['}'] = ENDS_SCALAR | IN_VALUES,
    [']'] = ENDS_SCALAR | IN_VALUES,
};

const char *scan_scalar(const char *p, const char *end, struct json_text *text) {
  if (*p == '"')
    return scan_string(p + 1, end, text);
  text->at = p;
  text->escaped = false;
  while (p < end && !(uses[(u8)*p] & ENDS_SCALAR))
    p++;
  text->n = (u32)(p - text->at);
  return p < end ? p : NULL;
}

/* Behind an object or array. */
static const char *scan_container(const char *p, const char *end) {
  struct json_text text;
  u64 depth = 0;
  do {
    while (!(uses[(u8)*p] & IN_VALUES))
      p++;
    if (p >= end)
      return NULL;
    if (*p == '"') {
      p = scan_string(p + 1, end, &text);
      if (!p)
        return NULL;
      continue;
    }
    depth += *p == '{' || *p == '[';
    depth -= *p == '}' || *p == ']';
    p++;
  } while (depth);
  return p;
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

/* Digits with up to three after the point; false if more are needed. */
static bool parse_plain(const char *p, const char *end, u64 *whole, u32 *thousandths) {
  const char *digits = p;
  u64 value = 0;
  for (; p < end && *p >= '0' && *p <= '9'; p++) {
    if (p - digits >= 18)
      return false;
    value = value * 10 + (u64)(*p - '0');
  }
  bool any = p > digits;
  u32 fraction = 0, scale = 1000;
  if (p < end && *p == '.')
    for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
      any = true;
      if (scale > 1) {
        scale /= 10;
        fraction += (u32)(*p - '0') * scale;
      } else if (scale == 1) {
        fraction += *p >= '5';
        scale = 0;
      }
    }
  *whole = value;
  *thousandths = fraction;
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
  u64 whole;
  u32 thousandths;
  if (parse_plain(p + negative, end, &whole, &thousandths))
    return negative ? -(i64)whole : (i64)whole;
  return clamp(parse_other(text), otherwise);
}

i64 scan_thousandths(struct json_text text, i64 otherwise) {
  const char *p = text.at, *end = text.at + text.n;
  bool negative = text.n && *p == '-';
  u64 whole;
  u32 thousandths;
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
