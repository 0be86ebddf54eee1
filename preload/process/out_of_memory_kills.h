/* SPDX-License-Identifier: MIT
 *
 * How many processes the kernel has killed in a cgroup because its memory was used up. No part of
 * the shim's other code is needed: tscope-run asks too.
 */
#ifndef TSCOPE_OUT_OF_MEMORY_KILLS_H
#define TSCOPE_OUT_OF_MEMORY_KILLS_H

#include <stddef.h>

#include "format/tscope_format.h"

#pragma GCC visibility push(hidden)

/* The file that counts for this process's cgroup, version 2 or 1; "" where there is none. */
void tscope_memory_events_file(char *path, size_t bytes);

/* What it says; UINT64_MAX where it does not say. Safe in signal handlers. */
u64 tscope_oom_kills(const char *path);

#pragma GCC visibility pop

#endif
