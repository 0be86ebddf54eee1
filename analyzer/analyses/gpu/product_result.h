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
#include "kernels/precision.h"

#define RESULT_TABLE "analyses/gpu/product_result.def"
#include "analyses/results/result_structs.h"

enum { PRODUCTS_LISTED = 50 };

/* Nothing known. */
struct products_result products_result_unknown(void);

#endif
