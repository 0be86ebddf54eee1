/* SPDX-License-Identifier: MIT */
#include "gpu/gpu_steps.h"

#include "gpu/gpu_clock.h"
#include "settings/env.h"

void gpu_step_ended(struct tscope_thread *thread, u32 steps, bool first) {
  (void)first;
  const struct tscope_fraction *on = &tscope_env.gpu_steps;
  if (on->whole)
    gpu_clock_pause(thread, steps % on->whole >= on->part);
}
