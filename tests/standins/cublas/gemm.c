/* SPDX-License-Identifier: MIT
 *
 * cuBLAS's products. Each takes int sizes, and int64_t ones under the name with _64.
 */
#include "handle.h"

enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };

static int product(const struct cublasContext *handle, int64_t m, int64_t n, int64_t k,
                   int64_t batch, int type) {
  if (!handle)
    return BLAS_NOT_INITIALIZED;
  return blas_launch(handle->stream, (struct blas_product){m, n, k, batch, type});
}

#define UNUSED                                                                                     \
  (void)ta, (void)tb, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c,    \
      (void)ldc
#define BEGIN(size) struct cublasContext *handle, int ta, int tb, size m, size n, size k

#define GEMM(name, size, type)                                                                     \
  BLAS_API int name(BEGIN(size), const void *alpha, const void *a, size lda, const void *b,        \
                    size ldb, const void *beta, void *c, size ldc) {                               \
    UNUSED;                                                                                        \
    return product(handle, m, n, k, 1, type);                                                      \
  }
#define STRIDED(name, size, type)                                                                  \
  BLAS_API int name(BEGIN(size), const void *alpha, const void *a, size lda, long long sa,         \
                    const void *b, size ldb, long long sb, const void *beta, void *c, size ldc,    \
                    long long sc, size batch) {                                                    \
    UNUSED, (void)sa, (void)sb, (void)sc;                                                          \
    return product(handle, m, n, k, batch, type);                                                  \
  }
#define BATCHED(name, size, type)                                                                  \
  BLAS_API int name(BEGIN(size), const void *alpha, const void *const *a, size lda,                \
                    const void *const *b, size ldb, const void *beta, void *const *c, size ldc,    \
                    size batch) {                                                                  \
    UNUSED;                                                                                        \
    return product(handle, m, n, k, batch, type);                                                  \
  }
/* cublas[SC]gemmEx end with ldc; those that say how to compute have two more, which the ABI lets a
 * callee leave alone. */
#define GEMM_EX(name, size)                                                                        \
  BLAS_API int name(BEGIN(size), const void *alpha, const void *a, int at, size lda,               \
                    const void *b, int bt, size ldb, const void *beta, void *c, int ct,            \
                    size ldc) {                                                                    \
    UNUSED, (void)bt, (void)ct;                                                                    \
    return product(handle, m, n, k, 1, at);                                                        \
  }
#define STRIDED_EX(name, size)                                                                     \
  BLAS_API int name(BEGIN(size), const void *alpha, const void *a, int at, size lda, long long sa, \
                    const void *b, int bt, size ldb, long long sb, const void *beta, void *c,      \
                    int ct, size ldc, long long sc, size batch, int compute, int algo) {           \
    UNUSED, (void)bt, (void)ct, (void)sa, (void)sb, (void)sc, (void)compute, (void)algo;           \
    return product(handle, m, n, k, batch, at);                                                    \
  }
#define BATCHED_EX(name, size)                                                                     \
  BLAS_API int name(BEGIN(size), const void *alpha, const void *const *a, int at, size lda,        \
                    const void *const *b, int bt, size ldb, const void *beta, void *const *c,      \
                    int ct, size ldc, size batch, int compute, int algo) {                         \
    UNUSED, (void)bt, (void)ct, (void)compute, (void)algo;                                         \
    return product(handle, m, n, k, batch, at);                                                    \
  }
#define OF_EACH_TYPE(KIND, suffix)                                                                 \
  KIND(cublasS##suffix, int, R_32F)                                                                \
  KIND(cublasD##suffix, int, R_64F)                                                                \
  KIND(cublasC##suffix, int, C_32F)                                                                \
  KIND(cublasZ##suffix, int, C_64F)                                                                \
  KIND(cublasS##suffix##_64, int64_t, R_32F)                                                       \
  KIND(cublasD##suffix##_64, int64_t, R_64F)                                                       \
  KIND(cublasC##suffix##_64, int64_t, C_32F)                                                       \
  KIND(cublasZ##suffix##_64, int64_t, C_64F)
#define OF_EACH_SIZE(KIND, name)                                                                   \
  KIND(name, int)                                                                                  \
  KIND(name##_64, int64_t)

OF_EACH_TYPE(GEMM, gemm_v2)
OF_EACH_TYPE(STRIDED, gemmStridedBatched)
OF_EACH_TYPE(BATCHED, gemmBatched)
OF_EACH_SIZE(GEMM_EX, cublasSgemmEx)
OF_EACH_SIZE(GEMM_EX, cublasCgemmEx)
OF_EACH_SIZE(GEMM_EX, cublasGemmEx)
OF_EACH_SIZE(STRIDED_EX, cublasGemmStridedBatchedEx)
OF_EACH_SIZE(BATCHED_EX, cublasGemmBatchedEx)
