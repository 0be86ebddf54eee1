/* SPDX-License-Identifier: MIT
 *
 * Writes lines of styled text that are not wider than the window. Nothing in a trace can act on the
 * terminal, no line ends in spaces, and without colour the same characters are at the same
 * positions. Where UTF-8 cannot be shown, similar ASCII characters are written.
 */
#pragma once

#include "base/arena.h"
#include "report/report.h"

enum style {
  STYLE_PLAIN,
  STYLE_DIM,
  STYLE_BOLD,
  STYLE_GOOD,
  STYLE_NOTE,
  STYLE_WARNING,
  STYLE_CRITICAL,
  STYLE_COMPUTE, /* the colours for kinds of time, the same in every section */
  STYLE_WAIT,
  STYLE_TRANSFER,
  STYLE_MEMCPY,
};

struct pen {
  FILE *out;
  unsigned width;
  bool utf8, color, html;
  unsigned column;              /* where the next character goes */
  unsigned indent;              /* where further lines of what is written begin */
  unsigned blanks;              /* of which not written yet */
  enum style style;             /* that the terminal is in */
  const struct results *linked; /* places of these are links (place_link()); NULL: none */
  const struct report_view *view;
  struct arena scratch; /* for what a section shows, until it is written */
};

struct pen pen_begin(const struct report_view *view, FILE *out);

/* Columns that the text takes. */
unsigned pen_measure(const struct pen *pen, const char *text);

/* Writes text; what does not fit in the line is cut. */
void pen_put(struct pen *pen, enum style style, const char *text);
void pen_format(struct pen *pen, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What ends the line. */
#define pen_end_line(pen, style, ...) (pen_format(pen, style, __VA_ARGS__), pen_newline(pen))

/* Like pen_put(), in a field of so many columns; longer text ends in an ellipsis. */
void pen_left(struct pen *pen, enum style style, const char *text, unsigned columns);
void pen_right(struct pen *pen, enum style style, const char *text, unsigned columns);

/* The same, but longer text loses its middle: for texts that differ at their ends. */
void pen_left_middle(struct pen *pen, enum style style, const char *text, unsigned columns);

/* Whether two different texts would look the same in a field of so many columns (pen_left()). */
bool pen_cut_alike(const struct pen *pen, const char *a, const char *b, unsigned columns);

void pen_repeat(struct pen *pen, enum style style, const char *glyph, unsigned times);
void pen_blank(struct pen *pen, unsigned columns);
void pen_to(struct pen *pen, unsigned column);
void pen_newline(struct pen *pen);
/* Ends the style in the middle of a line. */
void pen_plain(struct pen *pen);

/* Ends the line, if anything stands in it. */
void pen_finish(struct pen *pen);

/* Goes to column `indent` of a line on which nothing is. What does not fit in it goes on there, or,
 * after pen_hang(), where that says. */
void pen_line(struct pen *pen, unsigned indent);
void pen_hang(struct pen *pen, unsigned indent);

/* Writes words from here on, broken at spaces. */
void pen_words(struct pen *pen, enum style style, const char *text);

/* Writes one of several items with a dot between them; one that does not fit in this line starts
 * the next one. */
void pen_item(struct pen *pen, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* place_link.c: how many bytes at the beginning of `text` are a place ("train.py:12") whose file is
 * on this machine, and its address, for a link of the terminal to the file that the report is short
 * for; 0 if they are none. An address holds only characters that are safe in a terminal. */
size_t place_link(const struct results *results, const char *text, size_t bytes, char *address,
                  size_t room);
