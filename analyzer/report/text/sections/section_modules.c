/* SPDX-License-Identifier: MIT
 *
 * The model's modules, as a tree.
 */
#include <math.h>
#include <string.h>

#include "report/text/section.h"
#include "report/text/table.h"

#define MOST_ROWS 24u

struct row {
  struct module_row of;
  const char *name;
};

/* The deepest level at which all modules fit. */
static double deepest(const struct module_result *modules) {
  double depth = 0;
  for (;; depth++) {
    u32 n = NUMBER_OF(modules->tree, modules->n_tree, one, one->depth <= depth + 1);
    if (n > MOST_ROWS || !ANY(modules->tree, modules->n_tree, one, one->depth > depth))
      return depth;
  }
}

static u32 fill_rows(struct pen *pen, const struct module_result *modules, struct row *rows) {
  double most = deepest(modules);
  u32 n = 0;
  FOR_EACH(modules->tree, modules->n_tree, from) {
    size_t skip = from->parent ? strlen(from->parent) + 1 : 0;
    if (from->depth <= most && n < MOST_ROWS)
      rows[n++] =
          (struct row){*from, arena_printf(&pen->scratch, "%*s%s", 2 * (int)fmin(from->depth, 20),
                                           "", from->name + skip)};
  }
  return n;
}

void body_modules(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_modules, results);
  static const struct column columns[] = {
      {"module", COLUMN_TEXT, offsetof(struct row, name), 0, 16},
      {"parameters", COLUMN_MEMORY, offsetof(struct row, of.parameter_bytes), 0, 0},
      {"activations", COLUMN_MEMORY, offsetof(struct row, of.activation_bytes), 0, 0},
      {"forward", COLUMN_MS, offsetof(struct row, of.forward_ms), 1, 0},
      {"backward", COLUMN_MS, offsetof(struct row, of.backward_ms), 1, 0},
      {"time", COLUMN_SHARE, offsetof(struct row, of.time_share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct row, of.time_share), 2, 8},
  };
  const struct module_result *modules = &results->modules;
  pen_newline(pen);
  struct row *rows = arena_array(&pen->scratch, MOST_ROWS, sizeof(*rows));
  u32 n = fill_rows(pen, modules, rows);
  if (n)
    table_print(pen, &TABLE(struct row, columns, .bars = STYLE_COMPUTE), rows, n);
  if (n && n < modules->n_tree)
    section_line(pen, STYLE_DIM, "%s below these are in the JSON report",
                 plural(modules->n_tree - n, "module").text);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_modules, results);
}
