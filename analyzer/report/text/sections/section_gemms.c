/* SPDX-License-Identifier: MIT
 *
 * GEMMs: how fast they are made, by shape and by precision.
 */

#include "report/text/section.h"
#include "report/text/table.h"

enum { SHAPES_SHOWN = 6 };

struct shape_row {
  struct gemm_row of;
  const char *shape;
  double mean_ms;
};

static void put_shapes(struct pen *pen, const struct gemms_result *gemms, u32 n) {
  static const struct column columns[] = {
      {"GEMM", COLUMN_TEXT, offsetof(struct shape_row, shape), 0, 0},
      {"type", COLUMN_TEXT, offsetof(struct shape_row, of.type), 2, 8},
      {"calls", COLUMN_COUNT, offsetof(struct shape_row, of.calls), 1, 0},
      {"mean", COLUMN_DURATION, offsetof(struct shape_row, mean_ms), 3, 0},
      {"time", COLUMN_MS, offsetof(struct shape_row, of.ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct shape_row, of.share), 4, 0},
      {"TFLOP/s", COLUMN_DECIMAL, offsetof(struct shape_row, of.tflops), 0, 0},
      {"of peak", COLUMN_SHARE, offsetof(struct shape_row, of.utilisation), 0, 0},
  };
  struct shape_row *rows = arena_array(&pen->scratch, n, sizeof(*rows));
  for (u32 i = 0; i < n; i++) {
    const struct gemm_row *one = &gemms->rows[i];
    const char *shape = one->batch > 1
                            ? arena_printf(&pen->scratch, "%.0f of %s", one->batch, one->shape)
                            : one->shape;
    rows[i] = (struct shape_row){*one, shape, one->mean_us / 1e3};
  }
  table_print(pen, &TABLE(struct shape_row, columns), rows, n);
}

static void put_precisions(struct pen *pen, const struct gemms_result *gemms) {
  static const struct column columns[] = {
      {"made in", COLUMN_TEXT, offsetof(struct precision_row, precision), 0, 9},
      {"operations", COLUMN_SHARE, offsetof(struct precision_row, share), 0, 0},
      {"time", COLUMN_MS, offsetof(struct precision_row, ms), 0, 0},
      {"TFLOP/s", COLUMN_DECIMAL, offsetof(struct precision_row, tflops), 1, 0},
      {"peak", COLUMN_DECIMAL, offsetof(struct precision_row, peak_tflops), 2, 0},
      {"of peak", COLUMN_SHARE, offsetof(struct precision_row, utilisation), 0, 0},
      {"HFU", COLUMN_SHARE, offsetof(struct precision_row, hfu), 0, 0},
  };
  pen_newline(pen);
  table_print(pen, &TABLE(struct precision_row, columns), gemms->precisions, gemms->n_precisions);
}

void body_gemms(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_gemms, results);
  const struct gemms_result *gemms = &results->gemms;
  pen_newline(pen);
  u32 shown = section_rows(pen, gemms->n_rows, SHAPES_SHOWN);
  put_shapes(pen, gemms, shown);
  if (gemms->n_precisions)
    put_precisions(pen, gemms);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_gemms, results);
  section_in_all(pen, 0, shown, gemms->n_rows, gemms->shapes, "shape");
}
