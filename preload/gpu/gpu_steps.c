/* SPDX-License-Identifier: MIT */
#include "gpu/gpu_steps.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_clock.h"
#include "settings/env.h"

void gpu_step_ended(struct tscope_thread *thread, bool marked) {
  static u32 ended[2], known, on, of;
  if (TSCOPE_LIKELY(!*tscope_env.gpu_steps))
    return;
  if (!__atomic_exchange_n(&known, 1, __ATOMIC_ACQ_REL)) {
    on = (u32)strtoul(tscope_env.gpu_steps, NULL, 10);
    const char *slash = strchr(tscope_env.gpu_steps, '/'); /* as env.def promises */
    __atomic_store_n(&of, slash ? (u32)strtoul(slash + 1, NULL, 10) : 0, __ATOMIC_RELEASE);
  }
  u32 period = __atomic_load_n(&of, __ATOMIC_ACQUIRE);
  u32 n = __atomic_add_fetch(&ended[marked], 1, __ATOMIC_RELAXED);
  if (!period || (!marked && __atomic_load_n(&ended[1], __ATOMIC_RELAXED)))
    return;
  gpu_clock_pause(thread, (marked ? n - 1 : n) % period >= on);
}
