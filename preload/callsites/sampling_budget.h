/* SPDX-License-Identifier: MIT
 *
 * What sampling may cost: a share of the time that passes, and a credit to begin with. A bucket of
 * time: income flows in, what is spent flows out.
 */
#pragma once

#include "record/hook.h"

enum { SAMPLING_PER_MILLE = 3, SAMPLING_CREDIT_MS = 50 };

/* All times are in ticks, of `hz` a second. */
struct sampling_budget {
  u64 hz;
  i64 left;
  u64 last, spent, always; /* at the last update: the time, and the cost so far */
};

enum sampling_change {
  SAMPLING_UNCHANGED,
  SAMPLING_LESS,        /* of what is sampled */
  SAMPLING_LESS_OF_ALL, /* also of what is always sampled, which alone costs too much */
  SAMPLING_MORE
};

/* To be called again and again, by one thread. `spent` and `always` are running totals: of all
 * classes, and of calls that are always sampled. */
enum sampling_change sampling_budget_update(struct sampling_budget *budget, u64 now, u64 spent,
                                            u64 always);

/* The cost of one sample that took `ticks` by the clock. Time beyond `most_us` microseconds is no
 * work: the thread was off the processor meanwhile, as happens on a busy machine. The budget must
 * not pay for that, or a single such moment would end the sampling for many seconds. */
u64 sampling_cost(u64 hz, u64 ticks, u32 most_us);
