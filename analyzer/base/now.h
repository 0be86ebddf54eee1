/* SPDX-License-Identifier: MIT
 *
 * What time it is.
 */
#pragma once

#include <time.h>

#include "format/tscope_format.h"

/* One of the system's clocks, ns. */
static inline i64 clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (i64)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Since some moment in the past, for durations. */
static inline double now_s(void) {
  return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}
