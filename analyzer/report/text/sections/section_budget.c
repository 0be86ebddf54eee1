/* SPDX-License-Identifier: MIT
 *
 * Where the wall time went, in lines that add up to it, and how much of the devices was used.
 */
#include <math.h>

#include "base/texts.h"
#include "report/text/meter.h"
#include "report/text/section.h"
#include "report/text/table.h"

struct budget_row {
  const char *name;
  double ms, share, recoverable_ms;
  enum style style;
};

static void put_lines(struct pen *pen, const struct results *results) {
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
  section_line(pen, STYLE_DIM, "sums to the %s analysed, mean over ranks",
               duration_s(results->wall_s).text);
  pen_item(pen, STYLE_DIM, "residual %s", duration_s(round(results->residual_s * 1e9) * 1e-9).text);
}

static void put_utilisation(struct pen *pen, const char *label, double value, const char *reason,
                            const char *otherwise) {
  section_label(pen, label);
  if (isnan(value)) {
    pen_item(pen, STYLE_PLAIN, "unknown: %s", reason ? reason : otherwise);
    return;
  }
  meter_bar(pen, STYLE_NOTE, value, 24);
  pen_blank(pen, 2);
  pen_put(pen, STYLE_BOLD, percent(value).text);
}

static void put_hfu(struct pen *pen, const struct results *results) {
  put_utilisation(pen, "HFU", results->hfu, results->hfu_reason,
                  "the arithmetic of kernels is not recorded");
  if (isnan(results->hfu) && isnan(results->hfu_coverage))
    return;
  section_label(pen, "");
  item_if_known(pen, STYLE_DIM, "GEMMs: %s a step", flops(results->gemm_flops, "FLOP"));
  if (isnan(results->hfu_coverage))
    pen_item(pen, STYLE_DIM, "their share of GPU time is unknown");
  else
    pen_item(pen, STYLE_DIM, "known for %s of GPU compute time",
             percent(results->hfu_coverage).text);
  item_if_known(pen, STYLE_DIM, "attention adds about %s, estimated from its grids",
                percent(results->hfu_attention));
  if (results->hfu_note)
    pen_item(pen, STYLE_DIM, "%s", results->hfu_note);
}

void body_budget(struct pen *pen, const struct results *results) {
  put_lines(pen, results);
  put_utilisation(pen, "MFU", results->mfu, results->mfu_reason,
                  "give --flops-per-step, or --params and --tokens-per-step");
  if (!isnan(results->mfu)) {
    section_value(pen, "", STYLE_DIM, "%s a step", flops(results->flops_per_step, "FLOP").text);
    pen_item(pen, STYLE_DIM, "%s%speak of all devices %s", text_or_empty(results->peak_precision),
             results->peak_precision ? " " : "", flops(results->peak_flops, "FLOP/s").text);
    if (results->mfu_note)
      pen_item(pen, STYLE_DIM, "%s", results->mfu_note);
    if (results->peak_note)
      pen_item(pen, STYLE_DIM, "%s", results->peak_note);
  }
  put_hfu(pen, results);
}
