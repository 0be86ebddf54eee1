/* SPDX-License-Identifier: MIT
 *
 * The arithmetic in which a GEMM is made: it decides which peak of the device the GEMM can reach.
 */
#pragma once

#include "format/tscope_format.h"

/* From the fastest arithmetic to the slowest: P(NAME, "text of reports"). */
#define TSCOPE_PRECISIONS(P)                                                                       \
  P(FP4, "fp4")                                                                                    \
  P(FP8, "fp8")                                                                                    \
  P(FP16, "bf16/fp16")                                                                             \
  P(TF32, "tf32")                                                                                  \
  P(FP32, "fp32")                                                                                  \
  P(FP64, "fp64")                                                                                  \
  P(UNKNOWN, "not known")

enum precision {
#define P(NAME, text) PRECISION_##NAME,
  TSCOPE_PRECISIONS(P)
#undef P
      PRECISIONS
};

const char *precision_name(enum precision precision);

/* Of a GEMM of factors of types `a` and `b` (enum tscope_dtype) with a compute type as GEMM
 * records say it. Factors of single precision are multiplied in TF32 or less where the compute type
 * allows it, and only there. Not known: integers, emulated arithmetic (several GEMMs of a lower
 * precision for one), single precision whose compute type is not known. */
enum precision gemm_precision(u8 a, u8 b, u8 compute);
