/* SPDX-License-Identifier: MIT */
#include "report/text/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/texts.h"
#include "report/text/meter.h"

enum { INDENT = 2, GAP = 2, BAR_MOST = 24, BAR_LEAST = 6 };

/* A column before it is written: its cells' text and width. */
struct ready {
  const struct column *column;
  char *title;
  char **cells;
  unsigned width;
  bool shown;
  bool middle; /* cut in the middle, so that no two rows look alike */
};

static const void *member(const struct table *table, const void *rows, unsigned row,
                          const struct column *column) {
  return (const char *)rows + row * table->row_bytes + column->offset;
}

static double number(const struct table *table, const void *rows, unsigned row,
                     const struct column *column) {
  double value;
  memcpy(&value, member(table, rows, row, column), sizeof(value));
  return value;
}

static const char *text(const struct table *table, const void *rows, unsigned row,
                        const struct column *column) {
  const char *value;
  memcpy(&value, member(table, rows, row, column), sizeof(value));
  return text_or_empty(value);
}

/* The largest of a column; NAN if none is known. */
static double largest(const struct table *table, const void *rows, unsigned n,
                      const struct column *column) {
  double most = NAN;
  for (unsigned i = 0; i < n; i++)
    most = fmax(most, fabs(number(table, rows, i, column)));
  return most;
}

/* One unit for all times of a table, so that they are easy to compare. */
struct time_unit {
  double ms;
  const char *name;
  int decimals;
};

static struct time_unit pick_unit(const struct table *table, const void *rows, unsigned n) {
  static const struct time_unit units[] = {{1e3, "s", 0}, {1, "ms", 0}, {1e-3, "µs", 0}};
  double most = NAN;
  FOR_EACH(table->columns, table->n_columns, column)
    if (column->kind == COLUMN_MS)
      most = fmax(most, largest(table, rows, n, column));
  return most >= 1e3 ? units[0] : most >= 0.1 || isnan(most) ? units[1] : units[2];
}

static int time_decimals(double most_ms, const struct time_unit *unit) {
  double most = most_ms / unit->ms;
  int decimals = most >= 999.5 ? 0 : most >= 99.95 ? 1 : most >= 0.995 ? 2 : 3;
  return decimals + (unit->ms > 1 && decimals < 3); /* a second is much */
}

static struct quantity time_cell(double ms, const struct time_unit *unit) {
  struct quantity quantity = decimal(ms / unit->ms, unit->decimals);
  double least = 0.5 * pow(10, -unit->decimals);
  if (ms > 0 && ms / unit->ms < least) /* not nothing */
    snprintf(quantity.text, sizeof(quantity.text), "<%.*f", unit->decimals, 2 * least);
  return quantity;
}

static struct quantity cell(enum column_kind kind, double value, const struct time_unit *unit) {
  switch (kind) {
  case COLUMN_COUNT:
    return count_of(value);
  case COLUMN_MS:
    return time_cell(value, unit);
  case COLUMN_DURATION:
    return duration_ms(value);
  case COLUMN_BYTES:
    return byte_size(value);
  case COLUMN_MEMORY:
    return memory_size(value);
  case COLUMN_BANDWIDTH:
    return bandwidth(value);
  case COLUMN_SHARE:
    return percent(value);
  case COLUMN_CHANGE:
    return signed_percent(value);
  case COLUMN_TIMES: {
    struct quantity times = decimal(value, 2);
    if (!isnan(value))
      strcat(times.text, "x");
    return times;
  }
  case COLUMN_PROBABILITY:
    return probability(value);
  default:
    return decimal(value, 1);
  }
}

static bool any_text(const struct table *table, const void *rows, unsigned n,
                     const struct column *column) {
  return ANY_NUMBER(0, n, i, *text(table, rows, i, column));
}

static void fill_cells(const struct pen *pen, const struct table *table, const void *rows,
                       unsigned n, struct time_unit unit, struct ready *ready) {
  const struct column *column = ready->column;
  if (column->kind == COLUMN_TEXT) {
    ready->shown = any_text(table, rows, n, column);
  } else {
    double most = largest(table, rows, n, column);
    ready->shown = !isnan(most);
    unit.decimals = time_decimals(most, &unit);
  }
  const char *suffix = column->kind == COLUMN_MS ? unit.name : "";
  ready->title = memory_printf("%s%s%s", column->title, *suffix ? " " : "", suffix);
  ready->width = pen_measure(pen, ready->title);
  ready->cells = memory_zeroed(size_sum(n, 1), sizeof(*ready->cells));
  if (column->kind == COLUMN_BAR) {
    unsigned least = column->shrink ? column->shrink : BAR_LEAST;
    ready->width = MAX(ready->width, least);
    return;
  }
  for (unsigned i = 0; i < n; i++) {
    ready->cells[i] =
        memory_text(column->kind == COLUMN_TEXT
                        ? text(table, rows, i, column)
                        : cell(column->kind, number(table, rows, i, column), &unit).text);
    unsigned width = pen_measure(pen, ready->cells[i]);
    ready->width = MAX(width, ready->width);
  }
}

static unsigned total_width(const struct ready *columns, unsigned n) {
  unsigned total = 0;
  FOR_EACH(columns, n, column)
    if (column->shown)
      total += column->width + (total ? GAP : 0);
  return total;
}

/* How much narrower a column may become. */
static unsigned shrinkable_width(const struct ready *one) {
  unsigned least = one->column->kind == COLUMN_TEXT ? one->column->shrink : 0;
  return one->shown && least && one->width > least ? one->width - least : 0;
}

/* Leaves out columns that would not fit however much the others are cut, then cuts, then gives the
 * rest to bars. */
static void fit_columns(struct ready *columns, unsigned n, unsigned room) {
  for (;;) {
    unsigned least = total_width(columns, n);
    struct ready *victim = NULL;
    FOR_EACH_CHANGED(columns, n, item) {
      const struct column *column = item->column;
      least -= shrinkable_width(item);
      if (item->shown && column->drop && (!victim || column->drop > victim->column->drop))
        victim = item;
    }
    if (least <= room || !victim)
      break;
    victim->shown = false;
  }
  FOR_EACH_CHANGED(columns, n, each) {
    unsigned total = total_width(columns, n), spare = shrinkable_width(each);
    if (total > room)
      each->width -= MIN(spare, total - room);
  }
  FOR_EACH_CHANGED(columns, n, one) {
    unsigned total = total_width(columns, n);
    if (one->shown && one->column->kind == COLUMN_BAR && total < room) {
      unsigned width = one->width + room - total;
      one->width = MIN(width, BAR_MOST);
    }
  }
}

/* Whether texts of a column would look the same if they were cut at their ends. */
static bool ends_differ(const struct pen *pen, const struct ready *one, unsigned n) {
  for (unsigned a = 0; a < n && one->column->kind == COLUMN_TEXT && one->shown; a++)
    FOR_EACH(one->cells, a, cell)
      if (pen_cut_alike(pen, one->cells[a], *cell, one->width))
        return true;
  return false;
}

static enum style row_style(const struct table *table, const void *rows, unsigned row) {
  enum style style = STYLE_PLAIN;
  if (table->style_offset)
    memcpy(&style, (const char *)rows + row * table->row_bytes + table->style_offset,
           sizeof(style));
  return style;
}

static void print_row(struct pen *pen, const struct table *table, const struct ready *columns,
                      const void *rows, int row) {
  pen_to(pen, INDENT);
  enum style own = row < 0 ? STYLE_DIM : row_style(table, rows, (unsigned)row);
  enum style bar = table->bars ? table->bars : own;
  enum style style = row >= 0 && table->plain_text ? STYLE_PLAIN : own;
  FOR_EACH(columns, table->n_columns, one) {
    if (!one->shown)
      continue;
    if (pen->column > INDENT)
      pen_blank(pen, GAP);
    if (row >= 0 && one->column->kind == COLUMN_BAR)
      meter_bar(pen, bar, number(table, rows, (unsigned)row, one->column), one->width);
    else if (row >= 0 && one->middle)
      pen_left_middle(pen, style, one->cells[row], one->width);
    else if (one->column->kind == COLUMN_TEXT || one->column->kind == COLUMN_BAR)
      pen_left(pen, style, row < 0 ? one->title : one->cells[row], one->width);
    else
      pen_right(pen, style, row < 0 ? one->title : one->cells[row], one->width);
  }
  pen_newline(pen);
}

void table_print(struct pen *pen, const struct table *table, const void *rows, unsigned n_rows) {
  if (!n_rows)
    return;
  if (pen->column)
    pen_newline(pen);
  pen_hang(pen, INDENT);
  SCOPED struct ready *columns = memory_zeroed(table->n_columns, sizeof(*columns));
  struct time_unit unit = pick_unit(table, rows, n_rows);
  for (unsigned i = 0; i < table->n_columns; i++) {
    columns[i].column = &table->columns[i];
    fill_cells(pen, table, rows, n_rows, unit, &columns[i]);
  }
  fit_columns(columns, table->n_columns, pen->width - INDENT);
  FOR_EACH_CHANGED(columns, table->n_columns, one)
    one->middle = ends_differ(pen, one, n_rows);
  for (int row = -1; row < (int)n_rows; row++)
    print_row(pen, table, columns, rows, row);

  FOR_EACH(columns, table->n_columns, column) {
    for (unsigned row = 0; column->cells && row < n_rows; row++)
      free(column->cells[row]);
    free(column->cells);
    free(column->title);
  }
}
