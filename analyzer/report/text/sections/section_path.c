/* SPDX-License-Identifier: MIT
 *
 * The critical path across ranks: what the step time consists of, and what it would be if something
 * changed.
 */

#include "base/sorting.h"
#include "report/text/section.h"
#include "report/text/table.h"

enum { RANKS_SHOWN = 5, NAMES_SHOWN = 5 };

struct path_row {
  const char *name;
  double ms, share;
};

ORDER_BY(longest_first, struct path_row, DOWN(ms))

static void put_categories(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"on the path", COLUMN_TEXT, offsetof(struct path_row, name), 0, 0},
      {"time", COLUMN_MS, offsetof(struct path_row, ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct path_row, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct path_row, share), 0, 10},
  };
  struct path_row *rows = arena_array(&pen->scratch, results->n_path_by_category, sizeof(*rows));
  const struct share *of = results->path_by_category;
  u32 n = LIST_WHERE(rows, 0, results->n_path_by_category, i, of[i].ms > 0,
                     ((struct path_row){of[i].name, of[i].ms, of[i].ms / results->path_length_ms}));
  SORT(rows, n, longest_first);
  table_print(pen, &TABLE(struct path_row, columns, .bars = STYLE_NOTE), rows, n);
}

struct path_rank {
  u32 rank;
  double ms;
};

ORDER_BY(most_first, struct path_rank, DOWN(ms) UP(rank))

static void put_ranks(struct pen *pen, const struct results *results) {
  struct path_rank *ranks = arena_array(&pen->scratch, results->n_ranks, sizeof(*ranks));
  double rest = 0;
  if (!results->path_by_rank || results->n_ranks < 2)
    return;
  u32 n = LIST_WHERE(ranks, 0, results->n_ranks, i, results->path_by_rank[i] > 0,
                     ((struct path_rank){results->ranks[i].rank, results->path_by_rank[i]}));
  SORT(ranks, n, most_first);
  u32 shown = section_rows(pen, n, RANKS_SHOWN);
  section_label(pen, "by rank");
  for (u32 i = 0; i < n; i++) {
    if (i < shown)
      pen_item(pen, STYLE_PLAIN, "rank %u %s", ranks[i].rank,
               percent(ranks[i].ms / results->path_length_ms).text);
    else
      rest += ranks[i].ms;
  }
  if (n > shown)
    pen_item(pen, STYLE_PLAIN, "%s more %s", count_of(n - shown).text,
             percent(rest / results->path_length_ms).text);
}

struct name_row {
  struct path_name_result of;
  const char *name;
  double share;
};

/* The work that takes most of the path. */
static void put_names(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"most of it", COLUMN_TEXT, offsetof(struct name_row, name), 0, 24},
      {"is", COLUMN_TEXT, offsetof(struct name_row, of.category), 1, 8},
      {"time", COLUMN_MS, offsetof(struct name_row, of.ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct name_row, share), 0, 0},
  };
  u32 n = section_rows(pen, results->n_path_by_name, NAMES_SHOWN);
  struct name_row *rows = arena_array(&pen->scratch, n, sizeof(*rows));
  struct row_name *names = arena_array(&pen->scratch, n, sizeof(*names));
  for (u32 i = 0; i < n; i++) {
    const struct path_name_result *one = &results->path_by_name[i];
    names[i] = (struct row_name){.shortened = one->shortened, .whole = one->name};
    rows[i] = (struct name_row){*one, names[i].text, one->ms / results->path_length_ms};
  }
  make_names_distinct(pen, names, n);
  table_print(pen, &TABLE(struct name_row, columns), rows, n);
}

static void put_what_ifs(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"what if", COLUMN_TEXT, offsetof(struct what_if, change), 0, 16},
      {"step", COLUMN_MS, offsetof(struct what_if, step_ms), 0, 0},
      {"saves", COLUMN_SHARE, offsetof(struct what_if, saving_fraction), 0, 0},
      {"", COLUMN_BAR, offsetof(struct what_if, saving_fraction), 1, 8},
  };
  table_print(pen, &TABLE(struct what_if, columns, .bars = STYLE_GOOD), results->what_if,
              results->n_what_if);
  if (results->what_if_reason) {
    pen_line(pen, TEXT_INDENT);
    pen_put(pen, STYLE_WARNING,
            results->n_what_if ? "do not rely on these: " : "what if: unknown: ");
    pen_words(pen, STYLE_PLAIN, results->what_if_reason);
  }
}

/* What a step saves if one thing takes less of its time. */
static void put_pays(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"what pays: of its time", COLUMN_TEXT, offsetof(struct paying, name), 0, 24},
      {"is", COLUMN_TEXT, offsetof(struct paying, kind), 1, 8},
      {"90 %", COLUMN_SHARE, offsetof(struct paying, saves_at_90), 1, 0},
      {"50 %", COLUMN_SHARE, offsetof(struct paying, saves_at_50), 0, 0},
      {"none", COLUMN_SHARE, offsetof(struct paying, saves_at_0), 0, 0},
      {"", COLUMN_BAR, offsetof(struct paying, saves_at_0), 1, 8},
  };
  u32 n = results->n_pays ? (u32)results->pays_shown : 0;
  struct paying *rows = arena_elements(&pen->scratch, results->pays, n, sizeof(*rows));
  struct row_name *names = arena_array(&pen->scratch, n, sizeof(*names));
  for (u32 i = 0; i < n; i++) {
    names[i] = (struct row_name){.shortened = rows[i].shortened, .whole = rows[i].name};
    rows[i].name = names[i].text;
  }
  make_names_distinct(pen, names, n);
  table_print(pen, &TABLE(struct paying, columns, .bars = STYLE_GOOD), rows, n);
  FOR_EACH(results->pays, results->n_pays, one)
    if (one->why)
      section_line(pen, STYLE_PLAIN, "%s: %s", one->shortened, one->why);
}

void body_path(struct pen *pen, const struct results *results) {
  put_categories(pen, results);
  put_ranks(pen, results);
  put_names(pen, results);
  put_what_ifs(pen, results);
  put_pays(pen, results);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_path, results);
}
