/* SPDX-License-Identifier: MIT
 *
 * A cuBLAS of three functions that do nothing.
 */
#include <cublas_v2.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

FAKE_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  static char only;
  *handle = (cublasHandle_t)(void *)&only;
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

FAKE_EXPORT cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const float *alpha, const float *a, int lda,
                                          const float *b, int ldb, const float *beta, float *c,
                                          int ldc) {
  (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda, (void)b;
  (void)ldb, (void)beta, (void)c, (void)ldc;
  return cublasDestroy_v2(handle);
}
