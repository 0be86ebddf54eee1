/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stand-in cuBLAS and cuBLASLt: handles that remember their stream,
 * descriptors that remember what was set, and GEMMs that run for a computed time and compute
 * nothing. The types of the API are written as the ABI passes them, so that no cuBLAS header is
 * needed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLAS_API __attribute__((visibility("default")))

enum {
  BLAS_SUCCESS = 0,
  BLAS_NOT_INITIALIZED = 1,
  BLAS_INVALID_VALUE = 7,
  BLAS_NOT_SUPPORTED = 15
};

/* A GEMM of batch matrices, m x k times k x n, of elements of `type` (cudaDataType_t). */
struct blas_gemm {
  int64_t m, n, k, batch;
  int type;
};

/* Launches the GEMM's kernel through the driver, as the real library does, and not through the
 * program's CUDA runtime. The kernel runs for flops / STANDIN_TFLOPS, but at least
 * STANDIN_KERNEL_US. Returns a cublasStatus_t. */
BLAS_API int blas_launch(void *stream, struct blas_gemm gemm);
