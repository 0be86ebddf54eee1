/* SPDX-License-Identifier: MIT
 *
 * Matrix products: how fast they are made, by shape and by precision.
 */
#include <math.h>
#include <string.h>

#include "report/text/section.h"
#include "report/text/table.h"

enum { SHAPES_SHOWN = 6 };

static bool applies(const struct results *results) {
  return results->products.calls > 0;
}

struct shape_row {
  const char *shape, *type;
  double calls, mean_ms, ms, share, tflops, utilisation;
};

static void put_shapes(struct pen *pen, const struct products_result *products) {
  static const struct column columns[] = {
      {"product", COLUMN_TEXT, offsetof(struct shape_row, shape), 0, 0},
      {"type", COLUMN_TEXT, offsetof(struct shape_row, type), 2, 8},
      {"calls", COLUMN_COUNT, offsetof(struct shape_row, calls), 1, 0},
      {"mean", COLUMN_DURATION, offsetof(struct shape_row, mean_ms), 3, 0},
      {"time", COLUMN_MS, offsetof(struct shape_row, ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct shape_row, share), 4, 0},
      {"TFLOP/s", COLUMN_DECIMAL, offsetof(struct shape_row, tflops), 0, 0},
      {"of peak", COLUMN_SHARE, offsetof(struct shape_row, utilisation), 0, 0},
  };
  static const struct table table = {TABLE_COLUMNS(columns), sizeof(struct shape_row), TABLE_PLAIN,
                                     false};
  struct shape_row rows[SHAPES_SHOWN];
  struct quantity shapes[SHAPES_SHOWN];
  u32 n = products->n_rows < SHAPES_SHOWN ? products->n_rows : SHAPES_SHOWN;
  for (u32 i = 0; i < n; i++) {
    const struct product_row *one = &products->rows[i];
    if (one->batch > 1)
      snprintf(shapes[i].text, sizeof(shapes[i].text), "%.0f of %s", one->batch, one->shape);
    else
      snprintf(shapes[i].text, sizeof(shapes[i].text), "%s", one->shape);
    rows[i] = (struct shape_row){.shape = shapes[i].text,
                                 .type = one->type,
                                 .calls = one->calls,
                                 .mean_ms = one->mean_us / 1e3,
                                 .ms = one->ms,
                                 .share = one->share,
                                 .tflops = one->tflops,
                                 .utilisation = one->utilisation};
  }
  table_print(pen, &table, rows, n, TEXT_INDENT);
}

static void put_precisions(struct pen *pen, const struct products_result *products) {
  static const struct column columns[] = {
      {"made in", COLUMN_TEXT, offsetof(struct precision_row, precision), 0, 9},
      {"operations", COLUMN_SHARE, offsetof(struct precision_row, share), 0, 0},
      {"time", COLUMN_MS, offsetof(struct precision_row, ms), 0, 0},
      {"TFLOP/s", COLUMN_DECIMAL, offsetof(struct precision_row, tflops), 1, 0},
      {"peak", COLUMN_DECIMAL, offsetof(struct precision_row, peak_tflops), 2, 0},
      {"of peak", COLUMN_SHARE, offsetof(struct precision_row, utilisation), 0, 0},
      {"HFU", COLUMN_SHARE, offsetof(struct precision_row, hfu), 0, 0},
  };
  static const struct table table = {TABLE_COLUMNS(columns), sizeof(struct precision_row),
                                     TABLE_PLAIN, false};
  pen_newline(pen);
  table_print(pen, &table, products->precisions, products->n_precisions, TEXT_INDENT);
}

/* Whence the times are, and how good they are. */
static void put_trust(struct pen *pen, const struct results *results) {
  const struct products_result *products = &results->products;
  pen_to(pen, TEXT_INDENT);
  if (products->sampled) {
    pen_item_format(pen, STYLE_BOLD, TEXT_INDENT, "SAMPLED: %s of %s timed by pairs of events",
                    count_of(products->timed).text, plural(products->calls, "call").text);
    pen_item_format(pen, STYLE_DIM, TEXT_INDENT, "one in %.0f", products->one_in);
    if (isnan(products->ms_error))
      pen_item(pen, STYLE_DIM, TEXT_INDENT, "too few to tell their error");
    else
      pen_item_format(pen, STYLE_DIM, TEXT_INDENT, "standard error %s",
                      duration_ms(products->ms_error).text);
  } else {
    pen_item_format(pen, STYLE_DIM, TEXT_INDENT, "%s of %s timed by %s",
                    count_of(products->timed).text, plural(products->calls, "call").text,
                    products->how);
  }
  if (products->covered < 1 - 1e-9)
    pen_item_format(pen, STYLE_DIM, TEXT_INDENT, "the time is of %s of their operations",
                    percent(products->covered).text);
  if (products->bounded > 0)
    pen_item_format(pen, STYLE_DIM, TEXT_INDENT,
                    "%s of it with the time of launching, as the stream was idle",
                    percent(products->bounded).text);
}

static void put_products_section(struct pen *pen, const struct results *results,
                                 const struct report_view *view) {
  const struct products_result *products = &results->products;
  (void)view;
  if (products->how) {
    section_label(pen, "on the GPU");
    pen_item_format(pen, STYLE_BOLD, VALUE_INDENT, "%s %s", duration_ms(products->ms).text,
                    section_per(results));
    if (!isnan(products->tflops))
      pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%s while they run",
                      flops(products->tflops * 1e12, "FLOP/s").text);
    pen_item(pen, STYLE_DIM, VALUE_INDENT, "products only, not all that is computed");
    pen_newline(pen);
  }
  put_shapes(pen, products);
  if (products->n_precisions)
    put_precisions(pen, products);
  if (products->how) {
    put_trust(pen, results);
  } else {
    pen_to(pen, TEXT_INDENT);
    pen_words(pen, STYLE_BOLD, TEXT_INDENT, products->reason);
  }
  if (products->shapes > SHAPES_SHOWN) {
    if (!products->how)
      pen_newline(pen);
    pen_item_format(pen, STYLE_DIM, TEXT_INDENT, "%s in all",
                    plural(products->shapes, "shape").text);
  }
}

const struct section section_products = {
    "Matrix products", applies, {FINDING_EFFICIENCY_PRECISION}, NULL, NULL, put_products_section};
