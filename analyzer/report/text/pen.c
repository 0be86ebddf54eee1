/* SPDX-License-Identifier: MIT */
#include "report/text/pen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/checked_memory.h"
#include "base/printable.h"
#include "base/utf8.h"

#define SEPARATOR " · "

static const struct {
  const char *escape, *class; /* of a terminal; of live.css */
} styles[] = {
    [STYLE_PLAIN] = {NULL, NULL},
    [STYLE_DIM] = {"\033[2m", "dim"},
    [STYLE_BOLD] = {"\033[1m", "bold"},
    [STYLE_GOOD] = {"\033[32m", "good"},
    [STYLE_NOTE] = {"\033[36m", "note"},
    [STYLE_WARNING] = {"\033[33m", "warning"},
    [STYLE_CRITICAL] = {"\033[1;31m", "critical"},
    [STYLE_COMPUTE] = {"\033[32m", "good"},
    [STYLE_WAIT] = {"\033[31m", "critical"},
    [STYLE_TRANSFER] = {"\033[33m", "warning"},
    [STYLE_MEMCPY] = {"\033[35m", "note"},
};

struct pen pen_begin(const struct report_view *view, FILE *out) {
  return (struct pen){.out = out, .view = view, SAME(view, width, utf8, color, html)};
}

/* One character as it will be shown: its bytes and columns. */
struct glyph {
  char bytes[8];
  unsigned columns;
};

static struct glyph replacement(const struct pen *pen) {
  struct glyph glyph = {.columns = 1};
  strcpy(glyph.bytes, pen->utf8 ? "\xef\xbf\xbd" : "?");
  return glyph;
}

static size_t next_glyph(const struct pen *pen, const char *text, struct glyph *glyph) {
  u32 code;
  size_t bytes = utf8_decode(text, &code);
  *glyph = (struct glyph){.columns = 1};
  if (code == '\n' || code == '\t') {
    glyph->bytes[0] = ' ';
  } else if (utf8_is_control(code)) {
    *glyph = replacement(pen);
  } else if (code < 0x80) {
    glyph->bytes[0] = (char)code;
  } else if (!pen->utf8) {
    const char *likeness = utf8_ascii_substitute(code);
    memcpy(glyph->bytes, likeness, strlen(likeness));
    glyph->columns = (unsigned)strlen(likeness);
  } else {
    int columns = wcwidth((wchar_t)code);
    if (columns < 0) {
      *glyph = replacement(pen);
    } else {
      utf8_write(code, glyph->bytes);
      glyph->columns = (unsigned)columns;
    }
  }
  return bytes;
}

/* Columns of the first `bytes` of the text. */
static unsigned measure_part(const struct pen *pen, const char *text, size_t bytes) {
  unsigned columns = 0;
  struct glyph glyph;
  for (const char *end = text + bytes; text < end; columns += glyph.columns)
    text += next_glyph(pen, text, &glyph);
  return columns;
}

unsigned pen_measure(const struct pen *pen, const char *text) {
  return measure_part(pen, text, strlen(text));
}

/* Blanks look the same in every style, so it changes only at the next character. */
static void set_style(struct pen *pen, enum style style) {
  if (!pen->color || style == pen->style)
    return;
  if (pen->style != STYLE_PLAIN)
    fputs(pen->html ? "</span>" : "\033[0m", pen->out);
  if (style != STYLE_PLAIN && pen->html)
    fprintf(pen->out, "<span class=\"%s\">", styles[style].class);
  else if (style != STYLE_PLAIN)
    fputs(styles[style].escape, pen->out);
  pen->style = style;
}

/* Begins a link where a place begins that fits; the bytes of the place, or 0. */
static size_t begin_link(struct pen *pen, const char *text, size_t bytes, unsigned columns) {
  char address[4096];
  size_t place = place_link(pen->linked, text, bytes, address, sizeof(address));
  if (!place || measure_part(pen, text, place) > columns)
    return 0;
  fprintf(pen->out, "\033]8;;%s\033\\", address);
  return place;
}

static void end_link(struct pen *pen) {
  fputs("\033]8;;\033\\", pen->out);
}

/* Writes up to `bytes` of text in at most `columns`. */
static void put_text(struct pen *pen, enum style style, const char *text, size_t bytes,
                     unsigned columns) {
  const char *end = text + bytes, *link_end = NULL;
  bool word = true; /* one begins here */
  unsigned room = pen->width > pen->column ? pen->width - pen->column : 0;
  columns = MIN(room, columns);
  if (text == end || columns == 0)
    return;
  for (; pen->blanks > 0; pen->blanks--)
    fputc(' ', pen->out);
  set_style(pen, style);
  while (text < end) {
    struct glyph glyph;
    size_t linked = pen->linked && word ? begin_link(pen, text, (size_t)(end - text), columns) : 0;
    link_end = linked ? text + linked : link_end;
    word = *text == ' ' || *text == '(';
    text += next_glyph(pen, text, &glyph);
    if (glyph.columns > columns)
      break;
    const char *escape = pen->html ? markup_escape(glyph.bytes[0]) : NULL;
    fputs(escape ? escape : glyph.bytes, pen->out);
    columns -= glyph.columns;
    pen->column += glyph.columns;
    if (text == link_end)
      end_link(pen);
  }
}

void pen_put(struct pen *pen, enum style style, const char *text) {
  put_text(pen, style, text, strlen(text), pen->width);
}

void pen_format(struct pen *pen, enum style style, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  SCOPED char *text = memory_vprintf(format, arguments);
  va_end(arguments);
  pen_put(pen, style, text);
}

static void put_cut(struct pen *pen, enum style style, const char *text, unsigned columns) {
  const char *ellipsis = "…";
  unsigned tail = pen_measure(pen, ellipsis);
  if (pen_measure(pen, text) <= columns || columns <= tail) {
    put_text(pen, style, text, strlen(text), columns);
    return;
  }
  put_text(pen, style, text, strlen(text), columns - tail);
  put_text(pen, style, ellipsis, strlen(ellipsis), tail);
}

/* The end of a text that takes at most so many columns. */
static const char *tail_of(const struct pen *pen, const char *text, unsigned columns) {
  unsigned left = pen_measure(pen, text);
  while (left > columns) {
    struct glyph glyph;
    text += next_glyph(pen, text, &glyph);
    left -= glyph.columns;
  }
  return text;
}

void pen_left_middle(struct pen *pen, enum style style, const char *text, unsigned columns) {
  unsigned end = pen->column + columns, dots = pen_measure(pen, "…"), tail = columns / 2;
  if (pen_measure(pen, text) <= columns || columns < 2 * dots + 2) {
    put_cut(pen, style, text, columns);
  } else {
    put_text(pen, style, text, strlen(text), columns - tail - dots);
    put_text(pen, style, "…", strlen("…"), dots);
    pen_put(pen, style, tail_of(pen, text, tail));
  }
  pen_to(pen, end);
}

bool pen_cut_alike(const struct pen *pen, const char *a, const char *b, unsigned columns) {
  unsigned dots = pen_measure(pen, "…"), taken = 0;
  if (pen_measure(pen, a) <= columns || pen_measure(pen, b) <= columns)
    return false;
  while (*a && taken + dots < columns) {
    struct glyph of_a, of_b;
    a += next_glyph(pen, a, &of_a);
    b += next_glyph(pen, b, &of_b);
    if (strcmp(of_a.bytes, of_b.bytes) != 0)
      return false;
    taken += of_a.columns;
  }
  return strcmp(a, b) != 0;
}

void pen_left(struct pen *pen, enum style style, const char *text, unsigned columns) {
  unsigned end = pen->column + columns;
  put_cut(pen, style, text, columns);
  pen_to(pen, end);
}

void pen_right(struct pen *pen, enum style style, const char *text, unsigned columns) {
  unsigned taken = pen_measure(pen, text);
  if (taken < columns)
    pen_blank(pen, columns - taken);
  put_cut(pen, style, text, columns);
}

void pen_repeat(struct pen *pen, enum style style, const char *glyph, unsigned times) {
  size_t bytes = strlen(glyph);
  SCOPED char *text = memory_array(size_sum(size_product(bytes, times), 1), 1);
  for (unsigned i = 0; i < times; i++)
    memcpy(text + i * bytes, glyph, bytes);
  put_text(pen, style, text, bytes * times, pen->width);
}

void pen_blank(struct pen *pen, unsigned columns) {
  pen->blanks += columns;
  pen->column += columns;
}

void pen_to(struct pen *pen, unsigned column) {
  if (column > pen->column)
    pen_blank(pen, column - pen->column);
}

void pen_plain(struct pen *pen) {
  set_style(pen, STYLE_PLAIN);
}

void pen_newline(struct pen *pen) {
  pen_plain(pen);
  fputc('\n', pen->out);
  pen->column = pen->blanks = 0;
}

/* What is written goes on in the next line. */
static void next_line(struct pen *pen) {
  pen_newline(pen);
  pen_to(pen, pen->indent);
}

void pen_hang(struct pen *pen, unsigned indent) {
  pen->indent = indent;
}

void pen_finish(struct pen *pen) {
  if (pen->column > pen->blanks)
    pen_newline(pen);
  pen->column = pen->blanks = 0;
}

void pen_line(struct pen *pen, unsigned indent) {
  pen_finish(pen);
  pen_hang(pen, indent);
  pen_to(pen, indent);
}

/* A word longer than a whole line is cut into lines. */
static void put_long_word(struct pen *pen, enum style style, const char *word, size_t bytes) {
  const char *end = word + bytes;
  while (word < end) {
    struct glyph glyph;
    size_t n = next_glyph(pen, word, &glyph);
    if (pen->column + glyph.columns > pen->width)
      next_line(pen);
    put_text(pen, style, word, n, pen->width);
    word += n;
  }
}

void pen_words(struct pen *pen, enum style style, const char *text) {
  static const char blank[] = " \t\n";
  bool first = true;
  for (text += strspn(text, blank); *text; text += strspn(text, blank)) {
    size_t bytes = strcspn(text, blank);
    unsigned columns = measure_part(pen, text, bytes);
    unsigned gap = first || pen->column <= pen->indent ? 0 : 1;
    if (pen->column > pen->indent && pen->column + gap + columns > pen->width) {
      next_line(pen);
      gap = 0;
    }
    pen_blank(pen, gap);
    if (pen->column + columns > pen->width)
      put_long_word(pen, style, text, bytes);
    else
      put_text(pen, style, text, bytes, pen->width);
    text += bytes;
    first = false;
  }
}

void pen_item(struct pen *pen, enum style style, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  SCOPED char *text = memory_vprintf(format, arguments);
  va_end(arguments);
  if (pen->column > pen->indent) {
    if (pen->column + pen_measure(pen, SEPARATOR) + pen_measure(pen, text) > pen->width)
      pen_newline(pen);
    else
      pen_put(pen, STYLE_DIM, SEPARATOR);
  }
  pen_to(pen, pen->indent);
  pen_words(pen, style, text);
}
