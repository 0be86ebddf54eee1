/* SPDX-License-Identifier: MIT
 *
 * All GEMM functions of cuBLAS that tscope hooks.
 */
#include "blas/blas_hooks.def"

#include "blas/blas_types.h"
#include "handle.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { GEMM_PLAIN, GEMM_3M };

static int gemm(struct cublasContext *handle, int64_t m, int64_t n, int64_t k, int64_t batch,
                int type, int b_type, int c_type, int compute, int method) {
  (void)b_type, (void)c_type, (void)compute, (void)method;
  if (!handle)
    return BLAS_NOT_INITIALIZED;
  return blas_launch(handle->stream, (struct blas_gemm){m, n, k, batch, type});
}

static int64_t number_at(const void *array, int64_t i, size_t bytes) {
  return bytes == sizeof(int64_t) ? ((const int64_t *)array)[i] : ((const int *)array)[i];
}

static int gemm_grouped(struct cublasContext *handle, const void *m, const void *n, const void *k,
                        int64_t groups, const void *sizes, size_t bytes, int type, int b_type,
                        int c_type, int compute) {
  (void)b_type, (void)c_type, (void)compute;
  int status = handle ? BLAS_SUCCESS : BLAS_NOT_INITIALIZED;
  for (int64_t i = 0; i < groups && status == BLAS_SUCCESS; i++)
    status =
        blas_launch(handle->stream,
                    (struct blas_gemm){number_at(m, i, bytes), number_at(n, i, bytes),
                                       number_at(k, i, bytes), number_at(sizes, i, bytes), type});
  return status;
}

#define HOOK(name, since, type, params, args, failure, recorder, what)                             \
  BLAS_API type name params {                                                                      \
    return (type)recorder what;                                                                    \
  }
TSCOPE_CUBLAS_HOOKS(HOOK)
TSCOPE_CUBLAS_HALF_HOOKS(HOOK)
