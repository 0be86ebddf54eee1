/* SPDX-License-Identifier: MIT
 *
 * The wrappers, made from torch_hooks.def. They carry C++ names; see there how C stands in.
 */
#include "torch/torch_hooks.def"

#include "hooks/wrapper.h"
#include "torch/class_result.h"
#include "torch/torch_record.h"

/* Python loads PyTorch's libraries out of the global scope, so that the next definition is not to
 * be had by RTLD_NEXT. */
static const char *const torch_libraries[] = {"libtorch_cpu.so", "libc10.so", "libtorch_cuda.so",
                                              NULL};

/* The scope, and what recorder_begin() takes, around the call. */
#define TORCH_SCOPED(called, recorder, what)                                                       \
  struct torch_scope scope;                                                                        \
  TSCOPE_UNWINDS;                                                                                  \
  recorder##_begin TORCH_TAKES what;                                                               \
  called;                                                                                          \
  recorder##_end(&scope);
#define TORCH_TAKES(...) (&scope, ##__VA_ARGS__)

#define TORCH_SYMBOL(function)                                                                     \
  static struct tscope_symbol symbol_##function                                                    \
      __attribute__((used)) = {.name = #function, .sonames = torch_libraries};
#define TORCH_REAL(function) tscope_resolve(&symbol_##function, __builtin_return_address(0))

#define VALUE(function, since, until, type, params, args, recorder, what)                          \
  TORCH_SYMBOL(function)                                                                           \
  type function params;                                                                            \
  TSCOPE_EXPORT type function params TSCOPE_FORWARD(                                               \
      TORCH_REAL(function), type, params, (type)0,                                                 \
      TORCH_SCOPED(type returned = real args, recorder, what) return returned;)

#define VOID(function, since, until, params, args, recorder, what)                                 \
  TORCH_SYMBOL(function)                                                                           \
  void function params;                                                                            \
  TSCOPE_EXPORT void function params TSCOPE_FORWARD(TORCH_REAL(function), void, params, ,          \
                                                    TORCH_SCOPED(real args, recorder, what))

#if defined(__aarch64__)
#define CLASS(function, since, until, type, params, args, recorder, what)                          \
  TORCH_SYMBOL(function)                                                                           \
  CLASS_ENTRY(#function, "tscope_torch_" #function);                                               \
  CLASS_CALL("tscope_torch_real_" #function, "symbol_" #function);                                 \
  extern type tscope_torch_real_##function params;                                                 \
  __attribute__((used, visibility("hidden"))) type tscope_torch_##function params;                 \
  type tscope_torch_##function params TSCOPE_FORWARD(                                              \
      TORCH_REAL(function), type, params, (type)0,                                                 \
      TORCH_SCOPED(type returned = tscope_torch_real_##function args, recorder,                    \
                   what) return returned;)
#else
#define CLASS VALUE
#endif

TSCOPE_TORCH_HOOKS(VALUE, VOID, CLASS)
