/* SPDX-License-Identifier: MIT
 *
 * This program has the hooks, but neither CUDA nor NCCL nor cuBLAS: each hooked call fails with an
 * error of its own API.
 */
#include "blas/blas_hooks.def"
#include "cuda/cuda_hooks.def"
#include "nccl/nccl_hooks.def"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks_fakes.h"
#include "hooks_trace.h"

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type wrapper_##name_ params __asm__(#name_);
TSCOPE_CUDA_HOOKS(HOOK)
TSCOPE_NCCL_HOOKS(HOOK)
TSCOPE_BLAS_HOOKS(HOOK)
#undef HOOK

static void every_call_fails_with_its_apis_own_error(void **state) {
  (void)state;
  uintptr_t none = 0;
#define TYPE_IS_void(...)
#define TYPE_IS_cudaError_t(...) __VA_ARGS__
#define TYPE_IS_cublasStatus_t(...) __VA_ARGS__
#define TYPE_IS_ncclResult_t(...) __VA_ARGS__
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  TYPE_IS_##type({                                                                                 \
    typedef type function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,        \
                          uintptr_t, uintptr_t, uintptr_t, uintptr_t);                             \
    function *wrapper = (function *)(void *)wrapper_##name_;                                       \
    type result = wrapper(none, none, none, none, none, none, none, none, none, none);             \
    assert_int_equal(result, failure);                                                             \
    assert_true(result != 0);                                                                      \
  })
  TSCOPE_CUDA_HOOKS(HOOK)
  TSCOPE_NCCL_HOOKS(HOOK)
  TSCOPE_BLAS_HOOKS(HOOK)
}

/* A program in which every call fails is not a training job. */
static void nothing_is_recorded(void **state) {
  (void)state;
  struct trace trace = trace_read();
  assert_null(trace.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_call_fails_with_its_apis_own_error),
      cmocka_unit_test(nothing_is_recorded),
  };
  return cmocka_run_group_tests(tests, trace_set_up, trace_tear_down);
}
