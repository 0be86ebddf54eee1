/* SPDX-License-Identifier: MIT
 *
 * The duty cycle: with TSCOPE_GPU_STEPS=N/M the source of GPU time works for N of every M steps of
 * the job and rests for the others.
 */
#pragma once

#include "record/hook.h"

/* A step has ended on the host: an optimizer finished, or, if `marked`, the user marked the start
 * of another step. As soon as there is one mark, only marks count. */
void gpu_step_ended(struct tscope_thread *thread, bool marked);
