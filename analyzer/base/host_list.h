/* SPDX-License-Identifier: MIT
 *
 * Names of hosts as "node[002-017], login, node[019-020]": as cluster tools write and read them.
 */
#pragma once

#include "base/arena.h"

/* In a sentence: shortened to what can be read there. Some names may be equal, or NULL. *different:
 * how many hosts these are. */
char *host_list_in(struct arena *arena, const char *const *names, u32 n, u32 *different);
