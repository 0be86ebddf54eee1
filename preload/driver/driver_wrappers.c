/* SPDX-License-Identifier: MIT
 *
 * The wrappers of the driver's functions. They are as hooks/wrapper.h makes them, with two
 * differences: where the real function is stored, and what happens to kernels launched from inside
 * a hooked call.
 */
#include "driver/driver_record.h"

#include "driver/driver_symbols.h"
#include "hooks/wrapper.h"

/* The hook that is in progress during the call: either this call's own, or an outer one in which
 * kernels are recorded; the outer one must not be left here. */
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
