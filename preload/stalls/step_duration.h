/* SPDX-License-Identifier: MIT
 *
 * How long the job's steps take (job_steps.h).
 */
#pragma once

#include "record/hook.h"

/* Another step has ended; `first`: there was none before it. */
void step_duration_take(bool first);

/* Median of the last steps, 0 if none is known. */
u64 step_median_ns(void);
