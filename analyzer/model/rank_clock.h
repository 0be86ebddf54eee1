/* SPDX-License-Identifier: MIT
 *
 * From a rank's own clock to the axis that all ranks share. align/ finds it.
 */
#pragma once

#include "base/intervals.h"

/* No two working clocks drift apart faster: NTP slews by up to 500 ppm. */
#define MOST_DRIFT 1e-3

/* Two threads that read one clock see an order of events in which none is further from its place: a
 * thread may lose its core between the event and the reading. */
#define READ_LATE_NS 50000

/* Two processes know how far their clocks are from the time of day to within this: NTP slews that
 * for all alike, and each reads both one after the other. */
#define SAME_CLOCK_NS 1000000

/* axis = local + offset + drift x (local - pivot) */
struct rank_clock {
  i64 pivot, offset;
  double drift;
};

static inline i64 clock_to_axis(const struct rank_clock *clock, i64 local) {
  if (local == NS_UNKNOWN)
    return NS_UNKNOWN;
  return local + clock->offset + (i64)(clock->drift * (double)(local - clock->pivot));
}
