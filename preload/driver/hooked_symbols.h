/* SPDX-License-Identifier: MIT
 *
 * The functions that look-ups by name give out wrappers for, from the registries: dlsym() for all
 * of the driver (driver_hooks.def), CUPTI (gpu/cupti_hooks.def), NCCL, the CUDA runtime, cuBLAS and
 * cuBLASLt; cuGetProcAddress() for the driver's.
 */
#ifndef TSCOPE_ALLOW_LIST_H
#define TSCOPE_ALLOW_LIST_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

struct allowed {
  const char *name;
  void *wrapper;                /* NULL in a program that has only some of the families */
  void *exported;               /* the one that the linker binds to, where it is another */
  struct tscope_symbol *symbol; /* the real function behind the wrapper */
  int since;                    /* version of the library that has it */
  bool is_driver;               /* the driver's or CUPTI's, of which a process has one */
};

/* Whether look-ups of the driver's functions, or of the others, are to be answered: TSCOPE and
 * TSCOPE_DRIVER, or TSCOPE_LOOKUPS, read when first asked. */
bool driver_is_wanted(void);
bool look_ups_are_wanted(void);

/* The entry of this name, NULL if there is none. pncclX is another name of ncclX. */
const struct allowed *allowed_find(const char *name);

/* The wrapper for `real`, which a look-up of this entry's function found; `real` itself where the
 * wrapper stands in front of another function already, as with two copies of a library in one
 * process, or if it is tscope's own or NULL. Which was given out is remembered for the trace. */
void *allowed_wrapper(const struct allowed *allowed, void *real);

/* The driver's functions behind the wrappers, by enum driver_symbol. */
extern struct tscope_symbol driver_symbols[];

#pragma GCC visibility pop

#endif
