/* SPDX-License-Identifier: MIT
 *
 * Other clients of CUPTI. tscope's own calls go to the library directly and do not come by here.
 */
#include "cupti_hooks.def"

#include "cupti_library.h"
#include "gpu_clock.h"

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params {                                                  \
    static struct tscope_symbol symbol = {.name = #name_, .sonames = cupti_sonames};               \
    type(*real) params = tscope_resolve(&symbol, __builtin_return_address(0));                     \
    if (!real)                                                                                     \
      return failure;                                                                              \
    gpu_clock_stand_aside("the job has a CUPTI client of its own (" #name_ ")");                   \
    return real args;                                                                              \
  }
TSCOPE_CUPTI_HOOKS(HOOK)
