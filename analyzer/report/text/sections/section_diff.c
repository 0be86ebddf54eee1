/* SPDX-License-Identifier: MIT
 *
 * Runs compared with each other: what `tscope-report diff` shows, section by section.
 */
#include <math.h>

#include "base/sorting.h"
#include "base/texts.h"
#include "diff/diff_result.h"
#include "report/text/section.h"
#include "report/text/table.h"

enum { INDENT = 4, ROWS_SHOWN = 12 };

struct figure_row {
  const char *section, *name, *verdict;
  double before, after, change;
};

/* What only one run has comes last. */
static double growth(const struct figure_row *row) {
  double by = fabs(row->after - row->before);
  return isnan(by) ? -1 : by;
}

ORDER_BY(by_growth, struct figure_row, DOWN_OF(growth))

/* The figures with the same unit that changed most. */
static void put_figures(struct pen *pen, const struct results *results, enum diff_unit unit,
                        const struct table *table) {
  const struct diff_result *diff = results->diff;
  struct figure_row *rows = arena_array(&pen->scratch, diff->n_rows, sizeof(*rows));
  u32 n = 0;
  FOR_EACH(diff->rows, diff->n_rows, row) {
    if (row->unit != unit || row->section == DIFF_OF_KERNELS)
      continue; /* kernels have a table of their own */
    /* that noise explains a change does not make the values equal */
    const char *verdict = row->verdict == FIGURE_IS_SAME    ? "no"
                          : row->verdict == FIGURE_UNJUDGED ? ""
                                                            : diff_verdict_words[row->verdict];
    rows[n++] = (struct figure_row){
        diff_section_words[row->section], row->name, verdict, row->before, row->after, row->change};
  }
  SORT(rows, n, by_growth);
  u32 shown = section_rows(pen, n, ROWS_SHOWN);
  table_print(pen, table, rows, shown);
  section_in_all(pen, TEXT_INDENT, shown, n, n, "figure");
  if (n > shown)
    pen_newline(pen);
}

#define FIGURE_COLUMNS(kind)                                                                       \
  {"of", COLUMN_TEXT, offsetof(struct figure_row, section), 0, 8},                                 \
      {"figure", COLUMN_TEXT, offsetof(struct figure_row, name), 0, 12},                           \
      {"before", kind, offsetof(struct figure_row, before), 0, 0},                                 \
      {"after", kind, offsetof(struct figure_row, after), 0, 0},                                   \
      {"change", COLUMN_CHANGE, offsetof(struct figure_row, change), 0, 0},                        \
      {"beyond noise", COLUMN_TEXT, offsetof(struct figure_row, verdict), 1, 0},

void body_diff_times(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {FIGURE_COLUMNS(COLUMN_MS)};
  put_figures(pen, results, UNIT_MS, &TABLE(struct figure_row, columns));
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_diff_times, results);
  pen_item(pen, STYLE_DIM, "largest change first");
}

void body_diff_memory(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {FIGURE_COLUMNS(COLUMN_MEMORY)};
  put_figures(pen, results, UNIT_BYTES, &TABLE(struct figure_row, columns));
}

struct kind_row {
  struct diff_row of;
  double speedup;
};

/* Kinds first: a kernel that was replaced by another one is visible only there. */
static void put_kinds(struct pen *pen, const struct diff_result *diff) {
  static const struct column columns[] = {
      {"kind", COLUMN_TEXT, offsetof(struct kind_row, of.name), 0, 12},
      {"before", COLUMN_DURATION, offsetof(struct kind_row, of.before), 0, 0},
      {"after", COLUMN_DURATION, offsetof(struct kind_row, of.after), 0, 0},
      {"speedup", COLUMN_TIMES, offsetof(struct kind_row, speedup), 0, 0},
  };
  struct kind_row *rows = arena_array(&pen->scratch, diff->n_rows, sizeof(*rows));
  u32 n = 0;
  FOR_EACH(diff->rows, diff->n_rows, row) {
    double speedup = row->after > 0 && row->before > 0 ? row->before / row->after : NAN;
    if (row->section == DIFF_OF_KERNELS && (row->before > 0 || row->after > 0))
      rows[n++] = (struct kind_row){*row, speedup};
  }
  table_print(pen, &TABLE(struct kind_row, columns), rows, section_rows(pen, n, ROWS_SHOWN));
}

static void put_kernels(struct pen *pen, const struct diff_result *diff) {
  static const struct column columns[] = {
      {"kernel", COLUMN_TEXT, offsetof(struct diff_kernel, name), 0, 16},
      {"kind", COLUMN_TEXT, offsetof(struct diff_kernel, category), 1, 8},
      {"calls", COLUMN_COUNT, offsetof(struct diff_kernel, before_count), 2, 0},
      {"now", COLUMN_COUNT, offsetof(struct diff_kernel, after_count), 2, 0},
      {"each", COLUMN_DURATION, offsetof(struct diff_kernel, before_mean_ms), 0, 0},
      {"now", COLUMN_DURATION, offsetof(struct diff_kernel, after_mean_ms), 0, 0},
      {"speedup", COLUMN_TIMES, offsetof(struct diff_kernel, speedup), 0, 0},
  };
  u32 n = section_rows(pen, diff->n_kernels, ROWS_SHOWN);
  struct diff_kernel *rows = arena_elements(&pen->scratch, diff->kernels, n, sizeof(*rows));
  FOR_EACH_CHANGED(rows, n, row)
    row->name = row->shortened ? row->shortened : row->name;
  table_print(pen, &TABLE(struct diff_kernel, columns), rows, n);
  section_in_all(pen, TEXT_INDENT, n, diff->n_kernels, diff->n_kernels, "kernel");
}

void body_diff_kernels(struct pen *pen, const struct results *results) {
  put_kinds(pen, results->diff);
  put_kernels(pen, results->diff);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_diff_kernels, results);
  pen_item(pen, STYLE_DIM, "largest difference of sums first");
}

void body_diff_collectives(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"operation", COLUMN_TEXT, offsetof(struct diff_collective, op), 0, 0},
      {"ranks", COLUMN_COUNT, offsetof(struct diff_collective, ranks), 2, 0},
      {"size", COLUMN_BYTES, offsetof(struct diff_collective, bytes), 0, 0},
      {"a step", COLUMN_DECIMAL, offsetof(struct diff_collective, before_per_step), 1, 0},
      {"now", COLUMN_DECIMAL, offsetof(struct diff_collective, after_per_step), 1, 0},
      {"transfer", COLUMN_MS, offsetof(struct diff_collective, before_ms), 0, 0},
      {"now", COLUMN_MS, offsetof(struct diff_collective, after_ms), 0, 0},
      {"change", COLUMN_CHANGE, offsetof(struct diff_collective, change), 0, 0},
  };
  const struct diff_result *diff = results->diff;
  u32 n = section_rows(pen, diff->n_collectives, ROWS_SHOWN);
  table_print(pen, &TABLE(struct diff_collective, columns), diff->collectives, n);
  section_in_all(pen, TEXT_INDENT, n, diff->n_collectives, diff->n_collectives, "kind");
}

void body_diff_lines(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"line", COLUMN_TEXT, offsetof(struct diff_line, place), 0, 16},
      {"function", COLUMN_TEXT, offsetof(struct diff_line, function), 1, 12},
      {"before", COLUMN_DURATION, offsetof(struct diff_line, before_ms), 0, 0},
      {"after", COLUMN_DURATION, offsetof(struct diff_line, after_ms), 0, 0},
  };
  const struct diff_result *diff = results->diff;
  u32 shown = section_rows(pen, diff->n_lines, ROWS_SHOWN);
  table_print(pen, &TABLE(struct diff_line, columns), diff->lines, shown);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_diff_lines, results);
  pen_item(pen, STYLE_DIM, "largest change first");
  section_in_all(pen, 0, shown, diff->n_lines, diff->n_lines, "line");
}

/* How the runs end, if a side has several. */
static void put_level(struct pen *pen, const struct diff_row *row) {
  section_value(pen, row->name, STYLE_PLAIN, "%.6g at the end, %.6g before", row->after,
                row->before);
  if (row->verdict)
    pen_item(pen, STYLE_BOLD, "%s",
             row->verdict == FIGURE_IS_SAME ? "noise between runs explains that"
                                            : diff_verdict_words[row->verdict]);
}

void body_diff_scalars(struct pen *pen, const struct results *results) {
  FOR_EACH(results->diff->scalars, results->diff->n_scalars, one) {
    section_value(pen, one->name, STYLE_PLAIN, "%s compared", plural(one->steps, "step").text);
    if (isnan(one->first_step)) {
      pen_item(pen, STYLE_GOOD, "the same to the last bit");
      continue;
    }
    pen_item(pen, STYLE_PLAIN, "differs from step %.0f on", one->first_step);
    if (!isnan(one->parted_step))
      pen_item(pen, STYLE_WARNING, "by more than a thousandth from step %.0f on", one->parted_step);
    pen_item(pen, STYLE_PLAIN, "%.6g there, %.6g before", one->after, one->before);
  }
  FOR_EACH(results->diff->rows, results->diff->n_rows, row)
    if (row->section == DIFF_OF_VALUES)
      put_level(pen, row);
}

static void put_fact(struct pen *pen, const char *sign, const char *fact) {
  pen_line(pen, INDENT);
  pen_put(pen, STYLE_PLAIN, sign);
  pen_hang(pen, INDENT + 2);
  pen_words(pen, STYLE_PLAIN, fact ? fact : "(not there)");
}

void body_diff_provenance(struct pen *pen, const struct results *results) {
  FOR_EACH(results->diff->facts, results->diff->n_facts, fact) {
    section_line(pen, STYLE_BOLD, "%s%s%s", fact->what, fact->name ? " " : "",
                 text_or_empty(fact->name));
    put_fact(pen, "- ", fact->before);
    put_fact(pen, "+ ", fact->after);
  }
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_diff_provenance, results);
}
