/* SPDX-License-Identifier: MIT
 *
 * What is known of matrix products: a part of struct results. Products only, never all that a
 * device computes. Times are on the GPU; NAN where not known. "A step" is one step of one rank,
 * mean over the ranks that call products; or the whole run where there are no steps.
 */
#ifndef TSCOPE_PRODUCT_RESULT_H
#define TSCOPE_PRODUCT_RESULT_H

#include <stdbool.h>

#include "format/tscope_format.h"

/* Calls of one shape and type, all ranks together. */
struct product_row {
  const char *shape; /* "m x n x k", "varied" */
  const char *type;  /* of its factors, such as "bfloat16" */
  const char *precision;
  double batch;                  /* products in a call */
  double calls, timed;           /* a step; in all, of which the time is known */
  double mean_us, mean_error_us; /* of a call, with its standard error */
  double ms;                     /* a step: calls x mean */
  double share;                  /* of the time of all products */
  double tflops, utilisation;    /* while it runs; of the device's peak in that precision */
};

/* By the arithmetic in which products are made. */
struct precision_row {
  const char *precision;
  double flops;               /* a step, all ranks seen together */
  double share;               /* of the operations of all products */
  double peak_tflops;         /* of one device, mean over ranks */
  double hfu;                 /* its part of HFU */
  double ms;                  /* a step */
  double tflops, utilisation; /* while they run */
};

struct products_result {
  const char *reason; /* why times are not known, NULL if they are */
  const char *how;    /* whence times are: "every kernel", "a sample by pairs of events" */
  bool sampled;
  double one_in;       /* of a sample: one call of so many; NAN */
  double calls, timed; /* in the steps looked at, all ranks; of which the time is known */
  double ms, ms_error; /* a step: the mean of each shape's sample x its calls; standard error */
  double covered;      /* share of the operations that this is the time of */
  double bounded;      /* share of that time that is an upper bound: the stream was idle before */
  double tflops, tflops_error;      /* of a device while they run */
  struct product_row *rows;         /* most time first */
  struct precision_row *precisions; /* most operations first */
  u32 n_rows;                       /* PRODUCTS_LISTED at most */
  double shapes;                    /* how many there are */
  u32 n_precisions;
};

enum { PRODUCTS_LISTED = 50 };

/* Nothing known. */
struct products_result products_result_unknown(void);

#endif
