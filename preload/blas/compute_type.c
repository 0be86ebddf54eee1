/* SPDX-License-Identifier: MIT
 *
 * The arithmetic that a GEMM really uses. Single precision may run on tensor cores where the caller
 * allows it, by the compute type or by the handle's math mode: cublasMath_t and
 * cublasComputeType_t, https://docs.nvidia.com/cuda/cublas/#cublasmath-t.
 */
#include "blas/blas_record.h"
#include "settings/process_environment.h"

enum {
  COMPUTE_32F = 68,
  COMPUTE_32F_PEDANTIC = 69,
  COMPUTE_64F = 70,
  COMPUTE_64F_PEDANTIC = 71,
  COMPUTE_32F_FAST_16F = 74,
  COMPUTE_32F_FAST_TF32 = 77,
  COMPUTE_32F_EMULATED = 78,
  COMPUTE_64F_EMULATED = 79,
};

enum {
  MATH_DEFAULT = 0,
  MATH_TENSOR_OP = 1, /* deprecated: as COMPUTE_32F_FAST_16F */
  MATH_PEDANTIC = 2,
  MATH_TF32_TENSOR_OP = 3,
  MATH_FP32_EMULATED = 4,
  MATH_FP64_EMULATED = 8,
  MATH_MODE_BITS = 15, /* above are flags */
};

/* What NVIDIA's variables say. They are read once, as the libraries do. */
#define VARIABLE_IS(variable, value) TSCOPE_ONCE(tscope_environment_now_is(variable, value))

/* cublasMath_t without its flags; -1 if the handle does not say. */
static int math_mode(cublasHandle_t handle) {
  cublasStatus_t (*get)(cublasHandle_t, int *) =
      TSCOPE_FUNCTION_OF_COPY("cublasGetMathMode", tscope_cublas_sonames, tscope_self);
  int mode = MATH_DEFAULT;
  return get && get(handle, &mode) == CUBLAS_STATUS_SUCCESS ? mode & MATH_MODE_BITS : -1;
}

static u8 single_by_mode(cublasHandle_t handle) {
  switch (handle ? math_mode(handle) : MATH_DEFAULT) {
  case MATH_DEFAULT:
  case MATH_FP64_EMULATED:
    return COMPUTE_32F;
  case MATH_TENSOR_OP:
    return COMPUTE_32F_FAST_16F;
  case MATH_PEDANTIC:
    return COMPUTE_32F_PEDANTIC;
  case MATH_TF32_TENSOR_OP:
    return COMPUTE_32F_FAST_TF32;
  case MATH_FP32_EMULATED:
    return COMPUTE_32F_EMULATED;
  default:
    return 0;
  }
}

static u8 compute_of_single(cublasHandle_t handle, int requested) {
  u8 compute = requested && requested != COMPUTE_32F ? (u8)requested : single_by_mode(handle);
  if (compute == COMPUTE_32F_FAST_TF32 && VARIABLE_IS("NVIDIA_TF32_OVERRIDE", "0"))
    compute = COMPUTE_32F;
  return compute == COMPUTE_32F && VARIABLE_IS("CUBLAS_EMULATE_SINGLE_PRECISION", "1") ? 0
                                                                                       : compute;
}

static u8 compute_of_double(cublasHandle_t handle, int requested) {
  int mode = handle ? math_mode(handle) : MATH_DEFAULT;
  if (requested && requested != COMPUTE_64F)
    return (u8)requested;
  if (mode < 0 || (mode != MATH_PEDANTIC && VARIABLE_IS("CUBLAS_EMULATE_DOUBLE_PRECISION", "1")))
    return 0;
  return mode == MATH_FP64_EMULATED ? COMPUTE_64F_EMULATED
         : mode == MATH_PEDANTIC    ? COMPUTE_64F_PEDANTIC
                                    : COMPUTE_64F;
}

u8 gemm_compute(cublasHandle_t handle, cudaDataType type, int requested) {
  switch ((int)type) {
  case CUDA_R_32F:
  case CUDA_C_32F:
    return compute_of_single(handle, requested);
  case CUDA_R_64F:
  case CUDA_C_64F:
    return compute_of_double(handle, requested);
  default:
    return (u8)requested;
  }
}
