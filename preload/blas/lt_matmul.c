/* SPDX-License-Identifier: MIT
 *
 * GEMMs of cuBLASLt: their shape is in descriptors; the library is queried for their content. This
 * needs no GPU and changes nothing. Attributes and their types:
 * https://docs.nvidia.com/cuda/cublas/#cublasltmatrixlayoutattribute-t
 */
#include "blas/blas_record.h"

const char *const tscope_cublaslt_sonames[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                               "libcublasLt.so.11", NULL};

enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLS = 3, LAYOUT_BATCH = 5 };
enum { MATMUL_COMPUTE_TYPE = 0, MATMUL_TRANSA = 3 };

typedef cublasStatus_t get_attribute(const void *what, int attribute, void *value, size_t bytes,
                                     size_t *written);

/* An attribute of at most eight bytes; `otherwise` if there is none. */
static i64 attribute_of(get_attribute *get, const void *what, int attribute, size_t bytes,
                        i64 otherwise) {
  i64 value = 0;
  size_t written = 0;
  if (!get || !what || get(what, attribute, &value, bytes, &written) != CUBLAS_STATUS_SUCCESS ||
      written > sizeof(value))
    return otherwise;
  return value;
}

static i64 layout(cublasLtMatrixLayout_t of, int attribute, size_t bytes, i64 otherwise) {
  get_attribute *get = TSCOPE_FUNCTION_OF_COPY("cublasLtMatrixLayoutGetAttribute",
                                               tscope_cublaslt_sonames, tscope_self);
  return attribute_of(get, of, attribute, bytes, otherwise);
}

static i64 descriptor(cublasLtMatmulDesc_t of, int attribute, i64 otherwise) {
  get_attribute *get = TSCOPE_FUNCTION_OF_COPY("cublasLtMatmulDescGetAttribute",
                                               tscope_cublaslt_sonames, tscope_self);
  return attribute_of(get, of, attribute, sizeof(i32), otherwise);
}

struct gemm_facts lt_matmul_facts(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
  cudaDataType type = (cudaDataType)layout(a, LAYOUT_TYPE, sizeof(u32), -1);
  bool transposed = descriptor(desc, MATMUL_TRANSA, CUBLAS_OP_N) != CUBLAS_OP_N;
  struct gemm_facts facts = {
      .m = layout(d, LAYOUT_ROWS, sizeof(u64), -1),
      .n = layout(d, LAYOUT_COLS, sizeof(u64), -1),
      .k = layout(a, transposed ? LAYOUT_ROWS : LAYOUT_COLS, sizeof(u64), -1),
      .batch = layout(d, LAYOUT_BATCH, sizeof(i32), -1),
      .a = gemm_dtype(type),
      .b = gemm_dtype((cudaDataType)layout(b, LAYOUT_TYPE, sizeof(u32), -1)),
      .c = gemm_dtype((cudaDataType)layout(d, LAYOUT_TYPE, sizeof(u32), -1)),
      .compute = gemm_compute(NULL, type, (int)descriptor(desc, MATMUL_COMPUTE_TYPE, 0))};
  facts.flops =
      gemm_flops(gemm_operations(type, GEMM_PLAIN), facts.m, facts.n, facts.k, facts.batch);
  return facts;
}

void record_lt_matmul(struct tscope_thread *thread, u64 start, cublasStatus_t result,
                      cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                      cublasLtMatrixLayout_t d, cudaStream_t stream) {
  if (result != CUBLAS_STATUS_SUCCESS)
    return;
  struct gemm_facts facts = lt_matmul_facts(desc, a, b, d);
  facts.start = start;
  gemm_write(thread, &facts, NULL, stream);
}
