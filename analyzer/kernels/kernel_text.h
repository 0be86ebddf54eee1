/* SPDX-License-Identifier: MIT
 *
 * Names of kernels as text: from the compiler's form to one that people can read.
 */
#pragma once

/* The whole demangled name; a copy of `name` if it is not mangled. The caller frees it. */
char *kernel_demangle(const char *name);

/* What the patterns of categories.def are matched against: the name without its return type and
 * parameters, and without "(anonymous namespace)::". The caller frees it. */
char *kernel_strip(const char *demangled);

/* A stripped name, taken apart: "cuda::cast<4, float>" has the scope "cuda", the function "cast"
 * and the arguments "4, float>". Where the function is only a frame for its first template
 * argument, such as cutlass::device_kernel, these are the parts of that argument. */
struct kernel_parts {
  const char *scope, *function, *arguments; /* empty where there is none */
};

/* Returns what holds the parts, to be freed. */
char *kernel_split(const char *stripped, struct kernel_parts *parts);

/* Writes a stripped name for people into `out` of KERNEL_SHORT + 1 bytes: without namespaces, and
 * of the template arguments only the one that says what the kernel does. */
void kernel_shorten(const char *stripped, char *out);
