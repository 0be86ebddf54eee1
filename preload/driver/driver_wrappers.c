/* SPDX-License-Identifier: MIT
 *
 * The wrappers of the driver's functions: as hooks/wrapper.h makes them, but for where the real
 * function is kept, and for kernels launched from inside a hooked call.
 */
#include "driver/driver_record.h"

#include "driver/driver_symbols.h"
#include "hooks/wrapper.h"

/* What is open while the call is in progress: a hook of its own, or one that lets kernels inside it
 * be recorded, which is not to be left here. */
#define ENTERED(wakes, inside)                                                                     \
  !driver_is_wanted()                                ? NULL                                        \
  : (thread = tscope_enter((enum tscope_wake)wakes)) ? thread                                      \
                                                     : (outermost = false, (inside))

#define WRAPPER(name_, type, params, args, failure, recorder, what, inside)                        \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params {                                                  \
    bool outermost = true;                                                                         \
    TSCOPE_WRAPPER_BODY(                                                                           \
        tscope_resolve(&driver_symbols[DRIVER_##name_], __builtin_return_address(0)),              \
        ENTERED(recorder##_wakes, inside), TSCOPE_BEFORE_CALL(recorder##_wakes),                   \
        type result = real args, if (outermost) tscope_leave(thread), type, cudaError_t, params,   \
        args, failure, recorder, what)                                                             \
  }

#define HOOK(name, since, type, params, args, failure, recorder, what)                             \
  WRAPPER(name, type, params, args, failure, recorder, what, tscope_enter_inside())
TSCOPE_DRIVER_LAUNCHES(HOOK)
#undef HOOK

#define HOOK(name, since, type, params, args, failure, recorder, what)                             \
  WRAPPER(name, type, params, args, failure, recorder, what, NULL)
TSCOPE_DRIVER_CALLS(HOOK)
