/* SPDX-License-Identifier: MIT
 *
 * A page of text about a running job: no line is wider than requested, and an unknown value is a
 * dash.
 */
#pragma once

#include "base/quantity.h"
#include "live/live_view.h"
#include "report/report.h"
#include "report/text/pen.h"

/* How the ranks are sorted, as --sort has them (top_options.def). AUTO: by rank if all fit, else by
 * trouble. */
enum top_sort {
  TOP_SORT_AUTO,
  TOP_SORT_RANK,
  TOP_SORT_TROUBLE,
  TOP_SORT_LATE,
  TOP_SORT_STEP,
  TOP_SORT_GPU,
  TOP_SORT_MEMORY,
  TOP_SORT_QUIET,
  TOP_SORTS,
};

/* Of a line of step times: the usual step is half as high as there is room, or so. */
#define SPARK_HEIGHT 2.5

struct top_page {
  struct report_view display;
  unsigned height; /* lines; 0: as many as it takes */
  enum top_sort sort;
  enum top_sort shown; /* in which the ranks were last shown; TOP_SORT_AUTO: they were not */
  u32 chosen;          /* rank that is marked or shown, TSCOPE_UNKNOWN_RANK for none */
  u32 first;           /* of the ranks in order that is shown; kept so that the marked one is */
  bool one;            /* the page of the marked rank alone */
  bool stacks;         /* the page of the stacks of ranks that stall */
  unsigned first_line; /* of these that is shown; kept so that the page is full */
  bool keys;           /* the page of explanations */
  bool frozen;         /* the job goes on, the page does not */
  double frozen_s;
  const char *waiting; /* why there is nothing to show yet; NULL: there is something */
  bool watched;        /* in a terminal that reads keys */
};

const char *top_sort_name(enum top_sort sort);

/* What TOP_SORT_AUTO is where so many ranks have a row: by rank if all of them do. */
enum top_sort top_sort_for(const struct live_view *view, enum top_sort sort, u32 rows);

/* The ranks in the order of the page, as indices. In the view's arena. */
u32 *top_order(struct live_view *view, enum top_sort sort);

/* Where the chosen rank is in it; INDEX_NONE: there is none. */
u32 top_place_of_chosen(const struct top_page *page, const struct live_view *view,
                        const u32 *order);

/* Writes the page. `view` is NULL while there is none. */
void top_page_write(struct top_page *page, struct live_view *view, FILE *out);

/* top_head.c: what is above the table, at most so many things that are wrong; top_ranks.c: the
 * table; top_one.c: one rank; top_stacks.c: stacks in so many lines, 0: as many as it takes. */
void top_head(const struct top_page *page, struct live_view *view, struct pen *pen);
void top_alerts(struct live_view *view, struct pen *pen, unsigned most);
void top_ranks(struct top_page *page, struct live_view *view, struct pen *pen, unsigned lines);
void top_one(const struct top_page *page, struct live_view *view, struct pen *pen);
void top_stacks(struct top_page *page, struct live_view *view, struct pen *pen, unsigned lines);

/* The table's columns, from 0 (top_columns.def), and what one says of a rank. */
enum { TOP_CELL_BYTES = 96 };
struct top_cell {
  const char *text; /* in `room`, or of the view */
  enum style style;
  double value; /* to sort by; NAN: no number, or not known */
};
unsigned top_columns(void);
const char *top_column_heading(unsigned column);
bool top_column_is_number(unsigned column);
struct top_cell top_find_cell(const struct live_view *view, const struct live_rank *rank,
                              unsigned column, char room[TOP_CELL_BYTES]);

/* The number of a step; "~102" where it is only known about. */
const char *top_step_text(const struct live_steps *steps, char room[TOP_CELL_BYTES]);

/* A quantity, or "-" where it is not known. */
const char *top_format_known(double value, struct quantity (*format)(double),
                             struct quantity *room);
struct quantity top_format_lateness(double seconds); /* with its sign; noise is 0 */
const char *top_describe_activity(const struct live_rank *rank, double threshold_s, char *room,
                                  size_t bytes, enum style *style);
void top_sparkline(struct pen *pen, const struct live_steps *steps, unsigned columns);
