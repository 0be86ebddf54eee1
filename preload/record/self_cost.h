/* SPDX-License-Identifier: MIT
 *
 * Records that say how the clocks stand, what tscope itself costs, and what was lost so far.
 */
#ifndef TSCOPE_TOTALS_H
#define TSCOPE_TOTALS_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Ticks that the job's threads have spent off the fast path; added to by them. */
extern u64 tscope_slow_path_ticks;

/* `startup_ns` is what waking took on the job's thread. */
void tscope_totals_init(u64 startup_ns);

/* Finds out what one record costs in this process. Some 100 us; not on a thread of the job. */
void tscope_totals_measure_hook(void);

/* Writes an ANCHOR, a COST, and a LOSS for each reason whose total changed. */
void tscope_totals_write(void);

#pragma GCC visibility pop

#endif
