/* SPDX-License-Identifier: MIT
 *
 * The next function of a name after tscope's own: another preloaded library's, or the C library's.
 * Found in the tables of the loaded objects, without a call of the dynamic linker, which takes a
 * lock and may allocate. So it can be found in a signal handler, and in a program that does not
 * train.
 */
#pragma once

/* NULL if it is not known, as in a program that was started through the dynamic linker. Only for
 * functions of the C library: the search ends there, so that it visits no object that may be
 * unloaded. */
void *tscope_next_function(const char *name);

/* The same; `next`, at first NULL, keeps what was found, or that nothing was. */
void *tscope_next_function_once(void **next, const char *name);

/* The same, searched for at the first call. */
#define TSCOPE_NEXT_FUNCTION(name)                                                                 \
  ({                                                                                               \
    static void *next_;                                                                            \
    tscope_next_function_once(&next_, name);                                                       \
  })
