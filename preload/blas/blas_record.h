/* SPDX-License-Identifier: MIT
 *
 * What is recorded about each GEMM: the recorders that blas_hooks.def names. See hooks/wrapper.h
 * for their shape; blas_wrappers.c says how these differ. A call that failed launched nothing and
 * is not recorded.
 */
#pragma once

#include "blas/blas_types.h"
#include "gpu/event_pairs.h"
#include "gpu/gpu_clock.h"

/* The GEMM in progress on this thread. */
struct gemm_in_progress {
  const struct tscope_guard *guard; /* its wrapper's, NULL if there is none */
  u32 timed;                        /* number of the pair of events around it, 0 if there is none */
};
extern __thread struct gemm_in_progress gemm_now __attribute__((tls_model("initial-exec")));

/* The pair of events around the GEMM that is about to be called, which then has a number. 0 for
 * most GEMMs, since a pair costs as much as several launches. One in TSCOPE_GPU_GEMMS calls of a
 * thread is picked at random: a fixed choice would pick the same GEMMs of a model in every step. */
TSCOPE_NOINLINE event_pair_ticket gemm_pair_begin(struct tscope_thread *thread,
                                                  cudaStream_t stream);

/* Ends it; `name` NULL if the call failed. */
TSCOPE_NOINLINE void gemm_pair_end(event_pair_ticket pair, const char *name);

/* The stream that a handle puts its work on. */
cudaStream_t blas_handle_stream(cublasHandle_t handle);

/* How complex numbers are multiplied: with four real multiplications, or with three (Gauss). */
enum gemm_method { GEMM_PLAIN, GEMM_3M };

/* Real operations of one multiply-add of elements of a type. */
static inline u64 gemm_operations(cudaDataType type, enum gemm_method method) {
  switch ((int)type) {
  case CUDA_C_16F:
  case CUDA_C_16BF:
  case CUDA_C_32F:
  case CUDA_C_64F:
    return method == GEMM_3M ? 6 : 8;
  default:
    return 2;
  }
}

u8 gemm_dtype(cudaDataType type);

/* The cublasComputeType_t with which elements of a type are really multiplied: the one that the
 * call requests (0: the function's name implies it), changed by the handle's math mode and NVIDIA's
 * environment variables. 0 if it cannot be known. `handle` is NULL for cuBLASLt, which has no such
 * mode. */
u8 gemm_compute(cublasHandle_t handle, cudaDataType type, int requested);

#define GEMM_FLOPS_UNKNOWN UINT64_MAX

/* operations x m x n x k x batch; GEMM_FLOPS_UNKNOWN if a factor is negative or the product needs
 * more than 64 bits.
 */
u64 gemm_flops(u64 operations, i64 m, i64 n, i64 k, i64 batch);

/* What the GEMMs of one call are. */
struct gemm_facts {
  u64 start;
  i64 m, n, k, batch; /* -1 where it is not one number */
  u64 flops;
  u8 a, b, c, compute;
};

/* Writes the record. `handle` is a cublasHandle_t that knows the stream; if it is NULL, the stream
 * is `stream`. Preserves errno. */
void gemm_write(struct tscope_thread *thread, const struct gemm_facts *facts, cublasHandle_t handle,
                cudaStream_t stream);

/* A recorder R has R_stream(what...) beside it: the stream that the GEMM is put on. */
enum { gemm_wakes = TSCOPE_WAKES };
#define gemm_stream(handle, ...) blas_handle_stream(handle)
void record_gemm(struct tscope_thread *thread, u64 start, cublasStatus_t result,
                 cublasHandle_t handle, i64 m, i64 n, i64 k, i64 batch, cudaDataType a,
                 cudaDataType b, cudaDataType c, int compute, enum gemm_method method);

/* gemm_grouped: the sizes are in arrays of the job, of int or int64_t. */
enum { gemm_grouped_wakes = TSCOPE_WAKES };
#define gemm_grouped_stream(handle, ...) blas_handle_stream(handle)
void record_gemm_grouped(struct tscope_thread *thread, u64 start, cublasStatus_t result,
                         cublasHandle_t handle, const void *m, const void *n, const void *k,
                         i64 groups, const void *sizes, size_t number_bytes, cudaDataType a,
                         cudaDataType b, cudaDataType c, int compute);

/* lt_matmul: everything is in descriptors; the library is queried for their content. */
enum { lt_matmul_wakes = TSCOPE_WAKES };
#define lt_matmul_stream(desc, a, b, d, stream) (stream)
void record_lt_matmul(struct tscope_thread *thread, u64 start, cublasStatus_t result,
                      cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                      cublasLtMatrixLayout_t d, cudaStream_t stream);

/* The facts of a matmul from its descriptors, which any cuBLASLt can read. */
struct gemm_facts lt_matmul_facts(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d);

extern const char *const tscope_cublas_sonames[];
extern const char *const tscope_cublaslt_sonames[];
