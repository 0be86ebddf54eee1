/* SPDX-License-Identifier: MIT */
#include "gpu/gpu_steps.h"

#include <stdio.h>

#include "gpu/gpu_clock.h"
#include "settings/env.h"

/* The setting; 0 of 0 if there is none or it is invalid. */
struct cycle {
  u32 on, of;
};

static struct cycle read_setting(void) {
  struct cycle cycle;
  char rest;
  if (sscanf(tscope_env.gpu_steps, "%u/%u%c", &cycle.on, &cycle.of, &rest) == 2 && cycle.on &&
      cycle.on < cycle.of)
    return cycle;
  if (*tscope_env.gpu_steps)
    tscope_log(0,
               "TSCOPE_GPU_STEPS is N/M with 0 < N < M, not %s: GPU times are taken for all steps",
               tscope_env.gpu_steps);
  return (struct cycle){0, 0};
}

void gpu_step_ended(struct tscope_thread *thread, bool marked) {
  static u32 ended[2], known, on, of;
  if (TSCOPE_LIKELY(!*tscope_env.gpu_steps))
    return;
  if (!__atomic_exchange_n(&known, 1, __ATOMIC_ACQ_REL)) {
    struct cycle cycle = read_setting();
    on = cycle.on;
    __atomic_store_n(&of, cycle.of, __ATOMIC_RELEASE);
  }
  u32 period = __atomic_load_n(&of, __ATOMIC_ACQUIRE);
  u32 n = __atomic_add_fetch(&ended[marked], 1, __ATOMIC_RELAXED);
  if (!period || (!marked && __atomic_load_n(&ended[1], __ATOMIC_RELAXED)))
    return;
  gpu_clock_pause(thread, (marked ? n - 1 : n) % period >= on);
}
