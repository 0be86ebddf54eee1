/* SPDX-License-Identifier: MIT
 *
 * The GEMMs of a layer, called as a framework calls them: of several shapes and types, and TF32
 * allowed for some of those in single precision.
 */
#include <stdio.h>
#include <stdlib.h>

#include "train.h"

/* The functions of cuBLAS that are called here, so that its headers are not needed. */
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetStream_v2(void *handle, cudaStream_t stream);
int cublasSetMathMode(void *handle, int mode);
int cublasSgemm_v2(void *handle, int transa, int transb, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                   int ldc);
int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algorithm);

enum { R_16BF = 14, COMPUTE_32F = 68, DEFAULT_MATH = 0, TF32_TENSOR_OP_MATH = 3 };

/* m, n and k; scenarios.py has the same table. */
static const int bf16[3] = {2048, 1024, 1024}, tf32[3] = {1024, 1024, 1024},
                 fp32[3] = {1024, 512, 1024};

static void check_blas(int status, const char *what) {
  if (status == 0)
    return;
  fprintf(stderr, "train: %s: cuBLAS status %d\n", what, status);
  exit(1);
}
#define BLAS(call) check_blas(call, #call)

static void single_precision(struct rank *rank, int mode, const int shape[3]) {
  BLAS(cublasSetMathMode(rank->blas, mode));
  BLAS(cublasSgemm_v2(rank->blas, 0, 0, shape[0], shape[1], shape[2], NULL, NULL, shape[0], NULL,
                      shape[2], NULL, NULL, shape[0]));
}

void run_gemms(struct rank *rank) {
  if (rank->options->gemms && !rank->blas) {
    BLAS(cublasCreate_v2(&rank->blas));
    BLAS(cublasSetStream_v2(rank->blas, rank->compute));
  }
  for (int i = 0; i < rank->options->gemms; i++) {
    BLAS(cublasGemmEx(rank->blas, 0, 0, bf16[0], bf16[1], bf16[2], NULL, NULL, R_16BF, bf16[0],
                      NULL, R_16BF, bf16[2], NULL, NULL, R_16BF, bf16[0], COMPUTE_32F, -1));
    single_precision(rank, TF32_TENSOR_OP_MATH, tf32);
    single_precision(rank, DEFAULT_MATH, fp32);
  }
}

void end_gemms(struct rank *rank) {
  if (rank->blas)
    BLAS(cublasDestroy_v2(rank->blas));
}
