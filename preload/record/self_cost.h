/* SPDX-License-Identifier: MIT
 *
 * Records of the clocks' readings, of tscope's own cost, and of what was lost so far.
 */
#pragma once

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Ticks that the job's threads have spent off the fast path, as on stacks; the threads add to it.
 */
extern u64 tscope_slow_path_ticks;

/* `startup_ns` is the time that waking took on the job's thread. */
void tscope_self_cost_init(u64 startup_ns);

/* Measures what one hooked call costs in this process, with a record and without. Takes about 1 ms;
 * not on a thread of the job. */
void tscope_self_cost_measure_hook(void);

/* Writes an ANCHOR, a COST, and a LOSS for each reason whose total changed. `helper_cpu_ns` is the
 * CPU time of tscope's own threads so far. */
void tscope_self_cost_write(u64 helper_cpu_ns);

#pragma GCC visibility pop
