/* SPDX-License-Identifier: MIT
 *
 * cuBLAS handles: create, destroy, get and set their settings.
 */
#include <stdlib.h>

#include "handle.h"

BLAS_API int cublasCreate_v2(struct cublasContext **handle) {
  *handle = calloc(1, sizeof(**handle));
  return *handle ? BLAS_SUCCESS : BLAS_NOT_INITIALIZED;
}

BLAS_API int cublasDestroy_v2(struct cublasContext *handle) {
  free(handle);
  return BLAS_SUCCESS;
}

BLAS_API int cublasGetVersion_v2(struct cublasContext *handle, int *version) {
  (void)handle;
  *version = 130100;
  return BLAS_SUCCESS;
}

BLAS_API size_t cublasGetCudartVersion(void) {
  return 13000;
}

BLAS_API int cublasGetProperty(int property, int *value) {
  static const int version[] = {13, 1, 0};
  if (property < 0 || property > 2)
    return BLAS_INVALID_VALUE;
  *value = version[property];
  return BLAS_SUCCESS;
}

BLAS_API int cublasSetStream_v2(struct cublasContext *handle, void *stream) {
  if (!handle)
    return BLAS_NOT_INITIALIZED;
  handle->stream = stream;
  return BLAS_SUCCESS;
}

BLAS_API int cublasGetStream_v2(struct cublasContext *handle, void **stream) {
  if (!handle)
    return BLAS_NOT_INITIALIZED;
  *stream = handle->stream;
  return BLAS_SUCCESS;
}

BLAS_API int cublasSetWorkspace_v2(struct cublasContext *handle, void *workspace, size_t bytes) {
  (void)workspace, (void)bytes;
  return handle ? BLAS_SUCCESS : BLAS_NOT_INITIALIZED;
}

#define SETTING(name, member)                                                                      \
  BLAS_API int cublasSet##name(struct cublasContext *handle, int value) {                          \
    if (!handle)                                                                                   \
      return BLAS_NOT_INITIALIZED;                                                                 \
    handle->member = value;                                                                        \
    return BLAS_SUCCESS;                                                                           \
  }                                                                                                \
  BLAS_API int cublasGet##name(struct cublasContext *handle, int *value) {                         \
    if (!handle)                                                                                   \
      return BLAS_NOT_INITIALIZED;                                                                 \
    *value = handle->member;                                                                       \
    return BLAS_SUCCESS;                                                                           \
  }
SETTING(MathMode, math_mode)
SETTING(PointerMode_v2, pointer_mode)
SETTING(AtomicsMode, atomics_mode)
SETTING(SmCountTarget, sm_count)

BLAS_API const char *cublasGetStatusName(int status) {
  return status == BLAS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_UNKNOWN";
}

BLAS_API const char *cublasGetStatusString(int status) {
  return status == BLAS_SUCCESS ? "success" : "stand-in cuBLAS error";
}
