/* SPDX-License-Identifier: MIT
 *
 * Steps and their phases.
 */
#include <math.h>

#include "report/text/meter.h"
#include "report/text/section.h"
#include "report/text/table.h"

void body_steps(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_steps, results);
  u32 warmup = first_analysed_step(results);
  if (results->n_step_ms < 2)
    return;
  struct value_range range =
      range_of(results->step_ms, warmup < results->n_step_ms ? warmup : 0, results->n_step_ms);
  section_label(pen, "over time");
  unsigned each = meter_sparkline(pen, STYLE_NOTE, results->step_ms, results->n_step_ms, warmup,
                                  pen->width - VALUE_INDENT);
  section_value(pen, "", STYLE_DIM, "from %s to %s", duration_ms(range.least).text,
                duration_ms(range.most).text);
  if (each > 1)
    pen_item(pen, STYLE_DIM, "a column is the slowest of %u steps", each);
  if (warmup)
    pen_item(pen, STYLE_DIM, "left of the bar: warm-up");
}

struct phase_row {
  const char *name;
  double ms, share;
  enum style style;
};

void body_phases(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"phase", COLUMN_TEXT, offsetof(struct phase_row, name), 0, 0},
      {"mean", COLUMN_MS, offsetof(struct phase_row, ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct phase_row, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct phase_row, share), 0, 10},
  };
  struct phase_row rows[] = {
#define P(phase, style_) {.name = #phase, .ms = results->phase##_ms, .style = style_},
      BAR_PHASES(P)
#undef P
  };
  double sum = 0; /* the host's step, which may be longer or shorter than that of its device */
  FOR_EACH(rows, LENGTH_OF(rows), one)
    sum += isnan(one->ms) ? 0 : one->ms;
  unsigned n = 0;
  FOR_EACH_CHANGED(rows, LENGTH_OF(rows), row) {
    if (isnan(row->ms))
      continue;
    row->share = row->ms / sum;
    rows[n++] = *row;
  }
  table_print(pen,
              &TABLE(struct phase_row, columns, .style_offset = offsetof(struct phase_row, style),
                     .plain_text = true),
              rows, n);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_phases, results);
}
