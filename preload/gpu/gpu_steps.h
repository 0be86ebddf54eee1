/* SPDX-License-Identifier: MIT
 *
 * The duty cycle: with TSCOPE_GPU_STEPS=N/M the source of GPU time works for N of every M steps of
 * the job and rests for the others.
 */
#pragma once

#include "record/hook.h"

/* As a family's step_ended() (families.h). */
void gpu_step_ended(struct tscope_thread *thread, u32 steps, bool first);
