/* SPDX-License-Identifier: MIT
 *
 * The wrappers of blas_hooks.def. They differ from hooks/wrapper.h in one point: the kernels that a
 * GEMM launches are recorded, so that their time on the GPU can be compared with the GEMM's
 * arithmetic. So no hook is in progress while the real function runs. Only a GEMM inside a GEMM
 * (cuBLAS calls cuBLASLt through the linker) is left out, by a guard that belongs to this family.
 */
#include "blas/blas_hooks.def"

#include "blas/blas_record.h"
#include "cuda/graphs/captured_kernels.h"
#include "hooks/wrapper.h"

__thread struct gemm_in_progress gemm_now __attribute__((tls_model("initial-exec")));

#define ENTERED(wakes)                                                                             \
  TSCOPE_UNLIKELY(gemm_now.guard != NULL) &&                                                       \
          tscope_guard_is_active(tscope_self, gemm_now.guard, TSCOPE_FRAME())                      \
      ? NULL                                                                                       \
      : tscope_enter((enum tscope_wake)wakes)

/* The real call, with no hook in progress. */
#define CALLED(name_, via_, type, args, recorder, what)                                            \
  struct tscope_guard guard_;                                                                      \
  event_pair_ticket pair_ = 0;                                                                     \
  tscope_guard_set(&guard_, TSCOPE_RETURN_PLACE());                                                \
  gemm_now.guard = &guard_;                                                                        \
  gemm_now.timed = 0;                                                                              \
  if (TSCOPE_UNLIKELY(__atomic_load_n(&event_pairs_wanted, __ATOMIC_RELAXED)))                     \
    pair_ = gemm_pair_begin(thread, recorder##_stream what);                                       \
  captured_kernels_watch();                                                                        \
  tscope_leave(thread);                                                                            \
  type result = real args;                                                                         \
  gemm_now.guard = NULL;                                                                           \
  captured_kernels_unwatch();                                                                      \
  thread = tscope_enter(TSCOPE_QUIET);                                                             \
  if (TSCOPE_UNLIKELY(pair_ != 0))                                                                 \
    gemm_pair_end(pair_, result == CUBLAS_STATUS_SUCCESS ? #name_ : NULL);                         \
  if (TSCOPE_LIKELY(thread != NULL))                                                               \
  TSCOPE_SET_VIA(via_)

#define LEAVE                                                                                      \
  if (TSCOPE_LIKELY(thread != NULL))                                                               \
  tscope_leave(thread)

#define VIA_BODY(via_, name_, type, params, args, failure, recorder, what)                         \
  TSCOPE_WRAPPER_BODY(TSCOPE_REAL(name_, via_), ENTERED(recorder##_wakes),                         \
                      (TSCOPE_SET_VIA(via_), TSCOPE_BEFORE_CALL(recorder##_wakes)),                \
                      CALLED(name_, via_, type, args, recorder, what), LEAVE, type,                \
                      cublasStatus_t, params, args, failure, recorder, what)

#define HOOK(...) TSCOPE_WRAPPERS(VIA_BODY, tscope_cublas_sonames, __VA_ARGS__)
TSCOPE_CUBLAS_HOOKS(HOOK)
TSCOPE_CUBLAS_HALF_HOOKS(HOOK)
#undef HOOK
#define HOOK(...) TSCOPE_WRAPPERS(VIA_BODY, tscope_cublaslt_sonames, __VA_ARGS__)
TSCOPE_CUBLASLT_HOOKS(HOOK)
