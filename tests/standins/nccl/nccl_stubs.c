/* SPDX-License-Identifier: MIT
 *
 * Every NCCL function that tscope hooks exists here at least as a function that succeeds and does
 * nothing; see cudart/cudart_stubs.c.
 */
#include "comm.h"

#include "nccl/nccl_hooks.def"

#define STUB(name, since, type, parameters, arguments, failure, recorder, what)                    \
  __attribute__((weak)) NCCL_API type stub_##name parameters __asm__(#name);                       \
  __attribute__((weak)) NCCL_API type stub_##name parameters {                                     \
    return (type)0;                                                                                \
  }

#pragma GCC diagnostic ignored "-Wunused-parameter"
TSCOPE_NCCL_HOOKS(STUB)
