/* SPDX-License-Identifier: MIT
 *
 * How long the job's steps take, as far as the process sees that while it runs.
 */
#ifndef TSCOPE_STEP_TIMES_H
#define TSCOPE_STEP_TIMES_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* A step has ended on the host: an optimizer was done, or, if `marked`, the user began another one.
 * Marks count alone as soon as there are two. */
void tscope_step_ended(bool marked);

/* Median of the last steps, 0 if none is known. */
u64 tscope_step_median_ns(void);

#pragma GCC visibility pop

#endif
