/* SPDX-License-Identifier: MIT
 *
 * GEMMs of cuBLAS: how much arithmetic they do, and on which stream.
 */

#include "blas/blas_record.h"
#include "cuda/graphs/captured_kernels.h"
#include "cuda/graphs/cuda_graphs.h"
#include "streams/stream_numbers.h"

const char *const tscope_cublas_sonames[] = {"libcublas.so.13", "libcublas.so.12",
                                             "libcublas.so.11", NULL};

u8 gemm_dtype(cudaDataType type) {
  enum { R_8F_E4M3 = 28, R_8F_E5M2 = 29, R_4F_E2M1 = 33 }; /* not in every CUDA's header */
  static const u8 dtypes[] = {
      [CUDA_R_16F] = TSCOPE_DTYPE_F16,   [CUDA_R_16BF] = TSCOPE_DTYPE_BF16,
      [CUDA_R_32F] = TSCOPE_DTYPE_F32,   [CUDA_R_64F] = TSCOPE_DTYPE_F64,
      [CUDA_C_32F] = TSCOPE_DTYPE_C64,   [CUDA_C_64F] = TSCOPE_DTYPE_C128,
      [CUDA_R_8I] = TSCOPE_DTYPE_I8,     [CUDA_R_8U] = TSCOPE_DTYPE_U8,
      [CUDA_R_16I] = TSCOPE_DTYPE_I16,   [CUDA_R_32I] = TSCOPE_DTYPE_I32,
      [CUDA_R_32U] = TSCOPE_DTYPE_U32,   [CUDA_R_64I] = TSCOPE_DTYPE_I64,
      [CUDA_R_64U] = TSCOPE_DTYPE_U64,   [R_8F_E4M3] = TSCOPE_DTYPE_F8E4M3,
      [R_8F_E5M2] = TSCOPE_DTYPE_F8E5M2, [R_4F_E2M1] = TSCOPE_DTYPE_F4E2M1X2,
  };
  return (unsigned)type < sizeof(dtypes) ? dtypes[type] : TSCOPE_DTYPE_UNKNOWN;
}

u64 gemm_flops(u64 operations, i64 m, i64 n, i64 k, i64 batch) {
  u64 flops = operations;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || __builtin_mul_overflow(flops, (u64)m, &flops) ||
      __builtin_mul_overflow(flops, (u64)n, &flops) ||
      __builtin_mul_overflow(flops, (u64)k, &flops) ||
      __builtin_mul_overflow(flops, (u64)batch, &flops))
    return GEMM_FLOPS_UNKNOWN;
  return flops;
}

cudaStream_t blas_handle_stream(cublasHandle_t handle) {
  cublasStatus_t (*get)(cublasHandle_t, cudaStream_t *) =
      TSCOPE_FUNCTION_OF_COPY("cublasGetStream_v2", tscope_cublas_sonames, tscope_self);
  cudaStream_t stream = NULL;
  return get && get(handle, &stream) == CUBLAS_STATUS_SUCCESS ? stream : NULL;
}

static u32 dimension(i64 value) {
  return value >= 0 && value < TSCOPE_UNKNOWN ? (u32)value : TSCOPE_UNKNOWN;
}

/* What each replay of the graph does. Nothing if the table of captures is full. */
static void write_captured(struct tscope_thread *thread, const struct gemm_facts *facts,
                           cudaStream_t stream, u16 index) {
  struct {
    struct tscope_graph_gemm_record gemm;
    u32 shapes[CAPTURED_KERNELS];
  } record = {{.flops = facts->flops,
               .m = dimension(facts->m),
               .n = dimension(facts->n),
               .k = dimension(facts->k),
               .batch = dimension(facts->batch),
               .a = facts->a,
               .b = facts->b,
               .c = facts->c,
               .compute = facts->compute,
               .captured = graph_capture_number(TSCOPE_STREAM_LEGACY, stream)}};
  record.gemm.shapes = captured_kernels_get(record.shapes, &record.gemm.kernels);
  u32 words = (record.gemm.shapes + 1) / 2;
  if (record.gemm.captured)
    tscope_retain(thread, facts->start, TSCOPE_REC_GRAPH_GEMM, index, &record,
                  (u32)sizeof(record.gemm) + 8 * words);
}

void gemm_write(struct tscope_thread *thread, const struct gemm_facts *facts, cublasHandle_t handle,
                cudaStream_t stream) {
  TSCOPE_KEEP_ERRNO;
  if (handle)
    stream = blas_handle_stream(handle);
  u16 index = stream_index(thread, TSCOPE_STREAM_LEGACY, stream);
  u32 captured = graph_known_capture(TSCOPE_STREAM_LEGACY, stream) != 0;
  if (TSCOPE_UNLIKELY(captured))
    write_captured(thread, facts, stream, index);
  struct tscope_gemm_record *record =
      tscope_reserve(thread, &thread->ring, facts->start, TSCOPE_REC_GEMM, index, sizeof(*record));
  if (record) {
    *record = (struct tscope_gemm_record){.header = record->header,
                                          .m = dimension(facts->m),
                                          .n = dimension(facts->n),
                                          .k = dimension(facts->k),
                                          .batch = dimension(facts->batch),
                                          .captured = captured,
                                          .flops = facts->flops,
                                          .a = facts->a,
                                          .b = facts->b,
                                          .c = facts->c,
                                          .compute = facts->compute,
                                          .timed = gemm_now.timed};
    tscope_commit_dur(thread, &thread->ring, sizeof(*record), facts->start);
  }
}

void record_gemm(struct tscope_thread *thread, u64 start, cublasStatus_t result,
                 cublasHandle_t handle, i64 m, i64 n, i64 k, i64 batch, cudaDataType a,
                 cudaDataType b, cudaDataType c, int compute, enum gemm_method method) {
  if (result != CUBLAS_STATUS_SUCCESS)
    return;
  gemm_write(thread,
             &(struct gemm_facts){.start = start,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .batch = batch,
                                  .flops = gemm_flops(gemm_operations(a, method), m, n, k, batch),
                                  .a = gemm_dtype(a),
                                  .b = gemm_dtype(b),
                                  .c = gemm_dtype(c),
                                  .compute = gemm_compute(handle, a, compute)},
             handle, NULL);
}

static i64 number_at(const void *array, i64 i, size_t bytes) {
  return bytes == sizeof(i64) ? ((const i64 *)array)[i] : ((const int *)array)[i];
}

/* The number that all so far have in common; -1 if they differ. */
static i64 common_value(i64 first, i64 value) {
  return first == value ? first : -1;
}

void record_gemm_grouped(struct tscope_thread *thread, u64 start, cublasStatus_t result,
                         cublasHandle_t handle, const void *m, const void *n, const void *k,
                         i64 groups, const void *sizes, size_t number_bytes, cudaDataType a,
                         cudaDataType b, cudaDataType c, int compute) {
  if (result != CUBLAS_STATUS_SUCCESS || groups <= 0)
    return;
  struct gemm_facts facts = {.start = start,
                             .a = gemm_dtype(a),
                             .b = gemm_dtype(b),
                             .c = gemm_dtype(c),
                             .compute = gemm_compute(handle, a, compute)};
  u64 operations = gemm_operations(a, GEMM_PLAIN);
  for (i64 i = 0; i < groups; i++) {
    i64 rows = number_at(m, i, number_bytes), columns = number_at(n, i, number_bytes);
    i64 inner = number_at(k, i, number_bytes), gemms = number_at(sizes, i, number_bytes);
    u64 flops = gemm_flops(operations, rows, columns, inner, gemms);
    facts.m = i ? common_value(facts.m, rows) : rows;
    facts.n = i ? common_value(facts.n, columns) : columns;
    facts.k = i ? common_value(facts.k, inner) : inner;
    facts.batch += gemms;
    if (facts.flops != GEMM_FLOPS_UNKNOWN &&
        (flops == GEMM_FLOPS_UNKNOWN || __builtin_add_overflow(facts.flops, flops, &facts.flops)))
      facts.flops = GEMM_FLOPS_UNKNOWN;
  }
  gemm_write(thread, &facts, handle, NULL);
}
