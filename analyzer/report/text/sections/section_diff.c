/* SPDX-License-Identifier: MIT
 *
 * Two runs against each other: what `tscope-report diff` shows, section by section.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff_result.h"
#include "report/text/section.h"
#include "report/text/table.h"

enum { INDENT = 4, ROWS_SHOWN = 12 };

/* --- what is compared, and the step --- */

static void put_run(struct pen *pen, const char *label, const struct model *model,
                    const char *name) {
  section_label(pen, label);
  pen_item(pen, STYLE_PLAIN, VALUE_INDENT, name ? name : quantity_unknown);
  if (model && model->n_ranks)
    pen_item(pen, STYLE_PLAIN, VALUE_INDENT, plural(model->n_ranks, "rank").text);
}

static void steps_body(struct pen *pen, const struct results *results,
                       const struct report_view *view) {
  const struct diff_result *diff = results->diff;
  (void)view;
  put_run(pen, "before", NULL, diff->before);
  put_run(pen, "after", results->model, diff->after);
  section_label(pen, "step");
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%s before",
                  duration_ms(diff->step_before_ms).text);
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%s after",
                  duration_ms(diff->step_after_ms).text);
  if (!isnan(diff->step_change))
    pen_item(pen, STYLE_BOLD, VALUE_INDENT, signed_percent(diff->step_change).text);
  section_label(pen, "verdict");
  pen_item(pen, STYLE_BOLD, VALUE_INDENT, diff->verdict ? diff->verdict : "cannot tell");
  if (diff->reason)
    pen_item(pen, STYLE_PLAIN, VALUE_INDENT, diff->reason);
  if (isnan(diff->step_p_value))
    return;
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "noise explains ±%s",
                  duration_ms(diff->step_noise_ms).text);
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "p = %s", probability(diff->step_p_value).text);
  section_label(pen, "");
  pen_item(pen, STYLE_DIM, VALUE_INDENT,
           "noise within these runs only; how runs of the same kind differ takes more of them");
}

static bool always(const struct results *results) {
  (void)results;
  return true;
}

static bool steps_unjudged(const struct results *results) {
  return results->diff->verdict == NULL;
}

const struct section section_diff_steps = {
    .title = "Step time",
    .applies = always,
    .findings = {"DIFF.SLOWER"},
    .unjudged = steps_unjudged,
    .body = steps_body,
};

/* --- figures --- */

struct figure_row {
  const char *section, *name, *verdict;
  double before, after, change;
  enum style style;
};

/* What only one run knows comes last. */
static double growth(const struct figure_row *row) {
  double by = fabs(row->after - row->before);
  return isnan(by) ? -1 : by;
}

static int by_growth(const void *left, const void *right) {
  double x = growth(left), y = growth(right);
  return x == y ? 0 : x > y ? -1 : 1;
}

/* The figures of one unit that changed most. */
static void put_figures(struct pen *pen, const struct results *results, const char *unit,
                        const struct table *table) {
  const struct diff_result *diff = results->diff;
  struct figure_row *rows = calloc(diff->n_rows + 1, sizeof(*rows));
  u32 n = 0;
  for (u32 i = 0; rows && i < diff->n_rows; i++) {
    const struct diff_row *row = &diff->rows[i];
    if (strcmp(row->unit, unit) != 0)
      continue;
    const char *verdict = row->verdict ? row->verdict : "";
    rows[n++] = (struct figure_row){row->section, row->name,   verdict,    row->before,
                                    row->after,   row->change, STYLE_PLAIN};
  }
  if (rows && n) {
    qsort(rows, n, sizeof(*rows), by_growth);
    table_print(pen, table, rows, n < ROWS_SHOWN ? n : ROWS_SHOWN, TEXT_INDENT);
    if (n > ROWS_SHOWN) {
      pen_to(pen, TEXT_INDENT);
      pen_format(pen, STYLE_DIM, "and %s that changed less", plural(n - ROWS_SHOWN, "figure").text);
      pen_newline(pen);
    }
  }
  free(rows);
}

static bool has_unit(const struct results *results, const char *unit) {
  for (u32 i = 0; i < results->diff->n_rows; i++)
    if (!strcmp(results->diff->rows[i].unit, unit))
      return true;
  return false;
}

static bool has_times(const struct results *results) {
  return has_unit(results, "ms");
}

static bool has_bytes(const struct results *results) {
  return has_unit(results, "bytes");
}

#define FIGURE_COLUMNS(kind)                                                                       \
  {"of", COLUMN_TEXT, offsetof(struct figure_row, section), 0, 8},                                 \
      {"figure", COLUMN_TEXT, offsetof(struct figure_row, name), 0, 12},                           \
      {"before", kind, offsetof(struct figure_row, before), 0, 0},                                 \
      {"after", kind, offsetof(struct figure_row, after), 0, 0},                                   \
      {"change", COLUMN_CHANGE, offsetof(struct figure_row, change), 0, 0},                        \
      {"beyond noise", COLUMN_TEXT, offsetof(struct figure_row, verdict), 1, 0},

static void times_body(struct pen *pen, const struct results *results,
                       const struct report_view *view) {
  static const struct column columns[] = {FIGURE_COLUMNS(COLUMN_MS)};
  static const struct table table = {TABLE_COLUMNS(columns), sizeof(struct figure_row),
                                     offsetof(struct figure_row, style), false};
  (void)view;
  put_figures(pen, results, "ms", &table);
  pen_to(pen, TEXT_INDENT);
  pen_put(pen, STYLE_DIM, "a step, mean over ranks; largest change first");
}

static void bytes_body(struct pen *pen, const struct results *results,
                       const struct report_view *view) {
  static const struct column columns[] = {FIGURE_COLUMNS(COLUMN_MEMORY)};
  static const struct table table = {TABLE_COLUMNS(columns), sizeof(struct figure_row),
                                     offsetof(struct figure_row, style), false};
  (void)view;
  put_figures(pen, results, "bytes", &table);
}

const struct section section_diff_times = {
    .title = "Where the time went", .applies = has_times, .body = times_body};

const struct section section_diff_memory = {
    .title = "Memory", .applies = has_bytes, .findings = {"DIFF.MEMORY"}, .body = bytes_body};

/* --- collectives --- */

struct collective_row {
  const char *op;
  double ranks, bytes, before_count, after_count, before_ms, after_ms, change;
  enum style style;
};

static void collectives_body(struct pen *pen, const struct results *results,
                             const struct report_view *view) {
  static const struct column columns[] = {
      {"operation", COLUMN_TEXT, offsetof(struct collective_row, op), 0, 0},
      {"ranks", COLUMN_COUNT, offsetof(struct collective_row, ranks), 2, 0},
      {"size", COLUMN_BYTES, offsetof(struct collective_row, bytes), 0, 0},
      {"a step", COLUMN_DECIMAL, offsetof(struct collective_row, before_count), 1, 0},
      {"now", COLUMN_DECIMAL, offsetof(struct collective_row, after_count), 1, 0},
      {"transfer", COLUMN_MS, offsetof(struct collective_row, before_ms), 0, 0},
      {"now", COLUMN_MS, offsetof(struct collective_row, after_ms), 0, 0},
      {"change", COLUMN_CHANGE, offsetof(struct collective_row, change), 0, 0},
  };
  static const struct table table = {TABLE_COLUMNS(columns), sizeof(struct collective_row),
                                     offsetof(struct collective_row, style), false};
  const struct diff_result *diff = results->diff;
  u32 n = diff->n_collectives < ROWS_SHOWN ? diff->n_collectives : ROWS_SHOWN;
  struct collective_row *rows = calloc(n + 1, sizeof(*rows));
  (void)view;
  for (u32 i = 0; rows && i < n; i++) {
    const struct diff_collective *one = &diff->collectives[i];
    rows[i] = (struct collective_row){
        one->op,        one->ranks,    one->bytes,  one->before_per_step, one->after_per_step,
        one->before_ms, one->after_ms, one->change, STYLE_PLAIN};
  }
  if (rows)
    table_print(pen, &table, rows, n, TEXT_INDENT);
  free(rows);
  if (diff->n_collectives > n) {
    pen_to(pen, TEXT_INDENT);
    pen_format(pen, STYLE_DIM, "and %s in the JSON report",
               plural(diff->n_collectives - n, "kind").text);
  }
}

static bool has_collectives(const struct results *results) {
  return results->diff->n_collectives > 0;
}

const struct section section_diff_collectives = {
    .title = "Collectives", .applies = has_collectives, .body = collectives_body};

/* --- values of the job's own --- */

static void scalars_body(struct pen *pen, const struct results *results,
                         const struct report_view *view) {
  (void)view;
  for (u32 i = 0; i < results->diff->n_scalars; i++) {
    const struct diff_scalar *one = &results->diff->scalars[i];
    section_label(pen, one->name);
    pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%s compared", plural(one->steps, "step").text);
    if (isnan(one->first_step)) {
      pen_item(pen, STYLE_GOOD, VALUE_INDENT, "the same to the last bit");
      continue;
    }
    pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "differs from step %.0f on", one->first_step);
    if (!isnan(one->parted_step))
      pen_item_format(pen, STYLE_WARNING, VALUE_INDENT, "parts at step %.0f", one->parted_step);
    pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%.6g there, %.6g before", one->after,
                    one->before);
  }
}

static bool has_scalars(const struct results *results) {
  return results->diff->n_scalars > 0;
}

const struct section section_diff_scalars = {.title = "Values of the job's own",
                                             .applies = has_scalars,
                                             .findings = {"DIFF.RESULTS"},
                                             .body = scalars_body};

/* --- how the runs were made --- */

static void provenance_body(struct pen *pen, const struct results *results,
                            const struct report_view *view) {
  (void)view;
  for (u32 i = 0; i < results->diff->n_facts; i++) {
    const struct diff_fact *fact = &results->diff->facts[i];
    if (pen->column)
      pen_newline(pen);
    pen_to(pen, TEXT_INDENT);
    pen_format(pen, STYLE_BOLD, "%s%s%s", fact->what, fact->name ? " " : "",
               fact->name ? fact->name : "");
    pen_newline(pen);
    pen_to(pen, INDENT);
    pen_put(pen, STYLE_PLAIN, "- ");
    pen_words(pen, STYLE_PLAIN, INDENT + 2, fact->before ? fact->before : "(not there)");
    pen_newline(pen);
    pen_to(pen, INDENT);
    pen_put(pen, STYLE_PLAIN, "+ ");
    pen_words(pen, STYLE_PLAIN, INDENT + 2, fact->after ? fact->after : "(not there)");
  }
  if (results->diff->n_facts == 0) {
    pen_to(pen, TEXT_INDENT);
    pen_put(pen, STYLE_PLAIN, "nothing that was recorded differs");
  }
}

const struct section section_diff_provenance = {
    .title = "How the runs were made", .applies = always, .body = provenance_body};
