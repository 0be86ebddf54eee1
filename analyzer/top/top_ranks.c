/* SPDX-License-Identifier: MIT
 *
 * The table of ranks.
 */
#include <math.h>
#include <stdio.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "top/top_columns.def"
#include "top/top_page.h"

enum column {
#define C(id, heading, columns, need, right) COLUMN_##id,
  TSCOPE_TOP_COLUMNS(C)
#undef C
      COLUMNS
};

static const struct {
  const char *heading;
  unsigned columns, need;
  bool right;
} table[] = {
#define C(id, heading, columns, need, right) {heading, columns, need, right},
    TSCOPE_TOP_COLUMNS(C)
#undef C
};

/* Those that are needed most, for as long as they fit. */
static unsigned choose_columns(const struct live_view *view, unsigned width, bool shown[COLUMNS]) {
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
  return used;
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
  if (rank->state != LIVE_RUNNING && rank->state != LIVE_UNCERTAIN) {
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

/* What the cell says, and what ranks are sorted by in it; NAN where it is no number or not known.
 */
struct top_cell top_find_cell(const struct live_view *view, const struct live_rank *rank,
                              unsigned column, char room[TOP_CELL_BYTES]) {
  struct top_cell cell = {.text = room, .style = STYLE_PLAIN, .value = NAN};
  struct quantity quantity;
  *room = 0;
#define QUANTITY(of, format) (cell.value = (of), top_format_known(cell.value, format, &quantity))
  switch ((enum column)column) {
  case COLUMN_rank:
    cell.value = rank->rank;
    if (rank->rank == TSCOPE_UNKNOWN_RANK)
      cell.text = "-";
    else
      snprintf(room, TOP_CELL_BYTES, "%u", rank->rank);
    break;
  case COLUMN_host:
    cell.text = view->hosts[rank->host].name;
    break;
  case COLUMN_doing:
    cell.text = top_describe_activity(rank, view->threshold_s, room, TOP_CELL_BYTES, &cell.style);
    break;
  case COLUMN_step:
    if (!rank->steps.method) {
      cell.text = "-";
      break;
    }
    cell.value = (double)rank->steps.count;
    snprintf(room, TOP_CELL_BYTES, "%s%llu", rank->steps.counted ? "" : "~",
             (unsigned long long)rank->steps.count);
    break;
  case COLUMN_step_time:
    snprintf(room, TOP_CELL_BYTES, "%s", QUANTITY(rank->step_s, duration_s));
    if (rank->step_s > 1.5 * rank->usual_s)
      cell.style = STYLE_WARNING;
    break;
  case COLUMN_late:
    cell.value = rank->late_s;
    snprintf(room, TOP_CELL_BYTES, "%s", top_format_lateness(rank->late_s).text);
    if (rank->late_s > 0.05 * view->step_s)
      cell.style = STYLE_WARNING;
    break;
  case COLUMN_gpu:
    snprintf(room, TOP_CELL_BYTES, "%s", QUANTITY(rank->gpu, percent));
    break;
  case COLUMN_memory:
    snprintf(room, TOP_CELL_BYTES, "%s", QUANTITY(rank->memory, memory_size));
    break;
  case COLUMN_peak:
    snprintf(room, TOP_CELL_BYTES, "%s", QUANTITY(rank->peak, memory_size));
    break;
  case COLUMN_call:
    if (!rank->op)
      cell.text = "-";
    else
      snprintf(room, TOP_CELL_BYTES, "%.60s #%u", rank->op, rank->process->last.seq);
    break;
  case COLUMN_ago:
    snprintf(room, TOP_CELL_BYTES, "%s", QUANTITY(rank->called_s, duration_s));
    break;
  case COLUMN_group:
    cell.text = rank->group ? rank->group : "-";
    break;
  case COLUMN_records:
    cell.value = (double)rank->process->records;
    snprintf(room, TOP_CELL_BYTES, "%s", count_of(cell.value).text);
    break;
  case COLUMN_lost:
    cell.value = (double)rank->lost;
    snprintf(room, TOP_CELL_BYTES, "%s", count_of(cell.value).text);
    cell.style = rank->lost ? STYLE_WARNING : STYLE_DIM;
    break;
  case COLUMNS:
    break;
  }
#undef QUANTITY
  return cell;
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

static void put_cell(const struct live_view *view, const struct live_rank *rank, enum column column,
                     struct pen *pen) {
  char room[TOP_CELL_BYTES];
  struct top_cell cell = top_find_cell(view, rank, column, room);
  if (table[column].right)
    pen_right(pen, cell.style, cell.text, table[column].columns);
  else
    pen_left(pen, cell.style, cell.text, table[column].columns);
  pen_blank(pen, 1);
}

/* --- Order --- */

const char *top_sort_name(enum top_sort sort) {
  static const char *const names[] = {"auto", "rank", "trouble", "late",
                                      "step", "gpu",  "memory",  "quiet"};
  return names[sort];
}

enum top_sort top_sort_find(const char *name) {
  for (int sort = TOP_SORT_RANK; sort < TOP_SORTS; sort++)
    if (strcmp(name, top_sort_name((enum top_sort)sort)) == 0)
      return (enum top_sort)sort;
  return TOP_SORT_AUTO;
}

struct ordered {
  double key; /* the largest first */
  u32 index;
};

/* Ranks that should be examined first: not alive, missing, waiting, late. */
static double trouble_of(const struct live_view *view, const struct live_rank *rank) {
  double missing = 0;
  u32 index = (u32)(rank - view->ranks);
  for (u32 w = 0; w < view->n_waits && missing == 0; w++)
    for (u32 i = 0; i < view->waits[w].n_absent; i++)
      if (view->waits[w].absent[i] == index)
        missing = 1;
  if (rank->state != LIVE_RUNNING && rank->state != LIVE_ENDED && rank->state != LIVE_UNCERTAIN)
    return 4e9;
  if (missing > 0)
    return 3e9;
  return isnan(rank->late_s) ? -1e6 : rank->late_s;
}

static double key_of(const struct live_view *view, const struct live_rank *rank,
                     enum top_sort sort) {
  double key = NAN;
  switch (sort) {
  case TOP_SORT_TROUBLE:
    return trouble_of(view, rank);
  case TOP_SORT_LATE:
    key = rank->late_s;
    break;
  case TOP_SORT_STEP:
    key = rank->step_s;
    break;
  case TOP_SORT_GPU:
    key = -rank->gpu; /* the idle first */
    break;
  case TOP_SORT_MEMORY:
    key = rank->memory;
    break;
  case TOP_SORT_QUIET:
    key = rank->quiet_s;
    break;
  default:
    return 0;
  }
  return isnan(key) ? -INFINITY : key;
}

ORDER_BY(largest_first, struct ordered, DOWN(key) UP(index))

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

/* --- The table --- */

static void put_headings(const bool shown[COLUMNS], enum top_sort sort, struct pen *pen) {
  static const enum column of_sort[TOP_SORTS] = {[TOP_SORT_RANK] = COLUMN_rank,
                                                 [TOP_SORT_LATE] = COLUMN_late,
                                                 [TOP_SORT_STEP] = COLUMN_step_time,
                                                 [TOP_SORT_GPU] = COLUMN_gpu,
                                                 [TOP_SORT_MEMORY] = COLUMN_memory};
  for (unsigned c = 0; c < COLUMNS; c++) {
    if (!shown[c])
      continue;
    enum style style =
        sort != TOP_SORT_AUTO && of_sort[sort] == c && (c != COLUMN_rank || sort == TOP_SORT_RANK)
            ? STYLE_BOLD
            : STYLE_DIM;
    if (table[c].right)
      pen_right(pen, style, table[c].heading, table[c].columns);
    else
      pen_left(pen, style, table[c].heading, table[c].columns);
    pen_blank(pen, 1);
  }
  pen_newline(pen);
}

/* Scrolls so that the marked rank is shown. */
static void scroll(struct top_page *page, const struct live_view *view, const u32 *order,
                   unsigned rows) {
  if (page->first + rows > view->n_ranks)
    page->first = view->n_ranks > rows ? view->n_ranks - rows : 0;
  for (u32 i = 0; i < view->n_ranks && page->chosen != TSCOPE_UNKNOWN_RANK; i++) {
    if (view->ranks[order[i]].rank != page->chosen)
      continue;
    if (i < page->first)
      page->first = i;
    if (i >= page->first + rows)
      page->first = i - rows + 1;
  }
}

void top_ranks(struct top_page *page, struct live_view *view, struct pen *pen, unsigned lines) {
  bool shown[COLUMNS];
  unsigned rows = view->n_ranks;
  enum top_sort sort = page->sort;
  if (lines && rows + 1 > lines)
    rows = lines > 2 ? lines - 2 : 1;
  if (sort == TOP_SORT_AUTO)
    sort = rows < view->n_ranks ? TOP_SORT_TROUBLE : TOP_SORT_RANK;
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
    for (unsigned c = 0; c < COLUMNS; c++)
      if (shown[c])
        put_cell(view, rank, (enum column)c, pen);
    pen_newline(pen);
  }
  if (rows < view->n_ranks) {
    pen_format(pen, STYLE_DIM, "  %u to %u of %u ranks, by %s", page->first + 1, page->first + rows,
               view->n_ranks, top_sort_name(sort));
    pen_newline(pen);
  }
}
