/* SPDX-License-Identifier: MIT
 *
 * The wrappers of the driver's functions: as core/wrapper.h makes them, but for where the real
 * function is kept, and for kernels launched from inside a hooked call.
 */
#include "driver/driver_record.h"

#include "driver/driver_symbols.h"
#include "hooks/wrapper.h"

#define WRAPPER(name_, type, params, args, failure, recorder, what, entered)                       \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params {                                                  \
    type(*real) params =                                                                           \
        tscope_resolve(&driver_symbols[DRIVER_##name_], __builtin_return_address(0));              \
    if (TSCOPE_UNLIKELY(!real))                                                                    \
      return failure;                                                                              \
    if (TSCOPE_UNLIKELY(!driver_is_wanted()))                                                      \
      return real args;                                                                            \
    struct tscope_thread *thread = tscope_enter((enum tscope_wake)recorder##_wakes);               \
    const bool outermost = thread != NULL;                                                         \
    if (!outermost)                                                                                \
      thread = entered;                                                                            \
    if (!thread)                                                                                   \
      return real args;                                                                            \
    struct recorder##_call call = recorder##_begin(thread TSCOPE_MORE what);                       \
    type result = real args;                                                                       \
    recorder##_end(thread, &call, (cudaError_t)result);                                            \
    if (outermost)                                                                                 \
      tscope_leave(thread);                                                                        \
    return result;                                                                                 \
  }

#define HOOK(name, since, type, params, args, failure, recorder, what)                             \
  WRAPPER(name, type, params, args, failure, recorder, what, tscope_enter_inside())
TSCOPE_DRIVER_LAUNCHES(HOOK)
#undef HOOK

#define HOOK(name, since, type, params, args, failure, recorder, what)                             \
  WRAPPER(name, type, params, args, failure, recorder, what, NULL)
TSCOPE_DRIVER_CALLS(HOOK)
