/* SPDX-License-Identifier: MIT
 *
 * Names of kernels by what is launched: a host function, or a kernel handle. Programs register them
 * at load time, long before tscope wakes; at that time only pointers are kept.
 */
#pragma once

#include "record/families.h"

/* `name` must stay readable as long as the function can be launched. */
void kernel_name_register(const void *function, const char *name);

/* A kernel handle stands for a registered function. */
void kernel_name_alias(const void *kernel, const void *function);

/* Set in the address of what a driver's launch launches (a CUfunction or CUkernel), to distinguish
 * it from a host function or the runtime's handle; no address has it. */
#define KERNEL_OF_DRIVER (1ull << 63)

/* The driver returned this handle for a name. A copy of the name is kept; there is room for some
 * megabytes of names. */
void kernel_name_register_driver(const void *handle, const char *name);

/* A number that changes when the handle gets another name; 0 if none was registered for it. */
u64 kernel_name_entry(const void *function);

/* Mangled name, NULL if not known. Call it after a launch of the function succeeded: it may query
 * the CUDA runtime, which is harmless only then. */
const char *kernel_name(const void *function);
