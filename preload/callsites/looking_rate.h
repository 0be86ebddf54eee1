/* SPDX-License-Identifier: MIT
 *
 * How often the helper may look at the threads: up to a hundred times a second, as long as that
 * takes no more than the budget allows (sampling_budget.h). The credit that is granted at the start
 * is spent in the first seconds of training, of which a short run has no more.
 */
#pragma once

#include "callsites/sampling_budget.h"

enum { LEAST_LOOK_INTERVAL_US = 10000, MOST_LOOK_INTERVAL_US = 1280000 };

/* Begins as zeros. */
struct looking_rate {
  struct sampling_budget budget; /* in nanoseconds */
  double look_ns;                /* CPU time of a look while a thread trains, mean; 0: unknown */
  u64 cpu_ns;                    /* at the last update */
  u32 looks, interval_us;
};

/* The time between two looks from now on, in microseconds: the shortest, or it doubled some times.
 * `cpu_ns` and `looks` are running totals. To be called some times a second. */
u32 looking_rate_update(struct looking_rate *rate, u64 now_ns, u64 cpu_ns, u32 looks, bool trains);

/* Nanoseconds until the next look: from half of the interval to one and a half, by chance. At equal
 * distances, looks at a job whose steps take about as long, or a multiple, would see the same
 * moments of each. `chance`: record/random.h. */
u64 looking_rate_next_ns(u32 interval_us, u64 *chance);
