/* SPDX-License-Identifier: MIT */
#include "process/step_duration.h"

#include "record/tick_clock.h"

enum { KEPT = 32 };

/* Indexed by whether they were marked. Two threads that end a step at once may spoil one time; the
 * median ignores that. */
static struct {
  u64 last, ticks[KEPT];
  u32 n;
} steps[2];

void tscope_step_ended(bool marked) {
  u64 now = tscope_ticks(), last = __atomic_exchange_n(&steps[marked].last, now, __ATOMIC_RELAXED);
  if (!last || now <= last)
    return;
  u32 n = __atomic_load_n(&steps[marked].n, __ATOMIC_RELAXED);
  __atomic_store_n(&steps[marked].ticks[n % KEPT], now - last, __ATOMIC_RELAXED);
  __atomic_store_n(&steps[marked].n, n + 1, __ATOMIC_RELEASE);
}

u64 tscope_step_median_ns(void) {
  u64 sorted[KEPT];
  bool marked = __atomic_load_n(&steps[1].n, __ATOMIC_ACQUIRE) > 0;
  u32 n = __atomic_load_n(&steps[marked].n, __ATOMIC_ACQUIRE);
  n = MIN(n, KEPT);
  for (u32 i = 0; i < n; i++) {
    u64 ticks = __atomic_load_n(&steps[marked].ticks[i], __ATOMIC_RELAXED);
    u32 at = i;
    for (; at && sorted[at - 1] > ticks; at--)
      sorted[at] = sorted[at - 1];
    sorted[at] = ticks;
  }
  u32 middle = n / 2;
  return n ? tscope_ns_of_ticks(sorted[middle]) : 0;
}
