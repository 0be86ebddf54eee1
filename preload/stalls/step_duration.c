/* SPDX-License-Identifier: MIT */
#include "stalls/step_duration.h"

#include "record/tick_clock.h"

enum { KEPT = 32 };

/* Two threads that end a step at once may spoil one time; the median ignores that. */
static struct {
  u64 last, ticks[KEPT];
  u32 n;
} steps;

void step_duration_take(bool first) {
  u64 now = tscope_ticks(), last = __atomic_exchange_n(&steps.last, now, __ATOMIC_RELAXED);
  if (first || now <= last)
    return;
  u32 n = __atomic_load_n(&steps.n, __ATOMIC_RELAXED);
  __atomic_store_n(&steps.ticks[n % KEPT], now - last, __ATOMIC_RELAXED);
  __atomic_store_n(&steps.n, n + 1, __ATOMIC_RELEASE);
}

u64 step_median_ns(void) {
  u64 sorted[KEPT];
  u32 n = __atomic_load_n(&steps.n, __ATOMIC_ACQUIRE);
  n = MIN(n, KEPT);
  for (u32 i = 0; i < n; i++) {
    u64 ticks = __atomic_load_n(&steps.ticks[i], __ATOMIC_RELAXED);
    u32 at = i;
    for (; at && sorted[at - 1] > ticks; at--)
      sorted[at] = sorted[at - 1];
    sorted[at] = ticks;
  }
  u32 middle = n / 2;
  return n ? tscope_ns_of_ticks(sorted[middle]) : 0;
}
