/* SPDX-License-Identifier: MIT
 *
 * products{} of the JSON report.
 */
#include "report/json/json_table.h"

static const struct json_field shape_fields[] = {
    TEXT(product_row, "shape", shape, "\"m x n x k\", or \"varied\""),
    NUMBER(product_row, "batch", batch, "integer", "products in a call; null where that varies"),
    TEXT(product_row, "type", type, "of the factors, such as \"bfloat16\""),
    TEXT(product_row, "precision", precision, "in which it is made, as in by_precision"),
    NUMBER(product_row, "calls", calls, "number",
           "a step, mean over ranks; those that replays of graphs make too"),
    NUMBER(product_row, "timed", timed, "integer", "of which the time is known, in all"),
    NUMBER(product_row, "mean_us", mean_us, "µs", "of a call, on the GPU"),
    NUMBER(product_row, "mean_error_us", mean_error_us, "µs",
           "standard error of mean_us; 0 where every call was timed, null where one alone was"),
    NUMBER(product_row, "ms", ms, "ms", "a step, mean over ranks: calls x mean"),
    NUMBER(product_row, "share", share, "fraction", "of the time of all products"),
    NUMBER(product_row, "tflops", tflops, "1e12 FLOP/s", "of a device while it runs"),
    NUMBER(product_row, "utilisation", utilisation, "fraction",
           "tflops / peak of the device in that precision"),
    END,
};

static const struct json_field precision_fields[] = {
    TEXT(precision_row, "precision", precision,
         "\"fp4\", \"fp8\", \"bf16/fp16\", \"tf32\", \"fp32\", \"fp64\" or \"not known\""),
    NUMBER(precision_row, "flops", flops, "FLOP", "per step, all ranks seen together"),
    NUMBER(precision_row, "share", share, "fraction", "of the operations of all products"),
    NUMBER(precision_row, "peak_tflops", peak_tflops, "1e12 FLOP/s",
           "dense peak of one device, mean over ranks"),
    NUMBER(precision_row, "hfu", hfu, "fraction", "its part of budget.hfu"),
    NUMBER(precision_row, "ms", ms, "ms",
           "a step, mean over ranks; null where some of its shapes were not timed"),
    NUMBER(precision_row, "tflops", tflops, "1e12 FLOP/s", "of a device while they run"),
    NUMBER(precision_row, "utilisation", utilisation, "fraction", "tflops / peak_tflops"),
    END,
};

static json_t *make_sampled(const struct results *results) {
  return results->products.how ? json_boolean(results->products.sampled) : json_null();
}

const struct json_field json_products_fields[] = {
    TEXT(results, "how", products.how,
         "whence times are: \"their kernels\" (CUPTI saw them), or \"pairs of events around a "
         "sample\""),
    MADE("sampled", make_sampled, "boolean", "some are estimated from a sample of the calls"),
    NUMBER(results, "one_in", products.one_in, "integer", "of so many calls one was timed"),
    NUMBER(results, "calls", products.calls, "integer", "in the steps looked at, all ranks"),
    NUMBER(results, "timed", products.timed, "integer", "of which the time is known"),
    NUMBER(results, "ms", products.ms, "ms",
           "on the GPU a step, mean over ranks: products only, not all that is computed"),
    NUMBER(results, "ms_error", products.ms_error, "ms",
           "standard error of ms, of sampling alone; null where a sample is too small to tell"),
    NUMBER(results, "covered", products.covered, "fraction",
           "of the products' operations, those of shapes that were timed: ms is of these"),
    NUMBER(
        results, "bounded", products.bounded, "fraction",
        "of ms, that which is an upper bound: the stream was idle when the call was made, and the "
        "time of launching is in it"),
    NUMBER(results, "tflops", products.tflops, "1e12 FLOP/s", "of a device while products run"),
    NUMBER(results, "tflops_error", products.tflops_error, "1e12 FLOP/s",
           "standard error of tflops"),
    LIST("by_precision", products.precisions, products.n_precisions, precision_row,
         precision_fields, "most operations first"),
    LIST("by_shape", products.rows, products.n_rows, product_row, shape_fields,
         "most time first, fifty at most"),
    NUMBER(results, "shapes", products.shapes, "integer", "different shapes and types in all"),
    TEXT(results, "reason", products.reason, "why times are not known, null if they are"),
    END,
};
