/* SPDX-License-Identifier: MIT
 *
 * The wrappers, made from torch_hooks.def. They carry C++ names; see there how C stands in.
 */
#include "torch/torch_hooks.def"
#include "torch/class_result.h"
#include "torch/torch_record.h"

/* Python loads PyTorch's libraries out of the global scope, so that the next definition is not to
 * be had by RTLD_NEXT. */
static const char *const torch_libraries[] = {"libtorch_cpu.so", "libc10.so", "libtorch_cuda.so",
                                              NULL};

#define TOLD(...) (&scope, ##__VA_ARGS__)

#define RESOLVE(function, params, type)                                                            \
  static struct tscope_symbol symbol = {.name = #function, .sonames = torch_libraries};            \
  type(*real) params = (type(*) params)tscope_resolve(&symbol, __builtin_return_address(0));       \
  struct torch_scope scope;                                                                        \
  TSCOPE_UNWINDS

#define VALUE(function, since, until, type, params, args, recorder, what)                          \
  type function params;                                                                            \
  TSCOPE_EXPORT type function params {                                                             \
    RESOLVE(function, params, type);                                                               \
    if (TSCOPE_UNLIKELY(!real))                                                                    \
      return (type)0;                                                                              \
    recorder##_begin TOLD what;                                                                    \
    type returned = real args;                                                                     \
    recorder##_end(&scope);                                                                        \
    return returned;                                                                               \
  }

#define VOID(function, since, until, params, args, recorder, what)                                 \
  void function params;                                                                            \
  TSCOPE_EXPORT void function params {                                                             \
    RESOLVE(function, params, void);                                                               \
    if (TSCOPE_UNLIKELY(!real))                                                                    \
      return;                                                                                      \
    recorder##_begin TOLD what;                                                                    \
    real args;                                                                                     \
    recorder##_end(&scope);                                                                        \
  }

#if defined(__aarch64__)
#define CLASS(function, since, until, type, params, args, recorder, what)                          \
  static struct tscope_symbol symbol_##function                                                    \
      __attribute__((used)) = {.name = #function, .sonames = torch_libraries};                     \
  CLASS_ENTRY(#function, "tscope_torch_" #function);                                               \
  CLASS_CALL("tscope_torch_real_" #function, "symbol_" #function);                                 \
  extern type tscope_torch_real_##function params;                                                 \
  __attribute__((used, visibility("hidden"))) type tscope_torch_##function params;                 \
  type tscope_torch_##function params {                                                            \
    struct torch_scope scope;                                                                      \
    TSCOPE_UNWINDS;                                                                                \
    if (TSCOPE_UNLIKELY(!tscope_resolve(&symbol_##function, __builtin_return_address(0))))         \
      return (type)0;                                                                              \
    recorder##_begin TOLD what;                                                                    \
    type returned = tscope_torch_real_##function args;                                             \
    recorder##_end(&scope);                                                                        \
    return returned;                                                                               \
  }
#else
#define CLASS VALUE
#endif

TSCOPE_TORCH_HOOKS(VALUE, VOID, CLASS)
