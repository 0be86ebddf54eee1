/* SPDX-License-Identifier: MIT
 *
 * The model's modules, as a tree.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "report/text/section.h"
#include "report/text/table.h"

#define MOST_ROWS 24u
#define NAME_BYTES 96

struct row {
  struct module_row of;
  char text[NAME_BYTES];
  const char *name;
};

static void put_plain(struct pen *pen, const struct module_result *modules) {
  section_label(pen, "model");
  pen_item(pen, STYLE_BOLD, VALUE_INDENT, modules->root);
  pen_item(pen, STYLE_PLAIN, VALUE_INDENT, plural(modules->count, "module").text);
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "parameters %s",
                  memory_size(modules->parameter_bytes).text);
  section_label(pen, "plain step");
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "peak %s",
                  memory_size(modules->plain_peak_bytes).text);
  if (modules->plain_peak_module)
    pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "in the backward pass of %s",
                    modules->plain_peak_module);
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "compute %s",
                  duration_ms(modules->plain_time_ms).text);
  section_label(pen, "");
  pen_put(pen, STYLE_DIM, "no sharding, no recomputation; optimizer state not included");
  pen_newline(pen);
}

/* The deepest level at which all modules fit. */
static double deepest(const struct module_result *modules) {
  double depth = 0;
  for (;; depth++) {
    u32 n = 0, more = 0;
    for (u32 i = 0; i < modules->n_tree; i++) {
      n += modules->tree[i].depth <= depth + 1;
      more += modules->tree[i].depth > depth;
    }
    if (n > MOST_ROWS || !more)
      return depth;
  }
}

static u32 fill_rows(const struct module_result *modules, struct row *rows) {
  double most = deepest(modules);
  u32 n = 0;
  for (u32 i = 0; i < modules->n_tree && n < MOST_ROWS; i++) {
    const struct module_row *from = &modules->tree[i];
    if (from->depth > most)
      continue;
    struct row *row = &rows[n++];
    size_t skip = from->parent ? strlen(from->parent) + 1 : 0;
    snprintf(row->text, sizeof(row->text), "%*s%s", 2 * (int)fmin(from->depth, 20), "",
             from->name + skip);
    row->name = row->text;
    row->of = *from;
  }
  return n;
}

void body_modules(struct pen *pen, const struct results *results, const struct report_view *view) {
  static const struct column columns[] = {
      {"module", COLUMN_TEXT, offsetof(struct row, name), 0, 16},
      {"parameters", COLUMN_MEMORY, offsetof(struct row, of.parameter_bytes), 0, 0},
      {"activations", COLUMN_MEMORY, offsetof(struct row, of.activation_bytes), 0, 0},
      {"forward", COLUMN_MS, offsetof(struct row, of.forward_ms), 1, 0},
      {"backward", COLUMN_MS, offsetof(struct row, of.backward_ms), 1, 0},
      {"time", COLUMN_SHARE, offsetof(struct row, of.time_share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct row, of.time_share), 2, 8},
  };
  static const struct table table = {TABLE_OF(struct row, columns), .bars = STYLE_COMPUTE};
  const struct module_result *modules = &results->modules;
  (void)view;
  put_plain(pen, modules);
  struct row *rows = memory_zeroed(MOST_ROWS, sizeof(*rows));
  u32 n = fill_rows(modules, rows);
  if (n)
    table_print(pen, &table, rows, n, TEXT_INDENT);
  if (n && n < modules->n_tree) {
    pen_to(pen, TEXT_INDENT);
    pen_item_format(pen, STYLE_DIM, TEXT_INDENT, "%s below these are in the JSON report",
                    plural(modules->n_tree - n, "module").text);
  }
  free(rows);
}
