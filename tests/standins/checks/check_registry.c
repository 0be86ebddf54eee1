/* SPDX-License-Identifier: MIT
 *
 * The stand-in libraries export every function that tscope hooks.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "blas/blas_hooks.def"
#include "cuda/cuda_hooks.def"
#include "nccl/nccl_hooks.def"

#define NAME(name, since, type, params, args, failure, recorder, what) #name,
static const char *const cuda_names[] = {TSCOPE_CUDA_HOOKS(NAME)};
static const char *const nccl_names[] = {TSCOPE_NCCL_HOOKS(NAME)};
static const char *const cublas_names[] = {TSCOPE_CUBLAS_HOOKS(NAME)
                                               TSCOPE_CUBLAS_HALF_HOOKS(NAME)};
static const char *const cublaslt_names[] = {TSCOPE_CUBLASLT_HOOKS(NAME)};

static void assert_all_exported(const char *library, const char *const *names, size_t n) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    fail_msg("%s", dlerror());
  for (size_t i = 0; i < n; i++)
    if (!dlsym(handle, names[i]))
      fail_msg("%s has no %s", library, names[i]);
}

static void cudart_12_has_every_hooked_function(void **state) {
  (void)state;
  assert_all_exported("libcudart.so.12", cuda_names, sizeof(cuda_names) / sizeof(*cuda_names));
}

static void cudart_13_has_every_hooked_function(void **state) {
  (void)state;
  assert_all_exported("libcudart.so.13", cuda_names, sizeof(cuda_names) / sizeof(*cuda_names));
}

static void nccl_has_every_hooked_function(void **state) {
  (void)state;
  assert_all_exported("libnccl.so.2", nccl_names, sizeof(nccl_names) / sizeof(*nccl_names));
}

static void cublas_has_every_hooked_function(void **state) {
  (void)state;
  static const char *const libraries[] = {"libcublas.so.12", "libcublas.so.13"};
  for (size_t i = 0; i < 2; i++)
    assert_all_exported(libraries[i], cublas_names, sizeof(cublas_names) / sizeof(*cublas_names));
  assert_all_exported("libcublasLt.so.12", cublaslt_names,
                      sizeof(cublaslt_names) / sizeof(*cublaslt_names));
  assert_all_exported("libcublasLt.so.13", cublaslt_names,
                      sizeof(cublaslt_names) / sizeof(*cublaslt_names));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cudart_12_has_every_hooked_function),
      cmocka_unit_test(cudart_13_has_every_hooked_function),
      cmocka_unit_test(nccl_has_every_hooked_function),
      cmocka_unit_test(cublas_has_every_hooked_function),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
