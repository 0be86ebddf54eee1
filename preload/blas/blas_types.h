/* SPDX-License-Identifier: MIT
 *
 * cuBLAS as its ABI has it: handles and descriptors are pointers, enumerations are ints. So a build
 * needs no cuBLAS header. Where there is one, tests/unit/hooks/hooks_blas_api.c compares the
 * registry with it.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdint.h>

#ifndef CUBLAS_API_H_
typedef struct cublasContext *cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1 } cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_COMPUTE_32F = 68 } cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulAlgo_t cublasLtMatmulAlgo_t;
#endif
