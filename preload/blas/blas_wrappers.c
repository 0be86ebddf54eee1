/* SPDX-License-Identifier: MIT
 *
 * The wrappers of blas_hooks.def. They differ from hooks/wrapper.h in one thing: the kernels that a
 * product launches are to be recorded, so that their time on the GPU can be held against its
 * arithmetic. So no hook is in progress while the real function runs; only a product inside a
 * product (cuBLAS calls cuBLASLt through the linker) is left out, by a guard of this family's own.
 */
#include "blas/blas_hooks.def"

#include "blas/blas_record.h"
#include "cuda/graphs/captured_kernels.h"
#include "hooks/wrapper.h"

__thread struct product product_now __attribute__((tls_model("initial-exec")));

#define BLAS_WRAPPER(sonames_, name_, since, type, params, args, failure, recorder, what)          \
  TSCOPE_WAYS_TO(name_, sonames_)                                                                  \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params BLAS_WRAPPER_BODY(                                 \
      TSCOPE_LINKED, name_, type, params, args, failure, recorder, what)                           \
  TSCOPE_HIDDEN type tscope_found_##name_ params;                                                  \
  type tscope_found_##name_ params BLAS_WRAPPER_BODY(TSCOPE_FOUND, name_, type, params, args,      \
                                                     failure, recorder, what)

#define BLAS_WRAPPER_BODY(way_, name_, type, params, args, failure, recorder, what)                \
  {                                                                                                \
    struct tscope_guard product_guard;                                                             \
    type(*real) params = TSCOPE_REAL(name_, way_);                                                 \
    if (TSCOPE_UNLIKELY(!real))                                                                    \
      return failure;                                                                              \
    if (TSCOPE_UNLIKELY(product_now.guard != NULL) &&                                              \
        tscope_guard_holds(tscope_self, product_now.guard, TSCOPE_FRAME()))                        \
      return real args;                                                                            \
    struct tscope_thread *thread = tscope_enter((enum tscope_wake)recorder##_wakes);               \
    if (TSCOPE_UNLIKELY(!thread))                                                                  \
      return real args;                                                                            \
    thread->way = (way_);                                                                          \
    thread->real = (const void *)real;                                                             \
    struct recorder##_call call = recorder##_begin(thread TSCOPE_MORE what);                       \
    struct event_pair *pair = NULL;                                                                \
    tscope_guard_set(&product_guard, TSCOPE_RETURN_PLACE());                                       \
    product_now = (struct product){.guard = &product_guard};                                       \
    if (TSCOPE_UNLIKELY(__atomic_load_n(&event_pairs_wanted, __ATOMIC_RELAXED)))                   \
      pair = product_pair_begin(thread, recorder##_stream(&call));                                 \
    captured_kernels_watch();                                                                      \
    tscope_leave(thread);                                                                          \
    type result = real args;                                                                       \
    product_now.guard = NULL;                                                                      \
    captured_kernels_watched();                                                                    \
    thread = tscope_enter(TSCOPE_QUIET);                                                           \
    if (TSCOPE_UNLIKELY(pair != NULL))                                                             \
      product_pair_end(pair, result == CUBLAS_STATUS_SUCCESS ? #name_ : NULL);                     \
    if (TSCOPE_LIKELY(thread != NULL)) {                                                           \
      thread->way = (way_);                                                                        \
      thread->real = (const void *)real;                                                           \
      recorder##_end(thread, &call, result);                                                       \
      tscope_leave(thread);                                                                        \
    }                                                                                              \
    return result;                                                                                 \
  }

#define HOOK(...) BLAS_WRAPPER(tscope_cublas_sonames, __VA_ARGS__)
TSCOPE_CUBLAS_HOOKS(HOOK)
TSCOPE_CUBLAS_HALF_HOOKS(HOOK)
#undef HOOK
#define HOOK(...) BLAS_WRAPPER(tscope_cublaslt_sonames, __VA_ARGS__)
TSCOPE_CUBLASLT_HOOKS(HOOK)
