/* SPDX-License-Identifier: MIT
 *
 * How many processes the kernel has killed in a cgroup because its memory was used up. Used by
 * tscope-run too.
 */
#pragma once

#include <stddef.h>

#include "format/tscope_format.h"

/* The file with the count for this process's cgroup, version 2 or 1, or for the nearest above it
 * that has one; "" if there is none. Safe in signal handlers. */
void tscope_memory_events_file(char *path, size_t bytes);

/* The count in that file; UINT64_MAX if there is none. Safe in signal handlers. */
u64 tscope_oom_kills(const char *path);
