/* SPDX-License-Identifier: MIT
 *
 * The functions that dlsym() and cuGetProcAddress() give out wrappers for, from the registries:
 * the driver's (driver_hooks.def) and CUPTI's (gpu/cupti_hooks.def).
 */
#ifndef TSCOPE_ALLOW_LIST_H
#define TSCOPE_ALLOW_LIST_H

#include "hook.h"

#pragma GCC visibility push(hidden)

struct allowed {
  const char *name;
  void *wrapper;
  struct tscope_symbol *symbol; /* the real function behind the wrapper */
  int since;                    /* version of the library that has it */
};

/* Whether look-ups are to be answered at all: TSCOPE and TSCOPE_DRIVER, read when first asked. */
bool driver_is_wanted(void);

/* The entry of this name, NULL if there is none. */
const struct allowed *allowed_find(const char *name);

/* The wrapper for `real`, which a look-up of this entry's function found; `real` itself where the
 * wrapper stands in front of another function already, as with two drivers in one process, or if it
 * is tscope's own or NULL. */
void *allowed_wrapper(const struct allowed *allowed, void *real);

/* The driver's functions behind the wrappers, by enum driver_symbol. */
extern struct tscope_symbol driver_symbols[];

#pragma GCC visibility pop

#endif
