/* SPDX-License-Identifier: MIT
 *
 * Where the wall time went, in lines that add up to it, and how much of the devices was used.
 */
#include "report/text/section.h"
#include "report/text/table.h"

struct budget_row {
  const char *name;
  double ms, share, recoverable_ms;
  enum style style;
};

void body_budget(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"went to", COLUMN_TEXT, offsetof(struct budget_row, name), 0, 0},
      {"time", COLUMN_MS, offsetof(struct budget_row, ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct budget_row, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct budget_row, share), 1, 8},
      {"recoverable", COLUMN_MS, offsetof(struct budget_row, recoverable_ms), 0, 0},
  };
  struct budget_row *rows = arena_array(&pen->scratch, results->n_budget, sizeof(*rows));
  u32 n = 0;
  FOR_EACH(results->budget, results->n_budget, line) {
    if (line->seconds == 0)
      continue;
    rows[n++] = (struct budget_row){budget_part_words[line->part], line->seconds * 1e3,
                                    line->fraction, line->recoverable * 1e3,
                                    line->recoverable > 0 ? STYLE_WARNING : STYLE_COMPUTE};
  }
  table_print(pen,
              &TABLE(struct budget_row, columns, .style_offset = offsetof(struct budget_row, style),
                     .plain_text = true),
              rows, n);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_budget, results);
  put_facts(pen, SECTION_budget, results);
}
