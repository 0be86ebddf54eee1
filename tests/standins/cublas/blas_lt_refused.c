/* SPDX-License-Identifier: MIT
 *
 * As in blas_refused.c: a program of cublasLt's own algorithms has none here.
 */
#define REFUSED(name)                                                                              \
  __attribute__((visibility("default"))) int name(void);                                           \
  __attribute__((visibility("default"))) int name(void) {                                          \
    return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */                                                   \
  }

REFUSED(cublasLtMatmulAlgoCheck)
REFUSED(cublasLtMatmulAlgoConfigGetAttribute)
REFUSED(cublasLtMatmulAlgoConfigSetAttribute)
REFUSED(cublasLtMatmulAlgoInit)
