/* SPDX-License-Identifier: MIT
 *
 * The steps of both ways of finding a real function (hook.h).
 */
#ifndef TSCOPE_RESOLVE_H
#define TSCOPE_RESOLVE_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* The next function of this name in the search order, none of tscope's own; NULL if there is none.
 */
void *resolve_next(const char *name);

/* From the libraries that the object around `return_address` links, else from a loaded library of
 * the symbol's sonames. */
void *resolve_from_libraries(const struct tscope_symbol *symbol, const void *return_address);

/* From one loaded file and what it links; NULL if it is not loaded or has no such function. */
void *resolve_in(const char *file, const char *name);

/* The only function of this name among all objects of the process, tscope's own left aside; NULL if
 * there is none, or more than one. Looks into every object. */
void *resolve_unique(const char *name);

/* Never to be unloaded from here on: hooks keep the address. */
void resolve_pin(const void *address);

/* Whether the C library has what the functions above need. */
bool resolve_is_possible(void);

#pragma GCC visibility pop

#endif
