/* SPDX-License-Identifier: MIT
 *
 * Spreads independent pieces of work over threads.
 */
#pragma once

#include "format/tscope_format.h"

/* `worker` is below the number of threads in use, for per-thread scratch. */
typedef void parallel_fn(void *user, u32 index, unsigned worker);

/* How many threads parallel_for(n, threads, ...) uses at most; 0 asks for one per core. */
unsigned parallel_threads(u32 n, unsigned threads);

/* Calls fn for every index below n, in no particular order, on up to `threads` threads (0: one per
 * core) including the caller's. Returns when all are done. Threads that cannot be started are done
 * without. */
void parallel_for(u32 n, unsigned threads, parallel_fn *fn, void *user);
