/* SPDX-License-Identifier: MIT */
#include "import/pickle/pickle_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/utf8.h"

/* Python also refuses to read longer ones: the time grows with the square. */
#define MOST_DIGITS 4300u
#define MOST_WORDS (MOST_DIGITS / 9 + 3)

void pickle_integer(struct value_builder *b, const u8 *bytes, u32 n, struct value *out) {
  bool negative = n && bytes[n - 1] & 0x80;
  u8 sign = negative ? 0xff : 0;
  while (n > 8 && bytes[n - 1] == sign && ((bytes[n - 2] ^ sign) & 0x80) == 0)
    n--;
  if (n > 8) {
    value_make_text(b, VALUE_BIG, (const char *)bytes, n, out);
    return;
  }
  u64 word = 0;
  for (u32 i = 0; i < 8; i++)
    word |= (u64)(i < n ? bytes[i] : sign) << (8 * i);
  *out = (struct value){.kind = VALUE_INT, .integer = (i64)word};
}

/* magnitude = magnitude x 10^digits + chunk, in 32-bit words, the lowest first */
static void words_multiply_add(u32 *words, u32 *n, u32 scale, u32 chunk) {
  u64 carry = chunk;
  for (u32 i = 0; i < *n; i++) {
    carry += (u64)words[i] * scale;
    words[i] = (u32)carry;
    carry >>= 32;
  }
  if (carry)
    words[(*n)++] = (u32)carry;
}

static void words_negate(u32 *words, u32 n) {
  u64 carry = 1;
  for (u32 i = 0; i < n; i++) {
    carry += (u32)~words[i];
    words[i] = (u32)carry;
    carry >>= 32;
  }
}

int pickle_decimal(struct value_builder *b, const char *line, size_t n, struct value *out) {
  if (n == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1')) {
    *out = (struct value){.kind = VALUE_BOOL, .boolean = line[1] == '1'};
    return 0;
  }
  if (n && line[n - 1] == 'L')
    n--;
  bool negative = n && line[0] == '-';
  size_t i = negative || (n && line[0] == '+');
  if (i == n || n - i > MOST_DIGITS)
    return -EBADMSG;
  u32 words[MOST_WORDS] = {0}, used = 0;
  while (i < n) {
    u32 chunk = 0, scale = 1;
    for (u32 digits = 0; digits < 9 && i < n; digits++, i++) {
      if (line[i] < '0' || line[i] > '9')
        return -EBADMSG;
      chunk = chunk * 10 + (u32)(line[i] - '0');
      scale *= 10;
    }
    words_multiply_add(words, &used, scale, chunk);
  }
  used++; /* for the sign */
  if (negative)
    words_negate(words, used);
  u8 bytes[MOST_WORDS * 4];
  for (u32 at = 0; at < used * 4; at++)
    bytes[at] = (u8)(words[at / 4] >> (8 * (at % 4)));
  pickle_integer(b, bytes, used * 4, out);
  return 0;
}

int pickle_float(struct value_builder *b, const char *line, size_t n, struct value *out) {
  (void)b;
  char text[64], *end;
  if (n == 0 || n >= sizeof(text))
    return -EBADMSG;
  memcpy(text, line, n);
  text[n] = 0;
  *out = (struct value){.kind = VALUE_FLOAT, .real = strtod(text, &end)};
  return end == text + n ? 0 : -EBADMSG;
}

static size_t octal(const char *at, size_t left, u32 *out) {
  size_t i = 0;
  for (*out = 0; i < 3 && i < left && at[i] >= '0' && at[i] <= '7'; i++)
    *out = *out * 8 + (u32)(at[i] - '0');
  return i;
}

/* What follows a backslash; how much of it that is, 0 when it is no escape. */
static size_t escape(const char *at, size_t left, char *out) {
  static const char names[] = "abfnrtv\\'\"", means[] = "\a\b\f\n\r\t\v\\'\"";
  u32 code;
  const char *name = left && *at ? strchr(names, *at) : NULL;
  if (name) {
    *out = means[name - names];
    return 1;
  }
  if (left && *at == 'x' && (code = utf8_hex(at + 1, left - 1, 2)) != UINT32_MAX) {
    *out = (char)code;
    return 3;
  }
  size_t digits = octal(at, left, &code);
  *out = (char)code;
  return digits;
}

int pickle_quoted(struct value_builder *b, const char *line, size_t n, struct value *out) {
  if (n < 2 || line[0] != line[n - 1] || (line[0] != '\'' && line[0] != '"') || n > UINT32_MAX)
    return -EBADMSG;
  SCOPED char *text = memory_array(n, 1);
  u32 bytes = 0;
  for (size_t i = 1; i < n - 1; i++) {
    size_t used = line[i] == '\\' ? escape(line + i + 1, n - 2 - i, &text[bytes]) : 0;
    if (!used)
      text[bytes] = line[i];
    bytes++;
    i += used;
  }
  value_make_text(b, VALUE_STR, text, bytes, out);
  return 0;
}

int pickle_raw_unicode(struct value_builder *b, const char *line, size_t n, struct value *out) {
  if (n > UINT32_MAX / 2)
    return -EBADMSG;
  SCOPED char *text = memory_array(size_sum(size_product(2, n), 1), 1);
  u32 bytes = 0;
  int error = 0;
  for (size_t i = 0; i < n && !error; i++) {
    u32 code = (u8)line[i];
    u32 digits = code != '\\' || i + 1 == n ? 0
                 : line[i + 1] == 'u'       ? 4
                 : line[i + 1] == 'U'       ? 8
                                            : 0;
    if (digits) {
      code = utf8_hex(line + i + 2, n - i - 2, digits);
      i += 1 + digits;
    }
    if (code > 0x10ffff)
      error = -EBADMSG;
    if (!error)
      bytes += (u32)utf8_write(code, text + bytes);
  }
  if (!error)
    value_make_text(b, VALUE_STR, text, bytes, out);
  return error;
}
