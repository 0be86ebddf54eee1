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

/* What surrounds the call. Most recorders have a scope (torch_scope.h): recorder_begin() and
 * recorder_end(). Those that are called for every tensor or operator do without, and say so with
 * TORCH_SHAPE_recorder:
 *
 *   ~, GUARDED    record_recorder(thread, what...) before the call. While the call is in progress,
 *                 no call inside it is recorded.
 *   ~, BEFORE     recorder_before(what...) before the call.
 *   ~, AFTER      recorder_after(returned, what...) after the call.
 */
#define TORCH_AROUND(called, recorder, what)                                                       \
  TSCOPE_JOIN(TORCH_, TORCH_SHAPE(TORCH_SHAPE_##recorder))(called, recorder, what)
#define TORCH_SHAPE(...) TSCOPE_SECOND(__VA_ARGS__, SCOPED, ~)

#define TORCH_SCOPED(called, recorder, what)                                                       \
  struct torch_scope scope;                                                                        \
  tscope_guard_set(&scope.guard, TSCOPE_RETURN_PLACE());                                           \
  scope.kind = SCOPE_PLAIN; /* what was left here by a jump would look alive with this guard */    \
  TSCOPE_UNWINDS;                                                                                  \
  recorder##_begin TORCH_ARGUMENTS(&scope, what);                                                  \
  called;                                                                                          \
  recorder##_end(&scope);

/* If an exception leaves the call, the guard proves nothing any more: tscope_guard_is_active(). */
#define TORCH_GUARDED(called, recorder, what)                                                      \
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);                                       \
  if (TSCOPE_LIKELY(thread != NULL))                                                               \
    record_##recorder TORCH_ARGUMENTS(thread, what);                                               \
  called;                                                                                          \
  if (TSCOPE_LIKELY(thread != NULL))                                                               \
    tscope_leave(thread);

#define TORCH_BEFORE(called, recorder, what)                                                       \
  recorder##_before what;                                                                          \
  called;

#define TORCH_AFTER(called, recorder, what)                                                        \
  called;                                                                                          \
  recorder##_after TORCH_ARGUMENTS(returned, what);

#define TORCH_ARGUMENTS(first, what) (first TSCOPE_MORE what)

#define TORCH_SYMBOL(function)                                                                     \
  static struct tscope_symbol symbol_##function                                                    \
      __attribute__((used)) = {.name = #function, .sonames = torch_libraries};
#define TORCH_REAL(function) tscope_resolve(&symbol_##function, __builtin_return_address(0))

#define VALUE(function, since, until, type, params, args, recorder, what)                          \
  TORCH_SYMBOL(function)                                                                           \
  type function params;                                                                            \
  TSCOPE_EXPORT type function params TSCOPE_FORWARD(                                               \
      TORCH_REAL(function), type, params, (type)0,                                                 \
      TORCH_AROUND(type returned = real args, recorder, what) return returned;)

#define VOID(function, since, until, params, args, recorder, what)                                 \
  TORCH_SYMBOL(function)                                                                           \
  void function params;                                                                            \
  TSCOPE_EXPORT void function params TSCOPE_FORWARD(TORCH_REAL(function), void, params, ,          \
                                                    TORCH_AROUND(real args, recorder, what))

#if defined(__aarch64__)
#define CLASS(function, since, until, type, params, args, recorder, what)                          \
  TORCH_SYMBOL(function)                                                                           \
  CLASS_ENTRY(#function, "tscope_torch_" #function);                                               \
  CLASS_CALL("tscope_torch_real_" #function, "symbol_" #function);                                 \
  extern type tscope_torch_real_##function params;                                                 \
  __attribute__((used, visibility("hidden"))) type tscope_torch_##function params;                 \
  type tscope_torch_##function params TSCOPE_FORWARD(                                              \
      TORCH_REAL(function), type, params, (type)0,                                                 \
      TORCH_AROUND(type returned = tscope_torch_real_##function args, recorder,                    \
                   what) return returned;)
#else
#define CLASS VALUE
#endif

TSCOPE_TORCH_HOOKS(VALUE, VOID, CLASS)
