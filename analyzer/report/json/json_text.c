/* SPDX-License-Identifier: MIT
 *
 * The text is that of json_dump_callback(), which takes several times as long: most of a report is
 * numbers, and it leaves them to printf(). What is not plain is left to it here too.
 */
#include "report/json/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "format/tscope_format.h"

#define DIGITS 9
#define FLAGS (JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS))

struct writing {
  FILE *out;
  enum json_text kind;
  bool failed;
};

static void put(const struct writing *w, const char *text, size_t bytes) {
  fwrite_unlocked(text, 1, bytes, w->out);
}

static int put_part(const char *text, size_t bytes, void *writing) {
  const struct writing *w = writing;
  for (size_t i = 0; i < bytes; i++)
    if (text[i] == '<' && w->kind == JSON_TEXT_SCRIPT)
      put(w, "\\u003c", 6);
    else
      putc_unlocked(text[i], w->out);
  return 0;
}

static void put_by_jansson(struct writing *w, const json_t *value) {
  w->failed |= json_dump_callback(value, put_part, w, FLAGS) != 0;
}

/* Decimal digits of `n`, the last before `end`; where they begin. */
static char *digits_before(char *end, unsigned long long n) {
  do
    *--end = (char)('0' + n % 10);
  while (n /= 10);
  return end;
}

static void put_whole(const struct writing *w, json_int_t n) {
  char text[24], *end = text + sizeof(text), *begin;
  begin = digits_before(end, n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n);
  if (n < 0)
    *--begin = '-';
  put(w, begin, (size_t)(end - begin));
}

/* What "%.9g" writes, without the point: a whole number, so many places of which are behind it. 0
 * where it writes an exponent, or the result lies near the middle between two. A power of ten up to
 * 10^22 is exact in a double, so the product is rounded once, by less than 10^-6. */
static u32 nine_digits(double size, int *places) {
  static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};
  if (!(size >= 1e-4 && size < 1e8))
    return 0;
  *places = DIGITS - 1;
  while (size >= tens[DIGITS - *places])
    --*places;
  while (size * tens[*places] < 1e8)
    ++*places;
  double scaled = size * tens[*places], whole = floor(scaled);
  u32 nearest = (u32)(scaled + 0.5);
  return nearest == 1000000000 || fabs(scaled - whole - 0.5) < 1e-6 ? 0 : nearest;
}

static void put_real(struct writing *w, const json_t *real) {
  double value = json_real_value(real);
  int places;
  u32 n = nine_digits(fabs(value), &places);
  if (!n) {
    put_by_jansson(w, real);
    return;
  }
  for (; places > 1 && n % 10 == 0; places--)
    n /= 10;
  char text[24], *end = text + sizeof(text), *begin = end;
  for (; places; places--, n /= 10)
    *--begin = (char)('0' + n % 10);
  *--begin = '.';
  begin = digits_before(begin, n);
  if (value < 0)
    *--begin = '-';
  put(w, begin, (size_t)(end - begin));
}

/* What stands for itself. */
static bool is_plain(const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\' || text[i] == '<')
      return false;
  return true;
}

static void put_text(struct writing *w, const char *text, size_t bytes) {
  if (is_plain(text, bytes)) {
    putc_unlocked('"', w->out);
    put(w, text, bytes);
    putc_unlocked('"', w->out);
    return;
  }
  json_t *string = json_stringn(text, bytes);
  put_by_jansson(w, string);
  json_decref(string);
}

static void begin_line(const struct writing *w, unsigned depth) {
  if (w->kind == JSON_TEXT_SCRIPT)
    return;
  putc_unlocked('\n', w->out);
  for (unsigned i = 0; i < 2 * depth; i++)
    putc_unlocked(' ', w->out);
}

static void put_value(struct writing *w, json_t *value, unsigned depth);

static void put_list(struct writing *w, json_t *list, unsigned depth) {
  const json_t *first = json_array_get(list, 0);
  bool on_a_line = !first || json_is_number(first) || json_is_null(first);
  size_t index;
  json_t *value;
  putc_unlocked('[', w->out);
  json_array_foreach(list, index, value) {
    if (index)
      putc_unlocked(',', w->out);
    if (!on_a_line)
      begin_line(w, depth + 1);
    else if (index && w->kind == JSON_TEXT_LINES)
      putc_unlocked(' ', w->out);
    put_value(w, value, depth + 1);
  }
  if (!on_a_line)
    begin_line(w, depth);
  putc_unlocked(']', w->out);
}

static void put_object(struct writing *w, json_t *object, unsigned depth) {
  bool more = false;
  const char *key;
  json_t *value;
  putc_unlocked('{', w->out);
  json_object_foreach(object, key, value) {
    if (more)
      putc_unlocked(',', w->out);
    begin_line(w, depth + 1);
    put_text(w, key, strlen(key));
    putc_unlocked(':', w->out);
    if (w->kind == JSON_TEXT_LINES)
      putc_unlocked(' ', w->out);
    put_value(w, value, depth + 1);
    more = true;
  }
  if (more)
    begin_line(w, depth);
  putc_unlocked('}', w->out);
}

static void put_value(struct writing *w, json_t *value, unsigned depth) {
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    put_object(w, value, depth);
    break;
  case JSON_ARRAY:
    put_list(w, value, depth);
    break;
  case JSON_STRING:
    put_text(w, json_string_value(value), json_string_length(value));
    break;
  case JSON_INTEGER:
    put_whole(w, json_integer_value(value));
    break;
  case JSON_REAL:
    put_real(w, value);
    break;
  default:
    put_by_jansson(w, value);
  }
}

int json_text_write(json_t *document, enum json_text kind, FILE *out) {
  struct writing w = {.out = out, .kind = kind};
  if (document)
    put_value(&w, document, 0);
  return document && !w.failed ? 0 : -EILSEQ;
}
