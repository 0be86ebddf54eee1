/* SPDX-License-Identifier: MIT
 *
 * What is recorded of GEMMs: sizes, types, and operations compared with closed forms, the stream,
 * and the launches inside; and nothing is recorded twice.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "blas/blas_hooks.def"
#include "blas/blas_record.h"
#include "cuda/graphs/cuda_graphs.h"
#include "hooks_fakes.h"
#include "hooks_trace.h"

#define HOOK(name, since, type, params, args, failure, recorder, what) type name params;
TSCOPE_BLAS_HOOKS(HOOK)
#undef HOOK

static const cudaStream_t a_stream = (cudaStream_t)0x20000;
static const cublasHandle_t a_handle = (cublasHandle_t)0x30000;

/* Descriptors of the fake cuBLASLt, as values of their attributes. */
struct layout {
  u32 type;
  u64 rows, cols;
  i32 batch;
};
struct matmul {
  i32 compute, transposed_a;
};

static struct {
  cublasStatus_t result;
  int capture_queries;
  bool calls_lt;    /* every cuBLAS GEMM calls cuBLASLt's */
  int math_mode;    /* of every handle; -1: unknown */
  int kernels;      /* launched by each GEMM through the runtime */
  int lt_attribute; /* the attribute that cuBLASLt does not know, -1 for none */
} blas;

static void put(const struct fake_call *call, const void *value, size_t bytes) {
  memcpy(FAKE_ARG(call, 2, void *), value, bytes);
  *FAKE_ARG(call, 4, size_t *) = bytes;
}

static int get_layout_attribute(const struct fake_call *call) {
  const struct layout *layout = FAKE_ARG(call, 0, const struct layout *);
  int attribute = FAKE_ARG(call, 1, int);
  if (attribute == blas.lt_attribute)
    return 7;
  if (attribute == 0)
    put(call, &layout->type, sizeof(layout->type));
  else if (attribute == 2)
    put(call, &layout->rows, sizeof(layout->rows));
  else if (attribute == 3)
    put(call, &layout->cols, sizeof(layout->cols));
  else
    put(call, &layout->batch, sizeof(layout->batch));
  return 0;
}

static int get_matmul_attribute(const struct fake_call *call) {
  const struct matmul *matmul = FAKE_ARG(call, 0, const struct matmul *);
  put(call, FAKE_ARG(call, 1, int) ? &matmul->transposed_a : &matmul->compute, sizeof(i32));
  return 0;
}

static const struct layout inner = {CUDA_R_32F, 2, 3, 1};
static const struct matmul plain = {68, 0};

static int lt(const struct matmul *desc, const struct layout *a, const struct layout *b,
              const struct layout *d) {
  return cublasLtMatmul(NULL, (cublasLtMatmulDesc_t)desc, NULL, NULL, (cublasLtMatrixLayout_t)a,
                        NULL, (cublasLtMatrixLayout_t)b, NULL, NULL, (cublasLtMatrixLayout_t)d,
                        NULL, (cublasLtMatrixLayout_t)d, NULL, NULL, 0, a_stream);
}

static int behave(const struct fake_call *call) {
  static char kernel;
  const char *name = call->name;
  if (!strcmp(name, "cublasGetStream_v2"))
    *FAKE_ARG(call, 1, cudaStream_t *) = a_stream;
  else if (!strcmp(name, "cublasGetMathMode"))
    return blas.math_mode < 0 ? 1 : (*FAKE_ARG(call, 1, int *) = blas.math_mode, 0);
  else if (!strcmp(name, "cuStreamGetCaptureInfo_v2")) {
    blas.capture_queries++;
    *FAKE_ARG(call, 1, int *) = 1;
    *FAKE_ARG(call, 2, unsigned long long *) = 9;
  } else if (!strcmp(name, "cublasLtMatrixLayoutGetAttribute"))
    return get_layout_attribute(call);
  else if (!strcmp(name, "cublasLtMatmulDescGetAttribute"))
    return get_matmul_attribute(call);
  else if (!strncmp(name, "cublas", 6)) {
    for (int i = 0; i < blas.kernels; i++)
      cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, a_stream);
    if (blas.calls_lt && strcmp(name, "cublasLtMatmul"))
      lt(&plain, &inner, &inner, &inner);
    return blas.result;
  }
  return 0;
}

static int fresh(void **state) {
  (void)state;
  memset(&blas, 0, sizeof(blas));
  blas.lt_attribute = -1;
  fake_behaviour = behave;
  return 0;
}

static void expect(struct tscope_gemm_record got, u32 m, u32 n, u32 k, u32 batch, double flops,
                   enum tscope_dtype dtype) {
  assert_int_equal(got.m, m);
  assert_int_equal(got.n, n);
  assert_int_equal(got.k, k);
  assert_int_equal(got.batch, batch);
  assert_true((double)got.flops == flops);
  assert_int_equal(got.a, dtype);
  assert_int_equal(got.captured, 0);
}

static void every_plain_gemm_is_2mnk(void **state) {
  (void)state;
  assert_int_equal(cublasSgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3),
                   0);
  expect(LAST(GEMM, gemm), 3, 5, 7, 1, 2.0 * 3 * 5 * 7, TSCOPE_DTYPE_F32);
  cublasDgemm_v2_64(a_handle, 0, 0, 3, 5, 11, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  expect(LAST(GEMM, gemm), 3, 5, 11, 1, 2.0 * 3 * 5 * 11, TSCOPE_DTYPE_F64);
  cublasHgemm(a_handle, 0, 0, 13, 5, 11, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  expect(LAST(GEMM, gemm), 13, 5, 11, 1, 2.0 * 13 * 5 * 11, TSCOPE_DTYPE_F16);
}

/* (a + bi)(c + di) is four real products and two sums, and adding it to a sum is two more: 8
 * operations. By Gauss's method it is three real products, each in a real GEMM: 3 x 2. */
static void complex_gemms_are_counted_in_real_operations(void **state) {
  (void)state;
  cublasCgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  expect(LAST(GEMM, gemm), 3, 5, 7, 1, 8.0 * 3 * 5 * 7, TSCOPE_DTYPE_C64);
  cublasZgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  expect(LAST(GEMM, gemm), 3, 5, 7, 1, 8.0 * 3 * 5 * 7, TSCOPE_DTYPE_C128);
  cublasZgemm3m(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  expect(LAST(GEMM, gemm), 3, 5, 7, 1, 6.0 * 3 * 5 * 7, TSCOPE_DTYPE_C128);
}

static void batches_multiply(void **state) {
  (void)state;
  cublasSgemmStridedBatched(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, 0, NULL, 7, 0, NULL, NULL, 3, 0,
                            9);
  expect(LAST(GEMM, gemm), 3, 5, 7, 9, 2.0 * 3 * 5 * 7 * 9, TSCOPE_DTYPE_F32);
  cublasDgemmBatched_64(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3, 10);
  expect(LAST(GEMM, gemm), 3, 5, 7, 10, 2.0 * 3 * 5 * 7 * 10, TSCOPE_DTYPE_F64);
  cublasGemmStridedBatchedEx(a_handle, 0, 0, 64, 128, 256, NULL, NULL, CUDA_R_16BF, 3, 0, NULL,
                             CUDA_R_16BF, 7, 0, NULL, NULL, CUDA_R_32F, 3, 0, 12, 68, -1);
  struct tscope_gemm_record got = LAST(GEMM, gemm);
  expect(got, 64, 128, 256, 12, 2.0 * 64 * 128 * 256 * 12, TSCOPE_DTYPE_BF16);
  assert_int_equal(got.b, TSCOPE_DTYPE_BF16);
  assert_int_equal(got.c, TSCOPE_DTYPE_F32);
  assert_int_equal(got.compute, 68);
  cublasGemmBatchedEx_64(a_handle, 0, 0, 4, 4, 4, NULL, NULL, CUDA_C_32F, 3, NULL, CUDA_C_32F, 7,
                         NULL, NULL, CUDA_C_32F, 3, 2, 68, -1);
  expect(LAST(GEMM, gemm), 4, 4, 4, 2, 8.0 * 4 * 4 * 4 * 2, TSCOPE_DTYPE_C64);
}

static void groups_add_up(void **state) {
  (void)state;
  const int m[] = {2, 2, 2}, n[] = {3, 5, 7}, k[] = {11, 11, 11}, sizes[] = {1, 4, 2};
  double flops = 2.0 * 2 * 3 * 11 * 1 + 2.0 * 2 * 5 * 11 * 4 + 2.0 * 2 * 7 * 11 * 2;
  cublasSgemmGroupedBatched(a_handle, NULL, NULL, m, n, k, NULL, NULL, m, NULL, m, NULL, NULL, m, 3,
                            sizes);
  expect(LAST(GEMM, gemm), 2, TSCOPE_UNKNOWN, 11, 7, flops, TSCOPE_DTYPE_F32);
  const int64_t m64[] = {1ll << 33}, n64[] = {1}, k64[] = {2}, sizes64[] = {3};
  cublasGemmGroupedBatchedEx_64(a_handle, NULL, NULL, m64, n64, k64, NULL, NULL, CUDA_R_16F, m64,
                                NULL, CUDA_R_16F, m64, NULL, NULL, CUDA_R_16F, m64, 1, sizes64, 68);
  expect(LAST(GEMM, gemm), TSCOPE_UNKNOWN, 1, 2, 3, 2.0 * (double)(1ll << 33) * 2 * 3,
         TSCOPE_DTYPE_F16);
}

static void lt_shapes_come_from_the_descriptors(void **state) {
  (void)state;
  enum { E4M3 = 28, E5M2 = 29 };
  struct layout a = {E4M3, 4096, 512, 6}, b = {E5M2, 4096, 1024, 6},
                d = {CUDA_R_16BF, 512, 1024, 6};
  const struct matmul transposed = {68, 1};
  assert_int_equal(lt(&transposed, &a, &b, &d), 0);
  struct tscope_gemm_record got = LAST(GEMM, gemm);
  expect(got, 512, 1024, 4096, 6, 2.0 * 512 * 1024 * 4096 * 6, TSCOPE_DTYPE_F8E4M3);
  assert_int_equal(got.b, TSCOPE_DTYPE_F8E5M2);
  assert_int_equal(got.c, TSCOPE_DTYPE_BF16);
  a = (struct layout){CUDA_R_16F, 512, 4096, 6};
  lt(&plain, &a, &b, &d);
  expect(LAST(GEMM, gemm), 512, 1024, 4096, 6, 2.0 * 512 * 1024 * 4096 * 6, TSCOPE_DTYPE_F16);
}

static void missing_attributes_are_unknown(void **state) {
  (void)state;
  struct layout a = {CUDA_R_16F, 8, 16, 1}, d = {CUDA_R_16F, 8, 4, 1};
  blas.lt_attribute = 3;
  lt(&plain, &a, &a, &d);
  struct tscope_gemm_record got = LAST(GEMM, gemm);
  assert_int_equal(got.m, 8);
  assert_int_equal(got.n, TSCOPE_UNKNOWN);
  assert_int_equal(got.k, TSCOPE_UNKNOWN);
  assert_true(got.flops == GEMM_FLOPS_UNKNOWN);
  int64_t huge = 1ll << 40;
  cublasSgemm_v2_64(a_handle, 0, 0, huge, huge, huge, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  assert_true(LAST(GEMM, gemm).flops == GEMM_FLOPS_UNKNOWN);
}

static void a_gemm_inside_a_gemm_counts_once(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_GEMM);
  blas.calls_lt = true;
  cublasGemmEx(a_handle, 0, 0, 3, 5, 7, NULL, NULL, CUDA_R_16F, 3, NULL, CUDA_R_16F, 7, NULL, NULL,
               CUDA_R_16F, 3, 68, -1);
  assert_int_equal(count(TSCOPE_REC_GEMM), before + 1);
  expect(LAST(GEMM, gemm), 3, 5, 7, 1, 2.0 * 3 * 5 * 7, TSCOPE_DTYPE_F16);
}

static void launches_inside_are_recorded_within_its_time(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_LAUNCH);
  blas.kernels = 2;
  cublasSgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), before + 2);
  struct trace trace = trace_read();
  struct trace_record at = {0};
  u64 gemm_begin = 0, gemm_end = 0, launched = 0;
  u16 gemm_stream = 0, launch_stream = 1;
  while (trace_next_of(&trace, &at, TSCOPE_REC_GEMM)) {
    gemm_begin = at.time;
    gemm_end = gemm_begin + ((const struct tscope_gemm_record *)(const void *)at.record)->dur;
    gemm_stream = at.record->tag;
  }
  at = (struct trace_record){0};
  while (trace_next_of(&trace, &at, TSCOPE_REC_LAUNCH)) {
    launched = at.time;
    launch_stream = at.record->tag;
  }
  trace_close(&trace);
  assert_true(gemm_begin <= launched && launched <= gemm_end);
  assert_int_equal(gemm_stream, launch_stream);
}

enum { DEFAULT_MATH, TENSOR_OP_MATH, PEDANTIC_MATH, TF32_MATH, EMULATED_32F_MATH };
enum { EMULATED_64F_MATH = 8, NO_REDUCED_REDUCTION = 16 };

static u8 single_under(int mode) {
  blas.math_mode = mode;
  cublasSgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  return LAST(GEMM, gemm).compute;
}

static u8 double_under(int mode) {
  blas.math_mode = mode;
  cublasDgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  return LAST(GEMM, gemm).compute;
}

static u8 compute_recorded(cudaDataType type, int compute) {
  cublasGemmEx(a_handle, 0, 0, 3, 5, 7, NULL, NULL, type, 3, NULL, type, 7, NULL, NULL, type, 3,
               (cublasComputeType_t)compute, -1);
  return LAST(GEMM, gemm).compute;
}

/* cublas_api.h of CUDA 13: 68 is CUBLAS_COMPUTE_32F, 69 its pedantic kind, 77 with TF32 allowed, 74
 * with half precision, 78 emulated; 70, 71 and 79 are the same for doubles. */
static void the_math_mode_counts_where_the_call_leaves_it_open(void **state) {
  (void)state;
  assert_int_equal(single_under(DEFAULT_MATH), 68);
  assert_int_equal(single_under(NO_REDUCED_REDUCTION), 68);
  assert_int_equal(single_under(TF32_MATH), 77);
  assert_int_equal(single_under(TF32_MATH | NO_REDUCED_REDUCTION), 77);
  assert_int_equal(single_under(TENSOR_OP_MATH), 74);
  assert_int_equal(single_under(PEDANTIC_MATH), 69);
  assert_int_equal(single_under(EMULATED_32F_MATH), 78);
  assert_int_equal(single_under(-1), 0);
  assert_int_equal(double_under(TF32_MATH), 70);
  assert_int_equal(double_under(PEDANTIC_MATH), 71);
  assert_int_equal(double_under(EMULATED_64F_MATH), 79);
  blas.math_mode = TF32_MATH;
  assert_int_equal(compute_recorded(CUDA_R_32F, 68), 77); /* the default, which the mode changes */
  assert_int_equal(compute_recorded(CUDA_R_32F, 69), 69);
  assert_int_equal(compute_recorded(CUDA_R_16BF, 68), 68); /* neither factor is single precision */
  blas.math_mode = DEFAULT_MATH;
  assert_int_equal(compute_recorded(CUDA_R_32F, 77), 77);
  blas.math_mode = TF32_MATH; /* a mode of cuBLAS handles; cuBLASLt has none */
  const struct matmul open = {68, 0}, tf32 = {77, 0};
  assert_int_equal(lt(&open, &inner, &inner, &inner), 0);
  assert_int_equal(LAST(GEMM, gemm).compute, 68);
  lt(&tf32, &inner, &inner, &inner);
  assert_int_equal(LAST(GEMM, gemm).compute, 77);
}

/* CUDA is asked only while a capture goes on. */
static void captured_gemms_are_marked(void **state) {
  (void)state;
  cublasSgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  assert_int_equal(blas.capture_queries, 0);
  graph_capture_began(tscope_ticks(), (u64)(uintptr_t)a_stream, 9, NULL);
  cublasSgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3);
  assert_int_equal(LAST(GEMM, gemm).captured, 1);
  graph_capture_ended(tscope_self, (u64)(uintptr_t)a_stream, NULL);
}

static void failed_gemms_are_not_recorded(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_GEMM);
  blas.result = (cublasStatus_t)7;
  assert_int_equal(cublasSgemm_v2(a_handle, 0, 0, 3, 5, 7, NULL, NULL, 3, NULL, 7, NULL, NULL, 3),
                   7);
  assert_int_equal(lt(&plain, &inner, &inner, &inner), 7);
  int many[] = {1};
  cublasSgemmGroupedBatched(a_handle, NULL, NULL, many, many, many, NULL, NULL, many, NULL, many,
                            NULL, NULL, many, 1000000000, many);
  assert_int_equal(count(TSCOPE_REC_GEMM), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(every_plain_gemm_is_2mnk, fresh),
      cmocka_unit_test_setup(complex_gemms_are_counted_in_real_operations, fresh),
      cmocka_unit_test_setup(batches_multiply, fresh),
      cmocka_unit_test_setup(groups_add_up, fresh),
      cmocka_unit_test_setup(lt_shapes_come_from_the_descriptors, fresh),
      cmocka_unit_test_setup(missing_attributes_are_unknown, fresh),
      cmocka_unit_test_setup(a_gemm_inside_a_gemm_counts_once, fresh),
      cmocka_unit_test_setup(launches_inside_are_recorded_within_its_time, fresh),
      cmocka_unit_test_setup(the_math_mode_counts_where_the_call_leaves_it_open, fresh),
      cmocka_unit_test_setup(captured_gemms_are_marked, fresh),
      cmocka_unit_test_setup(failed_gemms_are_not_recorded, fresh),
  };
  return cmocka_run_group_tests(tests, trace_set_up, trace_tear_down);
}
