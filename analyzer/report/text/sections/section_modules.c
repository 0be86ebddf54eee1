/* SPDX-License-Identifier: MIT
 *
 * The model's modules, as a tree.
 */
#include <math.h>
#include <string.h>

#include "report/text/section.h"
#include "report/text/table.h"

enum { MODULES_SHOWN = 24 };

struct row {
  struct module_row of;
  const char *name;
};

/* The deepest level at which all modules fit. */
static double deepest(const struct module_result *modules, u32 most) {
  double depth = 0;
  for (;; depth++) {
    u32 n = NUMBER_OF(modules->tree, modules->n_tree, one, one->depth <= depth + 1);
    if (n > most || !ANY(modules->tree, modules->n_tree, one, one->depth > depth))
      return depth;
  }
}

static u32 fill_rows(struct pen *pen, const struct module_result *modules, struct row *rows,
                     u32 most) {
  double depth = deepest(modules, most);
  u32 n = 0;
  FOR_EACH(modules->tree, modules->n_tree, from) {
    size_t skip = from->parent ? strlen(from->parent) + 1 : 0;
    if (from->depth <= depth && n < most)
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
  u32 most = section_rows(pen, modules->n_tree, MODULES_SHOWN);
  struct row *rows = arena_array(&pen->scratch, most, sizeof(*rows));
  u32 n = fill_rows(pen, modules, rows, most);
  if (n)
    table_print(pen, &TABLE(struct row, columns, .bars = STYLE_COMPUTE), rows, n);
  if (n)
    section_in_all(pen, TEXT_INDENT, n, modules->n_tree, modules->n_tree, "module");
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_modules, results);
}
