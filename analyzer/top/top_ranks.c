/* SPDX-License-Identifier: MIT
 *
 * The table of ranks.
 */
#include <math.h>
#include <stdio.h>

#include "base/rank_list.h"
#include "base/sorting.h"
#include "top/top_columns.def"
#include "top/top_page.h"

enum column {
#define C(id, ...) COLUMN_##id,
  TSCOPE_TOP_COLUMNS(C)
#undef C
      COLUMNS
};

static const struct {
  const char *heading;
  unsigned columns, need;
  bool right;
} table[] = {
#define C(id, heading, columns, need, right, cell) {heading, columns, need, right},
    TSCOPE_TOP_COLUMNS(C)
#undef C
};

/* Those that are needed most, for as long as they fit. */
static void choose_columns(const struct live_view *view, unsigned width, bool shown[COLUMNS]) {
  unsigned used = 0;
  memset(shown, 0, COLUMNS * sizeof(*shown));
  for (unsigned need = 0; need < COLUMNS; need++)
    for (unsigned c = 0; c < COLUMNS; c++) {
      if (table[c].need != need || used + table[c].columns + 1 > width)
        continue;
      if (c == COLUMN_host && view->n_hosts < 2)
        continue;
      shown[c] = true;
      used += table[c].columns + 1;
    }
}

const char *top_format_known(double value, struct quantity (*format)(double),
                             struct quantity *room) {
  if (isnan(value))
    return "-";
  *room = format(value);
  return room->text;
}

struct quantity top_format_lateness(double seconds) {
  struct quantity text;
  if (isnan(seconds))
    strcpy(text.text, "-");
  else if (fabs(seconds) < 50e-6)
    strcpy(text.text, "0 ms");
  else
    snprintf(text.text, sizeof(text.text), "%c%.40s", seconds < 0 ? '-' : '+',
             duration_s(fabs(seconds)).text);
  return text;
}

const char *top_describe_activity(const struct live_rank *rank, double threshold_s, char *room,
                                  size_t bytes, enum style *style) {
  *style = STYLE_PLAIN;
  if (rank->state == LIVE_ENDED) {
    *style = STYLE_DIM;
    return "ended";
  }
  if (rank->state == LIVE_SILENT || rank->state == LIVE_STOPPED) {
    *style = STYLE_CRITICAL;
    snprintf(room, bytes, "%s %s", live_state_name(rank->state), duration_s(rank->silent_s).text);
    return room;
  }
  if (live_is_in_trouble(rank)) {
    *style = STYLE_CRITICAL;
    return live_state_name(rank->state);
  }
  if (rank->n_waits_for) {
    *style = STYLE_WARNING;
    if (rank->waits_for >= 0)
      snprintf(room, bytes, "waits for rank %d", rank->waits_for);
    else
      snprintf(room, bytes, "waits for %u ranks", rank->n_waits_for);
    return room;
  }
  if (rank->phase && strcmp(rank->phase, "") != 0) {
    if (rank->phase_s >= threshold_s) {
      snprintf(room, bytes, "%.20s %s", rank->phase, duration_s(rank->phase_s).text);
      return room;
    }
    return rank->phase;
  }
  if (rank->in_wait_s >= 0)
    return "waits";
  if (rank->in_call)
    return "in call";
  if (rank->quiet_s >= threshold_s) {
    *style = STYLE_NOTE;
    snprintf(room, bytes, "quiet %s", duration_s(rank->quiet_s).text);
    return room;
  }
  return "-";
}

static struct top_cell words(const char *text) {
  return (struct top_cell){.text = text, .style = STYLE_PLAIN, .value = NAN};
}

static struct top_cell quantity(double value, struct quantity format(double), enum style style,
                                char room[TOP_CELL_BYTES]) {
  struct quantity text;
  snprintf(room, TOP_CELL_BYTES, "%s", top_format_known(value, format, &text));
  return (struct top_cell){room, style, value};
}

const char *top_step_text(const struct live_steps *steps, char room[TOP_CELL_BYTES]) {
  snprintf(room, TOP_CELL_BYTES, "%s%llu", steps->counted ? "" : "~",
           (unsigned long long)steps->count);
  return room;
}

static struct top_cell step_cell(const struct live_rank *rank, char room[TOP_CELL_BYTES]) {
  if (!rank->steps.method)
    return words("-");
  return (struct top_cell){top_step_text(&rank->steps, room), STYLE_PLAIN,
                           (double)rank->steps.count};
}

static struct top_cell doing_cell(const struct live_view *view, const struct live_rank *rank,
                                  char room[TOP_CELL_BYTES]) {
  struct top_cell cell = words(NULL);
  cell.text = top_describe_activity(rank, view->threshold_s, room, TOP_CELL_BYTES, &cell.style);
  return cell;
}

static struct top_cell call_cell(const struct live_rank *rank, char room[TOP_CELL_BYTES]) {
  if (rank->op)
    snprintf(room, TOP_CELL_BYTES, "%.60s %u", rank->op, rank->process->last.seq);
  return words(rank->op ? room : "-");
}

static struct top_cell rank_cell(const struct live_rank *rank, char room[TOP_CELL_BYTES]) {
  snprintf(room, TOP_CELL_BYTES, "%u", rank->rank);
  return (struct top_cell){room, STYLE_PLAIN, rank->rank};
}

static enum style warning_if(bool worth_it) {
  return worth_it ? STYLE_WARNING : STYLE_PLAIN;
}

struct top_cell top_find_cell(const struct live_view *view, const struct live_rank *rank,
                              unsigned column, char room[TOP_CELL_BYTES]) {
  switch ((enum column)column) {
#define C(id, heading, columns, need, right, cell)                                                 \
  case COLUMN_##id:                                                                                \
    return cell;
    TSCOPE_TOP_COLUMNS(C)
#undef C
  case COLUMNS:
    break;
  }
  return words("");
}

unsigned top_columns(void) {
  return COLUMNS;
}

const char *top_column_heading(unsigned column) {
  return table[column].heading;
}

bool top_column_is_number(unsigned column) {
  return table[column].right;
}

static void put_cell(enum column column, struct top_cell cell, struct pen *pen) {
  if (table[column].right)
    pen_right(pen, cell.style, cell.text, table[column].columns);
  else
    pen_left(pen, cell.style, cell.text, table[column].columns);
  pen_blank(pen, 1);
}

/* What ranks are sorted by, the largest first: a number of each, or its negative. */
static const struct {
  const char *name;
  size_t offset; /* of a double in struct live_rank; 0: see key_of() */
  int sign;
  enum column column; /* of its heading */
} sorts[TOP_SORTS] = {
#define OF(member) offsetof(struct live_rank, member)
    [TOP_SORT_AUTO] = {"auto", 0, 0, COLUMNS},
    [TOP_SORT_RANK] = {"rank", 0, 0, COLUMN_rank},
    [TOP_SORT_TROUBLE] = {"trouble", 0, 0, COLUMNS},
    [TOP_SORT_LATE] = {"late", OF(late_s), 1, COLUMN_late},
    [TOP_SORT_STEP] = {"step", OF(step_s), 1, COLUMN_step_time},
    [TOP_SORT_GPU] = {"gpu", OF(gpu), -1, COLUMN_gpu}, /* the idle first */
    [TOP_SORT_MEMORY] = {"memory", OF(memory), 1, COLUMN_memory},
    [TOP_SORT_QUIET] = {"quiet", OF(quiet_s), 1, COLUMNS},
#undef OF
};

const char *top_sort_name(enum top_sort sort) {
  return sorts[sort].name;
}

struct ordered {
  double key; /* the largest first */
  u32 index;
};

/* Ranks that should be examined first: not alive, missing, waiting, late. */
static double trouble_of(const struct live_view *view, const struct live_rank *rank) {
  u32 index = (u32)(rank - view->ranks);
  if (live_is_in_trouble(rank))
    return 4e9;
  if (ANY(view->waits, view->n_waits, one, ranks_have(one->absent, one->n_absent, index)))
    return 3e9;
  return isnan(rank->late_s) ? -1e6 : rank->late_s;
}

static double key_of(const struct live_view *view, const struct live_rank *rank,
                     enum top_sort sort) {
  if (sort == TOP_SORT_TROUBLE)
    return trouble_of(view, rank);
  if (!sorts[sort].offset)
    return 0;
  double key = sorts[sort].sign * *(const double *)((const char *)rank + sorts[sort].offset);
  return isnan(key) ? -INFINITY : key;
}

ORDER_BY(largest_first, struct ordered, DOWN(key) UP(index))

enum top_sort top_sort_for(const struct live_view *view, enum top_sort sort, u32 rows) {
  return sort != TOP_SORT_AUTO ? sort : rows < view->n_ranks ? TOP_SORT_TROUBLE : TOP_SORT_RANK;
}

u32 *top_order(struct live_view *view, enum top_sort sort) {
  struct ordered *order = arena_array(&view->arena, view->n_ranks, sizeof(*order));
  u32 *indices = arena_array(&view->arena, view->n_ranks, sizeof(*indices));
  for (u32 i = 0; i < view->n_ranks; i++)
    order[i] = (struct ordered){key_of(view, &view->ranks[i], sort), i};
  SORT(order, view->n_ranks, largest_first);
  for (u32 i = 0; i < view->n_ranks; i++)
    indices[i] = order[i].index;
  return indices;
}

static void put_headings(const bool shown[COLUMNS], enum top_sort sort, struct pen *pen) {
  for (unsigned c = 0; c < COLUMNS; c++) {
    if (!shown[c])
      continue;
    put_cell(
        c,
        (struct top_cell){table[c].heading, sorts[sort].column == c ? STYLE_BOLD : STYLE_DIM, NAN},
        pen);
  }
  pen_newline(pen);
}

u32 top_place_of_chosen(const struct top_page *page, const struct live_view *view,
                        const u32 *order) {
  return INDEX_OF(order, view->n_ranks, one,
                  view->ranks[*one].rank == page->chosen && page->chosen != TSCOPE_UNKNOWN_RANK);
}

/* Scrolls so that the marked rank is shown. */
static void scroll(struct top_page *page, const struct live_view *view, const u32 *order,
                   unsigned rows) {
  if (page->first + rows > view->n_ranks)
    page->first = view->n_ranks > rows ? view->n_ranks - rows : 0;
  u32 at = top_place_of_chosen(page, view, order);
  if (at == INDEX_NONE)
    return;
  page->first = MIN(at, page->first);
  if (at >= page->first + rows)
    page->first = at - rows + 1;
}

void top_ranks(struct top_page *page, struct live_view *view, struct pen *pen, unsigned lines) {
  bool shown[COLUMNS];
  unsigned rows = view->n_ranks;
  if (lines && rows + 1 > lines)
    rows = lines > 2 ? lines - 2 : 1;
  enum top_sort sort = page->shown = top_sort_for(view, page->sort, rows);
  u32 *order = top_order(view, sort);
  choose_columns(view, pen->width - 2, shown);
  scroll(page, view, order, rows);
  pen_blank(pen, 2);
  put_headings(shown, sort, pen);
  for (u32 i = page->first; i < view->n_ranks && i < page->first + rows; i++) {
    const struct live_rank *rank = &view->ranks[order[i]];
    bool marked = page->watched && rank->rank == page->chosen;
    pen_put(pen, STYLE_BOLD, marked ? ">" : "");
    pen_to(pen, 2);
    for (unsigned c = 0; c < COLUMNS; c++) {
      char room[TOP_CELL_BYTES];
      if (shown[c])
        put_cell(c, top_find_cell(view, rank, c, room), pen);
    }
    pen_newline(pen);
  }
  if (rows < view->n_ranks) {
    pen_end_line(pen, STYLE_DIM, "  %u to %u of %u ranks, by %s", page->first + 1,
                 page->first + rows, view->n_ranks, top_sort_name(sort));
  }
}
