/* SPDX-License-Identifier: MIT
 *
 * The memory that control groups allow. What tscope keeps in memory counts for the job: a trace on
 * tmpfs, and what waits to be carried to a file. If a group's memory is used up, the kernel kills a
 * process of the job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Finds the group of this process, or above it, with the lowest limit: memory.max, or
 * memory.limit_in_bytes in version 1. `root` is put before the paths of /proc and /sys; it is ""
 * except in tests. Once, before the others. */
void tscope_memory_limit_find(const char *root);

/* Whether this process may have `bytes` in memory for its trace, `more` of them new: at most a 64th
 * of the limit, and a quarter of the limit stays free. Page cache of files counts as free. True if
 * there is no limit, or none can be read. For one thread at a time. */
bool tscope_memory_limit_allows(uint64_t bytes, uint64_t more);
