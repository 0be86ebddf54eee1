/* SPDX-License-Identifier: MIT
 *
 * Names of kernels by what is launched: a host function, or a kernel handle. Programs register
 * them at load time, long before tscope wakes; only pointers are kept then.
 */
#ifndef TSCOPE_KERNEL_NAMES_H
#define TSCOPE_KERNEL_NAMES_H

/* `name` must stay readable as long as the function can be launched. */
void kernel_name_register(const void *function, const char *name);

/* A kernel handle stands for a registered function. */
void kernel_name_alias(const void *kernel, const void *function);

/* Mangled name, NULL if nobody knows. Call it after a launch of the function succeeded: the CUDA
 * runtime may be asked, which is harmless only then. */
const char *kernel_name(const void *function);

#endif
