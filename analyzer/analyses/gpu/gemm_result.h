/* SPDX-License-Identifier: MIT
 *
 * What is known about GEMMs: a part of struct results. Only GEMMs, not everything that a device
 * computes. Times are on the GPU; NAN where not known. "A step" is one step of one rank, mean over
 * the ranks that call GEMMs; or the whole run where there are no steps.
 */
#ifndef TSCOPE_GEMM_RESULT_H
#define TSCOPE_GEMM_RESULT_H

#include <stdbool.h>

#include "format/tscope_format.h"
#include "kernels/precision.h"

#define RESULT_TABLE "analyses/gpu/gemm_result.def"
#include "analyses/results/result_structs.h"

enum { GEMMS_LISTED = 50 };

#endif
