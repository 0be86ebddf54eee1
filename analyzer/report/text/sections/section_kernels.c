/* SPDX-License-Identifier: MIT
 *
 * What ran on the GPUs: by kind of work, and the kernels that took most of the time.
 */
#include <math.h>

#include "report/text/section.h"
#include "report/text/table.h"

enum { KINDS_SHOWN = 8, KERNELS_SHOWN = 6, OPERATORS_SHOWN = 5 };

static void put_categories(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"kind of work", COLUMN_TEXT, offsetof(struct kernel_category_result, category), 0, 0},
      {"count", COLUMN_COUNT, offsetof(struct kernel_category_result, count), 1, 0},
      {"time", COLUMN_MS, offsetof(struct kernel_category_result, sum_ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct kernel_category_result, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct kernel_category_result, share), 2, 8},
  };
  table_print(pen, &TABLE(struct kernel_category_result, columns, .bars = STYLE_COMPUTE),
              results->kernel_categories,
              section_rows(pen, results->n_kernel_categories, KINDS_SHOWN));
}

struct kernel_row {
  struct kernel_result of;
  const char *name;
  double step_ms;
};

static void put_kernels(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"kernel", COLUMN_TEXT, offsetof(struct kernel_row, name), 0, 24},
      {"kind", COLUMN_TEXT, offsetof(struct kernel_row, of.category), 3, 8},
      {"count", COLUMN_COUNT, offsetof(struct kernel_row, of.count), 2, 0},
      {"mean", COLUMN_DURATION, offsetof(struct kernel_row, of.mean_ms), 4, 0},
      {"longest", COLUMN_DURATION, offsetof(struct kernel_row, of.max_ms), 0, 0},
      {"a step", COLUMN_DURATION, offsetof(struct kernel_row, step_ms), 0, 0},
      {"time", COLUMN_MS, offsetof(struct kernel_row, of.sum_ms), 1, 0},
      {"share", COLUMN_SHARE, offsetof(struct kernel_row, of.share), 0, 0},
  };
  u32 n = section_rows(pen, results->n_kernels, KERNELS_SHOWN);
  struct kernel_row *rows = arena_array(&pen->scratch, n, sizeof(*rows));
  struct row_name *names = arena_array(&pen->scratch, n, sizeof(*names));
  double steps = kernels_are_of(results, true);
  for (u32 i = 0; i < n; i++) {
    const struct kernel_result *one = &results->kernels[i];
    names[i] = (struct row_name){.shortened = one->shortened, .whole = one->name};
    rows[i] =
        (struct kernel_row){*one, names[i].text, steps > 0 ? one->sum_ms / steps : (double)NAN};
  }
  make_names_distinct(pen, names, n);
  table_print(pen, &TABLE(struct kernel_row, columns), rows, n);
}

static void put_operators(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"operator", COLUMN_TEXT, offsetof(struct operator_result, name), 0, 24},
      {"calls", COLUMN_COUNT, offsetof(struct operator_result, calls), 2, 0},
      {"with its calls", COLUMN_MS, offsetof(struct operator_result, total_ms), 1, 0},
      {"itself", COLUMN_MS, offsetof(struct operator_result, self_ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct operator_result, share), 0, 0},
  };
  u32 n = section_rows(pen, results->n_operators, OPERATORS_SHOWN);
  struct operator_result *rows =
      arena_elements(&pen->scratch, results->operators, n, sizeof(*rows));
  FOR_EACH_CHANGED(rows, n, row)
    row->name = row->name ? row->name : "(none that is recorded)";
  if (n)
    pen_newline(pen);
  table_print(pen, &TABLE(struct operator_result, columns), rows, n);
}

void body_kernels(struct pen *pen, const struct results *results) {
  put_categories(pen, results);
  pen_newline(pen);
  put_kernels(pen, results);
  put_operators(pen, results);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_kernels, results);
  section_in_all(pen, 0, section_rows(pen, results->n_kernels, KERNELS_SHOWN), results->n_kernels,
                 results->kernel_names, "name");
}
