/* SPDX-License-Identifier: MIT
 *
 * A library with every function that tscope hooks, and those that it queries, generated from the
 * registries. Each notes its arguments and behaves as the test says.
 */
#pragma once

#include "blas/blas_types.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stddef.h>
#include <string.h>

enum { FAKE_MAX_ARGS = 24, FAKE_ARG_BYTES = 128 };

struct fake_call {
  const char *name;
  int n;
  size_t bytes[FAKE_MAX_ARGS];
  unsigned char args[FAKE_MAX_ARGS][FAKE_ARG_BYTES];
};

/* Argument i as a type. */
#define FAKE_ARG(call, i, type) (*(type *)memcpy(&(type){0}, (call)->args[i], sizeof(type)))

/* What the next calls do and return; NULL: they do nothing and return 0. */
extern int (*fake_behaviour)(const struct fake_call *call);

extern __thread struct fake_call fake_last; /* on this thread, without queries */

/* Functions that tscope queries but does not hook, in the form of the registries. */
#define FAKE_QUERIES(HOOK)                                                                         \
  HOOK(ncclCommCount, 0, ncclResult_t, (ncclComm_t comm, int *count), (comm, count), 0, 0, ())     \
  HOOK(ncclCommUserRank, 0, ncclResult_t, (ncclComm_t comm, int *rank), (comm, rank), 0, 0, ())    \
  HOOK(ncclCommCuDevice, 0, ncclResult_t, (ncclComm_t comm, int *device), (comm, device), 0, 0,    \
       ())                                                                                         \
  HOOK(cublasGetStream_v2, 0, cublasStatus_t, (cublasHandle_t handle, cudaStream_t * stream),      \
       (handle, stream), 0, 0, ())                                                                 \
  HOOK(cublasGetMathMode, 0, cublasStatus_t, (cublasHandle_t handle, int *mode), (handle, mode),   \
       0, 0, ())                                                                                   \
  HOOK(cublasLtMatrixLayoutGetAttribute, 0, cublasStatus_t,                                        \
       (cublasLtMatrixLayout_t layout, int attribute, void *value, size_t bytes, size_t *written), \
       (layout, attribute, value, bytes, written), 0, 0, ())                                       \
  HOOK(cublasLtMatmulDescGetAttribute, 0, cublasStatus_t,                                          \
       (cublasLtMatmulDesc_t desc, int attribute, void *value, size_t bytes, size_t *written),     \
       (desc, attribute, value, bytes, written), 0, 0, ())                                         \
  HOOK(cuStreamGetCaptureInfo_v2, 0, int,                                                          \
       (cudaStream_t stream, int *status, unsigned long long *id, void *graph, void *edges,        \
        void *n),                                                                                  \
       (stream, status, id, graph, edges, n), 0, 0, ())                                            \
  HOOK(ncclGetVersion, 0, ncclResult_t, (int *version), (version), 0, 0, ())                       \
  HOOK(cudaDriverGetVersion, 0, cudaError_t, (int *version), (version), 0, 0, ())                  \
  HOOK(cudaRuntimeGetVersion, 0, cudaError_t, (int *version), (version), 0, 0, ())                 \
  HOOK(cudaFuncGetName, 0, cudaError_t, (const char **name, const void *func), (name, func), 0, 0, \
       ())                                                                                         \
  HOOK(cudaPeekAtLastError, 0, cudaError_t, (void), (), 0, 0, ())                                  \
  HOOK(cudaGetLastError, 0, cudaError_t, (void), (), 0, 0, ())                                     \
  HOOK(cudaGetDevice, 0, cudaError_t, (int *device), (device), 0, 0, ())                           \
  HOOK(cudaGetDeviceProperties, 0, cudaError_t, (void *properties, int device),                    \
       (properties, device), 0, 0, ())
