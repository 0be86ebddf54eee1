/* SPDX-License-Identifier: MIT
 *
 * Compares the registry of GEMMs with NVIDIA's own cuBLAS, if it is installed: prototypes with its
 * headers at compile time, descriptors with those that its library makes at run time. Neither needs
 * a GPU.
 */
#ifdef HAVE_CUBLAS_HEADERS
#include <cublasLt.h>
#include <cublas_v2.h>
#endif

#include <dlfcn.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blas/blas_hooks.def"
#include "blas/blas_record.h"

#ifdef HAVE_CUBLAS_HEADERS
#define HOOK(name, since, type, params, args, failure, recorder, what)                             \
  _Static_assert(__builtin_types_compatible_p(__typeof__(name), type params), #name);
TSCOPE_CUBLAS_HOOKS(HOOK)
TSCOPE_CUBLASLT_HOOKS(HOOK)
#undef HOOK
#endif

static struct {
  int (*layout_create)(void **, int type, uint64_t rows, uint64_t cols, int64_t ld);
  int (*layout_set)(void *, int attribute, const void *value, size_t bytes);
  int (*matmul_create)(void **, int compute, int scale);
  int (*matmul_set)(void *, int attribute, const void *value, size_t bytes);
  int (*layout_destroy)(void *), (*matmul_destroy)(void *);
} lt;

static void *open_first(const char *pattern) {
  glob_t found;
  void *library = NULL;
  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc && !library; i++)
      library = dlopen(found.gl_pathv[i], RTLD_LAZY);
  globfree(&found);
  return library;
}

static void *open_real_library(void) {
  void *library = dlopen("libcublasLt.so.13", RTLD_LAZY);
  const char *const roots[] = {getenv("CUDA_HOME"), "/usr/local/cuda", getenv("TSCOPE_VENV"),
                               getenv("HOME")};
  const char *const below[] = {"lib64/libcublasLt.so.1[23]", "lib64/libcublasLt.so.1[23]",
                               "lib/python3*/site-packages/nvidia/c*/lib/libcublasLt.so.1[23]",
                               ".cache/tscope/venv/lib/python3*/site-packages/nvidia/c*/lib/"
                               "libcublasLt.so.1[23]"};
  for (size_t i = 0; i < LENGTH_OF(roots) && !library; i++) {
    char pattern[4096];
    snprintf(pattern, sizeof(pattern), "%s/%s", roots[i] ? roots[i] : "/nonexistent", below[i]);
    library = open_first(pattern);
  }
  return library;
}

static cublasLtMatrixLayout_t layout(int type, uint64_t rows, uint64_t cols, int32_t batch) {
  void *made;
  assert_int_equal(lt.layout_create(&made, type, rows, cols, (int64_t)rows), 0);
  assert_int_equal(lt.layout_set(made, 5, &batch, sizeof(batch)), 0);
  return made;
}

static cublasLtMatmulDesc_t matmul(int compute, int scale, int32_t transposed_a) {
  void *made;
  assert_int_equal(lt.matmul_create(&made, compute, scale), 0);
  assert_int_equal(lt.matmul_set(made, 3, &transposed_a, sizeof(transposed_a)), 0);
  return made;
}

/* What is read of a GEMM. Frees its descriptors. */
static struct gemm_facts facts_of(cublasLtMatmulDesc_t gemm, cublasLtMatrixLayout_t a,
                                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c) {
  struct gemm_facts facts = lt_matmul_facts(gemm, a, b, c);
  assert_int_equal(lt.matmul_destroy(gemm), 0);
  assert_int_equal(lt.layout_destroy(a), 0);
  assert_int_equal(lt.layout_destroy(b), 0);
  assert_int_equal(lt.layout_destroy(c), 0);
  return facts;
}

static void real_descriptors_are_read_right(void **state) {
  (void)state;
  enum { E4M3 = 28, E5M2 = 29 };
  struct gemm_facts facts =
      facts_of(matmul(68, CUDA_R_32F, 1), layout(CUDA_R_16BF, 4096, 512, 6),
               layout(CUDA_R_16BF, 4096, 1024, 6), layout(CUDA_R_32F, 512, 1024, 6));
  assert_int_equal(facts.m, 512);
  assert_int_equal(facts.n, 1024);
  assert_int_equal(facts.k, 4096);
  assert_int_equal(facts.batch, 6);
  assert_int_equal(facts.a, TSCOPE_DTYPE_BF16);
  assert_int_equal(facts.c, TSCOPE_DTYPE_F32);
  assert_int_equal(facts.compute, 68);
  assert_true(facts.flops == 2ull * 512 * 1024 * 4096 * 6);

  facts = facts_of(matmul(68, CUDA_R_32F, 0), layout(E4M3, 512, 4096, 1),
                   layout(E5M2, 4096, 1024, 1), layout(CUDA_R_16BF, 512, 1024, 1));
  assert_int_equal(facts.k, 4096);
  assert_int_equal(facts.a, TSCOPE_DTYPE_F8E4M3);
  assert_int_equal(facts.b, TSCOPE_DTYPE_F8E5M2);
  assert_true(facts.flops == 2ull * 512 * 1024 * 4096);

  facts = facts_of(matmul(68, CUDA_C_32F, 0), layout(CUDA_C_32F, 3, 7, 2),
                   layout(CUDA_C_32F, 7, 5, 2), layout(CUDA_C_32F, 3, 5, 2));
  assert_int_equal(facts.a, TSCOPE_DTYPE_C64);
  assert_true(facts.flops == 8ull * 3 * 5 * 7 * 2);
}

int main(void) {
#ifndef HAVE_CUBLAS_HEADERS
  puts("prototypes: not checked, no cuBLAS header of CUDA 12.5 or newer is installed");
#endif
  void *library = open_real_library();
  if (!library) {
    puts("SKIP: libcublasLt.so.13 is not installed");
    return 77;
  }
  lt.layout_create = dlsym(library, "cublasLtMatrixLayoutCreate");
  lt.layout_set = dlsym(library, "cublasLtMatrixLayoutSetAttribute");
  lt.matmul_create = dlsym(library, "cublasLtMatmulDescCreate");
  lt.matmul_set = dlsym(library, "cublasLtMatmulDescSetAttribute");
  lt.layout_destroy = dlsym(library, "cublasLtMatrixLayoutDestroy");
  lt.matmul_destroy = dlsym(library, "cublasLtMatmulDescDestroy");
  const struct CMUnitTest tests[] = {cmocka_unit_test(real_descriptors_are_read_right)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
