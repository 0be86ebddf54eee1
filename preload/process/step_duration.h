/* SPDX-License-Identifier: MIT
 *
 * How long the job's steps take, as far as the process can see it while it runs.
 */
#pragma once

#include "record/hook.h"

/* A step has ended on the host: an optimizer finished, or, if `marked`, the user marked the start
 * of another step. As soon as there are two marks, only marks count. */
void tscope_step_ended(bool marked);

/* Median of the last steps, 0 if none is known. */
u64 tscope_step_median_ns(void);
