/* SPDX-License-Identifier: MIT
 *
 * The functions for which look-ups by name return wrappers, from the registries: dlsym() for all of
 * the driver (driver_hooks.def), CUPTI (gpu/cupti_hooks.def), NCCL, the CUDA runtime, cuBLAS and
 * cuBLASLt; cuGetProcAddress() for the driver's.
 */
#pragma once

#include "record/hook.h"

#pragma GCC visibility push(hidden)

struct hooked_symbol {
  const char *name;
  void *wrapper;                /* NULL in a program that has only some of the families */
  void *exported;               /* the wrapper that the linker binds to, if it is a different one */
  struct tscope_symbol *symbol; /* the real function behind the wrapper */
  int since;                    /* version of the library that has it */
  bool is_driver; /* belongs to the driver or CUPTI, of which a process has only one */
};

/* Whether tscope answers look-ups of the driver's functions (TSCOPE and TSCOPE_DRIVER) or of the
 * others (TSCOPE_LOOKUPS). The settings are read at the first query. */
bool driver_is_wanted(void);
bool look_ups_are_wanted(void);

/* The entry of this name, NULL if there is none. pncclX is another name of ncclX. */
const struct hooked_symbol *hooked_symbol_find(const char *name);

/* The wrapper for `real`, which a look-up of this entry's function found. `real` itself if the
 * wrapper already forwards to another function, as with two copies of a library in one process, or
 * if `real` is tscope's own or NULL. It is remembered for the trace which of the two was
 * returned. */
void *hooked_symbol_wrapper(const struct hooked_symbol *hooked, void *real);

/* The driver's functions behind the wrappers, by enum driver_symbol. */
extern struct tscope_symbol driver_symbols[];

#pragma GCC visibility pop
