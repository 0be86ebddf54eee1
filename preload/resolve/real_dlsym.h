/* SPDX-License-Identifier: MIT
 *
 * The dlsym() behind the one that libtscope.so exports.
 */
#pragma once

#pragma GCC visibility push(hidden)

/* NULL until it was looked for. */
extern void *(*tscope_dlsym_real)(void *handle, const char *name);

/* Looks for it; NULL in a process whose C library keeps it in a libdl that is not loaded. */
void *(*tscope_dlsym_find(void))(void *handle, const char *name);

/* What tscope itself calls. RTLD_NEXT means what comes after libtscope.so. NULL as dlsym(), and
 * where there is no dlsym(). */
void *tscope_dlsym(void *handle, const char *name);

#pragma GCC visibility pop
