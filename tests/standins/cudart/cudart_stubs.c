/* SPDX-License-Identifier: MIT
 *
 * Every CUDA runtime function that tscope hooks exists here at least as a function that succeeds
 * and does nothing, so that a new line in the list of hooks needs no change in the stand-in. The
 * functions in the other files are strong symbols and replace these.
 */
#include "cudart.h"

#include "cuda/cuda_hooks.def"

#define STUB(name, since, type, parameters, arguments, failure, recorder, what)                    \
  __attribute__((weak)) CUDART_API type stub_##name parameters __asm__(#name);                     \
  __attribute__((weak)) CUDART_API type stub_##name parameters {                                   \
    return (type)0;                                                                                \
  }

#pragma GCC diagnostic ignored "-Wunused-parameter"
TSCOPE_CUDA_HOOKS(STUB)
