/* SPDX-License-Identifier: MIT */
#include "kernels/precision.h"

/* cublasComputeType_t. */
enum {
  COMPUTE_32F = 68,
  COMPUTE_32F_PEDANTIC = 69,
  COMPUTE_64F = 70,
  COMPUTE_64F_PEDANTIC = 71,
  COMPUTE_32F_FAST_16F = 74,
  COMPUTE_32F_FAST_16BF = 75,
  COMPUTE_32F_FAST_TF32 = 77,
};

const char *precision_name(enum precision precision) {
  static const char *const names[] = {
#define P(NAME, text) text,
      TSCOPE_PRECISIONS(P)
#undef P
  };
  return names[precision];
}

static enum precision of_singles(u8 compute) {
  switch (compute) {
  case COMPUTE_32F:
  case COMPUTE_32F_PEDANTIC:
    return PRECISION_FP32;
  case COMPUTE_32F_FAST_TF32:
    return PRECISION_TF32;
  case COMPUTE_32F_FAST_16F:
  case COMPUTE_32F_FAST_16BF:
    return PRECISION_FP16;
  default:
    return PRECISION_UNKNOWN;
  }
}

static enum precision of_factor(u8 dtype, u8 compute) {
  switch (dtype) {
  case TSCOPE_DTYPE_F4E2M1X2:
    return PRECISION_FP4;
  case TSCOPE_DTYPE_F8E4M3:
  case TSCOPE_DTYPE_F8E5M2:
    return PRECISION_FP8;
  case TSCOPE_DTYPE_F16:
  case TSCOPE_DTYPE_BF16:
    return PRECISION_FP16;
  case TSCOPE_DTYPE_F32:
  case TSCOPE_DTYPE_C64:
    return of_singles(compute);
  case TSCOPE_DTYPE_F64:
  case TSCOPE_DTYPE_C128:
    return compute == COMPUTE_64F || compute == COMPUTE_64F_PEDANTIC ? PRECISION_FP64
                                                                     : PRECISION_UNKNOWN;
  default:
    return PRECISION_UNKNOWN;
  }
}

/* The slower of both factors'. */
enum precision gemm_precision(u8 a, u8 b, u8 compute) {
  enum precision left = of_factor(a, compute), right = of_factor(b, compute);
  return MAX(left, right);
}
