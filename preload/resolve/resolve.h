/* SPDX-License-Identifier: MIT
 *
 * What only the dynamic linker knows: which of several libraries that were loaded later its search
 * order leads to. All of it waits for the linker's lock.
 */
#pragma once

#include "record/hook.h"

/* Whether the C library has what the functions below need. */
bool resolve_is_possible(void);

/* The next function of this name in the search order, none of tscope's own; NULL if there is none.
 */
void *resolve_next(const char *name);

/* From the libraries that the object around `return_address` links, else from a loaded library of
 * the symbol's sonames. */
void *resolve_from_libraries(const struct tscope_symbol *symbol, const void *return_address);

/* From one loaded file and what it links; NULL if it is not loaded or has no such function. */
void *resolve_in(const char *file, const char *name);
