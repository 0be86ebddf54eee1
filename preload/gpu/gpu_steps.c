/* SPDX-License-Identifier: MIT */
#include "gpu/gpu_steps.h"

#include "gpu/gpu_clock.h"
#include "settings/env.h"

void gpu_step_ended(struct tscope_thread *thread, bool marked) {
  static u32 ended[2];
  const struct tscope_fraction *on = &tscope_env.gpu_steps;
  if (TSCOPE_LIKELY(!on->whole))
    return;
  u32 n = __atomic_add_fetch(&ended[marked], 1, __ATOMIC_RELAXED);
  if (!marked && __atomic_load_n(&ended[1], __ATOMIC_RELAXED))
    return;
  gpu_clock_pause(thread, (marked ? n - 1 : n) % on->whole >= on->part);
}
