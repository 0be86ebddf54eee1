/* SPDX-License-Identifier: MIT
 *
 * Tables whose columns are data. A row is any struct, mostly one of the results as it is; a column
 * says which member it shows, of type double or const char *, and how. Columns that do not fit in
 * the window are left out, the highest `drop` first. All times share one unit, named in the titles.
 * A column without known values is left out.
 */
#pragma once

#include <stddef.h>

#include "report/text/pen.h"

enum column_kind {
  COLUMN_TEXT,        /* const char *, NULL prints as nothing */
  COLUMN_COUNT,       /* double */
  COLUMN_MS,          /* double, milliseconds; one unit for all of a table */
  COLUMN_DURATION,    /* double, milliseconds, each with its own unit */
  COLUMN_BYTES,       /* double */
  COLUMN_MEMORY,      /* double, bytes of a device's memory */
  COLUMN_BANDWIDTH,   /* double, 1e9 bytes/s */
  COLUMN_SHARE,       /* double, fraction */
  COLUMN_CHANGE,      /* double, fraction, with its sign */
  COLUMN_PROBABILITY, /* double */
  COLUMN_DECIMAL,     /* double, one decimal */
  COLUMN_TIMES,       /* double, "1.25x" */
  COLUMN_BAR,         /* double, fraction of the bar */
};

struct column {
  const char *title;
  enum column_kind kind;
  size_t offset;
  unsigned drop;   /* 0: never left out */
  unsigned shrink; /* text: may be cut to so many columns; bar: its least width. 0: neither */
};

struct table {
  const struct column *columns;
  unsigned n_columns;
  size_t row_bytes;
  enum style bars;     /* of all bars; STYLE_PLAIN: the row's own */
  size_t style_offset; /* of the row's own enum style; 0: it has none */
  bool plain_text;     /* that style is for the row's bar alone */
};

/* A table of such rows, with values for other members of the struct behind the columns. */
#define TABLE(row, columns, ...)                                                                   \
  ((const struct table){(columns), LENGTH_OF(columns), sizeof(row), __VA_ARGS__})

/* Writes titles and rows in lines of their own, if there are any rows. What is written below begins
 * at the same column. */
void table_print(struct pen *pen, const struct table *table, const void *rows, unsigned n_rows);

/* Names of a table's rows that can be told apart, although a column shows only their beginning. */
enum { DISTINCT_NAME_BYTES = 256 };
struct row_name {
  const char *shortened, *whole;
  char text[DISTINCT_NAME_BYTES]; /* set: what to show */
};

/* If another short name begins in the same way, the part in which the two differ comes first; if
 * they are equal, the part in which the whole names do. Rows that still look alike are numbered. */
void make_names_distinct(const struct pen *pen, struct row_name *names, u32 n);
