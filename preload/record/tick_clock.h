/* SPDX-License-Identifier: MIT
 *
 * The process's tick clock and its relation to the system's clocks.
 */
#pragma once

#include "record/hook.h"
#include "record/kernel_threads.h"

#pragma GCC visibility push(hidden)

struct tscope_clock {
  enum tscope_tick_source source;
  u32 shift; /* ticks >> shift are the units of traces, 4 to 8 ns if the clock allows */
  u64 hz;    /* an estimate, within some 0.1 % */
};
extern struct tscope_clock tscope_clock;

/* Picks the tick clock; tscope_ticks() is valid from then on. Takes up to a millisecond if the
 * hardware does not give its frequency. */
void tscope_clock_choose(void);

/* Reads a clock. At first clock_gettime() as anybody calls it; from the waking on the C library's
 * own, since a clock that another preloaded library makes up may stand still, and waits would not
 * end. */
extern int (*tscope_clock_read)(clockid_t id, struct timespec *now);

/* One of the system's clocks in nanoseconds. */
static inline u64 tscope_clock_ns(clockid_t id) {
  struct timespec now;
  return tscope_clock_read(id, &now) == 0 ? (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec : 0;
}

/* Waits while the futex has that value, for at most so long; false if it still has it. */
static inline bool tscope_wait_while(u32 *futex, u32 value, u64 most_ns) {
  u64 until = tscope_clock_ns(CLOCK_MONOTONIC) + most_ns, now;
  while (__atomic_load_n(futex, __ATOMIC_SEQ_CST) == value) {
    if ((now = tscope_clock_ns(CLOCK_MONOTONIC)) >= until)
      return false;
    tscope_futex_wait(futex, value, until - now);
  }
  return true;
}

static inline u64 tscope_ns_of_ticks(u64 ticks) {
  return (u64)((double)ticks * 1e9 / (double)tscope_clock.hz);
}

static inline u64 tscope_ticks_of_s(u64 seconds) {
  return seconds * tscope_clock.hz;
}

/* Reads every clock at one instant: the best of several brackets. Fills all fields except the
 * header; gpu_ns comes from tscope_gpu_clock_now, and is 0 if that is not set. */
void tscope_clock_anchor(struct tscope_anchor_record *anchor);

#pragma GCC visibility pop
