/* SPDX-License-Identifier: MIT
 *
 * What wrappers of hooked functions consist of. TSCOPE_FORWARD is the body of each. Families differ
 * only in how the real function is found, what wakes a process, and what is recorded.
 *
 * TSCOPE_WRAPPER turns one registry line into the function that the job calls instead of the real
 * one:
 *
 *   #define HOOK(...) TSCOPE_WRAPPER(tscope_nccl_sonames, __VA_ARGS__)
 *   TSCOPE_NCCL_HOOKS(HOOK)
 *
 * The line's recorder R must be visible as
 *
 *   enum tscope_wake R_wakes                         whether the call may wake a dormant process
 *   void record_R(thread, start, result, what...)    after the real call; must preserve errno
 *
 * A recorder that must also run before the real call has a shape:
 *
 *   #define TSCOPE_RECORDER_SHAPE_R ~, BEFORE           it has nothing to do after the call:
 *   void record_R(thread, start, what...)
 *
 *   #define TSCOPE_RECORDER_SHAPE_R ~, AROUND           it has something to do on both sides:
 *   call R_begin(thread, what...)                    any type
 *   void R_end(thread, call *, result)
 *
 * The wrapper's C name is tscope_hook_<name>; only its assembler name is the API's, so that it
 * cannot clash with the prototype in whatever version of the header is installed. A second one,
 * tscope_via_dlsym_<name>, is for callers that look up the function by name (enum tscope_via).
 */
#pragma once

#include "record/hook.h"

/* The arguments in parentheses, each with a comma in front. */
#define TSCOPE_MORE(...) , ##__VA_ARGS__

#define TSCOPE_HIDDEN __attribute__((visibility("hidden")))

/* The real functions behind both wrappers of a line, by enum tscope_via. */
#define TSCOPE_SYMBOLS_OF(name_, sonames_)                                                         \
  TSCOPE_HIDDEN extern struct tscope_symbol tscope_symbols_##name_[TSCOPE_VIAS];                   \
  struct tscope_symbol tscope_symbols_##name_[TSCOPE_VIAS] = TSCOPE_QUERY(#name_, (sonames_));

/* The real function, in the wrapper for one of them. */
#define TSCOPE_REAL(name_, via_)                                                                   \
  tscope_resolve_copy(&tscope_symbols_##name_[via_], __builtin_return_address(0))

/* The frame: finds the real function, or returns `failure` if there is none. The code that follows
 * can use it as `real`. */
#define TSCOPE_FORWARD(found, type, params, failure, ...)                                          \
  {                                                                                                \
    type(*real) params = found;                                                                    \
    if (TSCOPE_UNLIKELY(!real))                                                                    \
      return failure;                                                                              \
    __VA_ARGS__                                                                                    \
  }

/* The real call and its recorder. `called` makes the call and declares `result`. If it sets
 * `thread` to NULL, nothing can be recorded any more. */
#define TSCOPE_SECOND(first, second, ...) second
#define TSCOPE_SHAPE(...) TSCOPE_SECOND(__VA_ARGS__, AFTER, ~)
#define TSCOPE_JOIN_(a, b) a##b
#define TSCOPE_JOIN(a, b) TSCOPE_JOIN_(a, b)
#define TSCOPE_RECORDED(as, called, recorder, what)                                                \
  TSCOPE_JOIN(TSCOPE_RECORDED_, TSCOPE_SHAPE(TSCOPE_RECORDER_SHAPE_##recorder))                    \
  (as, called, recorder, what)

#define TSCOPE_RECORDED_AFTER(as, called, recorder, what)                                          \
  const u64 start_ = tscope_ticks();                                                               \
  called;                                                                                          \
  if (TSCOPE_LIKELY(thread != NULL))                                                               \
    record_##recorder(thread, start_, (as)result TSCOPE_MORE what);

#define TSCOPE_RECORDED_BEFORE(as, called, recorder, what)                                         \
  record_##recorder(thread, tscope_ticks() TSCOPE_MORE what);                                      \
  called;

#define TSCOPE_RECORDED_AROUND(as, called, recorder, what)                                         \
  __auto_type call_ = recorder##_begin(thread TSCOPE_MORE what);                                   \
  called;                                                                                          \
  recorder##_end(thread, &call_, (as)result);

/* The rest of a wrapper that records. `entered` gives the thread's state, NULL if the call is only
 * passed on. `first` runs before the recorder, `left` runs last. */
#define TSCOPE_RECORDING(entered, first, called, left, as, args, recorder, what)                   \
  struct tscope_thread *thread = entered;                                                          \
  if (TSCOPE_UNLIKELY(!thread))                                                                    \
    return real args;                                                                              \
  first;                                                                                           \
  TSCOPE_RECORDED(as, called, recorder, what)                                                      \
  left;                                                                                            \
  return result;

#define TSCOPE_WRAPPER_BODY(found, entered, first, called, left, type, as, params, args, failure,  \
                            recorder, what)                                                        \
  TSCOPE_FORWARD(found, type, params, failure,                                                     \
                 TSCOPE_RECORDING(entered, first, called, left, as, args, recorder, what))

/* To which function a call in progress goes on, for queries about its handles. */
#define TSCOPE_SET_VIA(via_) (thread->via = (via_), thread->real = (const void *)real)

#define TSCOPE_VIA_BODY(via_, name_, type, params, args, failure, recorder, what)                  \
  TSCOPE_WRAPPER_BODY(TSCOPE_REAL(name_, via_), tscope_enter((enum tscope_wake)recorder##_wakes),  \
                      (TSCOPE_SET_VIA(via_), TSCOPE_BEFORE_CALL(recorder##_wakes)),                \
                      type result = real args, tscope_leave(thread), type, type, params, args,     \
                      failure, recorder, what)

/* The two functions of a line, one for each way, whose bodies are BODY(way, name, ...). */
#define TSCOPE_WRAPPERS(BODY, sonames_, name_, since, type, params, args, failure, recorder, what) \
  TSCOPE_SYMBOLS_OF(name_, sonames_)                                                               \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params BODY(TSCOPE_VIA_LINKER, name_, type, params, args, \
                                                     failure, recorder, what)                      \
  TSCOPE_HIDDEN type tscope_via_dlsym_##name_ params;                                              \
  type tscope_via_dlsym_##name_ params BODY(TSCOPE_VIA_DLSYM, name_, type, params, args, failure,  \
                                            recorder, what)

#define TSCOPE_WRAPPER(...) TSCOPE_WRAPPERS(TSCOPE_VIA_BODY, __VA_ARGS__)

/* TSCOPE_BEFORE_CALL(wakes) runs at the start of every hook, see gpu/gpu_clock.h. */
