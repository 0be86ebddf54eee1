/* SPDX-License-Identifier: MIT
 *
 * Turns one registry line into the function that the job calls in place of the real one:
 *
 *   #define HOOK(...) TSCOPE_WRAPPER(tscope_nccl_sonames, __VA_ARGS__)
 *   TSCOPE_NCCL_HOOKS(HOOK)
 *
 * The line's recorder R must be visible as
 *
 *   enum tscope_wake R_wakes                        whether the call may wake a dormant process
 *   struct R_call R_begin(thread, what...)          before the real call
 *   void R_end(thread, struct R_call *, result)     after it; must preserve errno
 *
 * The wrapper's C name is tscope_hook_<name>; only its assembler name is the API's, so that it
 * cannot clash with the prototype in whatever version of the header is installed. A second one,
 * tscope_found_<name>, is for those who look the function up by name (enum tscope_way).
 */
#ifndef TSCOPE_WRAPPER_H
#define TSCOPE_WRAPPER_H

#include "record/hook.h"

/* The arguments in parentheses, each with a comma in front. */
#define TSCOPE_MORE(...) , ##__VA_ARGS__

#define TSCOPE_HIDDEN __attribute__((visibility("hidden")))

/* What is behind both ways to a function. */
#define TSCOPE_WAYS_TO(name_, sonames_)                                                            \
  TSCOPE_HIDDEN extern struct tscope_symbol tscope_symbols_##name_[TSCOPE_WAYS];                   \
  struct tscope_symbol tscope_symbols_##name_[TSCOPE_WAYS] = TSCOPE_QUESTION(#name_, (sonames_));

/* The real function, in a wrapper for one of the ways. */
#define TSCOPE_REAL(name_, way)                                                                    \
  tscope_resolve_copy(&tscope_symbols_##name_[way], __builtin_return_address(0))

#define TSCOPE_WRAPPER(sonames_, name_, since, type, params, args, failure, recorder, what)        \
  TSCOPE_WAYS_TO(name_, sonames_)                                                                  \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params TSCOPE_WRAPPER_BODY(                               \
      TSCOPE_LINKED, name_, type, params, args, failure, recorder, what)                           \
  TSCOPE_HIDDEN type tscope_found_##name_ params;                                                  \
  type tscope_found_##name_ params TSCOPE_WRAPPER_BODY(TSCOPE_FOUND, name_, type, params, args,    \
                                                       failure, recorder, what)

#define TSCOPE_WRAPPER_BODY(way_, name_, type, params, args, failure, recorder, what)              \
  {                                                                                                \
    type(*real) params = TSCOPE_REAL(name_, way_);                                                 \
    if (TSCOPE_UNLIKELY(!real))                                                                    \
      return failure;                                                                              \
    struct tscope_thread *thread = tscope_enter((enum tscope_wake)recorder##_wakes);               \
    if (TSCOPE_UNLIKELY(!thread))                                                                  \
      return real args;                                                                            \
    thread->way = (way_);                                                                          \
    thread->real = (const void *)real;                                                             \
    struct recorder##_call call = recorder##_begin(thread TSCOPE_MORE what);                       \
    type result = real args;                                                                       \
    recorder##_end(thread, &call, result);                                                         \
    tscope_leave(thread);                                                                          \
    return result;                                                                                 \
  }

#endif
