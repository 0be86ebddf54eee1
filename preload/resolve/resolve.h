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

/* That one, else one from the libraries that the object around `return_address` links, else from a
 * loaded library of the symbol's sonames. Sets whether it is the next one. Preserves errno. */
void *resolve_by_linker(const struct tscope_symbol *symbol, const void *return_address,
                        bool *is_next);
