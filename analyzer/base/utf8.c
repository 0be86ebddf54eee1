/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

#include "base/checked_memory.h"

static bool is_continuation(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

size_t utf8_whole(const char *text, size_t most) {
  while (most > 0 && is_continuation((unsigned char)text[most]))
    most--;
  return most;
}

size_t utf8_decode(const char *text, u32 *code) {
  static const u32 least[] = {0, 0, 0x80, 0x800, 0x10000}; /* shorter forms are invalid */
  const unsigned char *bytes = (const unsigned char *)text;
  size_t n = bytes[0] < 0x80   ? 1
             : bytes[0] < 0xc2 ? 0
             : bytes[0] < 0xe0 ? 2
             : bytes[0] < 0xf0 ? 3
             : bytes[0] < 0xf5 ? 4
                               : 0;
  *code = UTF8_REPLACEMENT;
  if (n == 0)
    return 1;
  u32 value = n == 1 ? bytes[0] : bytes[0] & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if (!is_continuation(bytes[i]))
      return 1;
    value = value << 6 | (bytes[i] & 0x3fu);
  }
  if (value < least[n] || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff)
    return 1;
  *code = value;
  return n;
}

size_t utf8_write(u32 code, char bytes[4]) {
  if (code < 0x80) {
    bytes[0] = (char)code;
    return 1;
  }
  size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--, code >>= 6)
    bytes[i] = (char)(0x80 | (code & 0x3f));
  bytes[0] = (char)((0xf00u >> n & 0xff) | code);
  return n;
}

bool utf8_is_control(u32 code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
         code == 0xfeff || (code >= 0xe0000 && code < 0xe1000);
}

const char *utf8_ascii_substitute(u32 code) {
  static const struct {
    u32 code;
    const char *text;
  } substitutes[] = {
      {0xb5, "u"},   {0x3bc, "u"},  {0xb7, "|"},   {0xb1, "+/-"},   {0xd7, "x"},    {0x2192, "->"},
      {0x2212, "-"}, {0x2013, "-"}, {0x2014, "-"}, {0x2026, "..."}, {0x2264, "<="}, {0x2265, ">="},
      {0x2248, "~"}, {0x2018, "'"}, {0x2019, "'"}, {0x201c, "\""},  {0x201d, "\""}, {0xa0, " "},
      {0x2009, " "}, {0x202f, " "}, {0x2500, "-"}, {0x2501, "="},   {0x2502, "|"},  {0x25cf, "o"},
      {0x25cb, "?"}, {0x25c6, "i"}, {0x25b2, "!"}, {0x25a0, "X"},   {0x2588, "#"},  {0x2593, "%"},
      {0x2592, "="}, {0x2591, "."}, {0x258f, "-"}, {0x258e, "-"},   {0x258d, "-"},  {0x258c, "-"},
      {0x258b, "="}, {0x258a, "="}, {0x2589, "#"}, {0x2581, "_"},   {0x2582, "."},  {0x2583, "-"},
      {0x2584, "="}, {0x2585, "+"}, {0x2586, "*"}, {0x2587, "#"},
  };
  FOR_EACH(substitutes, LENGTH_OF(substitutes), substitute)
    if (substitute->code == code)
      return substitute->text;
  return "?";
}

char *utf8_valid_copy(const char *text) {
  char *copy = memory_array(size_sum(size_product(strlen(text), 3), 1),
                            1); /* one invalid byte becomes three */
  char *end = copy;
  while (*text) {
    u32 code;
    text += utf8_decode(text, &code);
    end += utf8_write(code, end);
  }
  *end = '\0';
  return copy;
}
