/* SPDX-License-Identifier: MIT
 *
 * Libraries whose functions hooks keep must stay loaded. Telling the dynamic linker so takes its
 * lock, for which no thread may wait at its first call (search.h). It is enough to do it before
 * something is unloaded: in dlclose(), which takes the lock in any case.
 */
#pragma once

#include "record/hook.h"

/* The object that contains this address is never to be unloaded from here on. */
void tscope_keep_loaded(const void *address);

/* Grows whenever the program unloads something, or gives up a part in it: an address may mean
 * something else since then. */
u64 tscope_unloads(void);

/* What the exported dlclose() jumps to (dlclose.S). */
int tscope_hook_dlclose(void *handle);
