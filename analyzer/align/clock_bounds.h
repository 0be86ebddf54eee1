/* SPDX-License-Identifier: MIT
 *
 * What is certain of a clock. Nobody ends a barrier-like collective before all have started it, and
 * nobody has received a message before it was sent. So each such event bounds the difference of two
 * clocks from one side, whatever delays threads and links had. Bounds of a whole run leave a set of
 * lines (offset and drift) that a clock may follow.
 */
#pragma once

#include "base/arena.h"
#include "base/vector.h"
#include "model/rank_clock.h"

/* At time x the difference is at least (or at most) y. Nanoseconds from some origin. */
struct bound {
  double x, y;
};

struct bounds {
  VECTOR(struct bound) least, most;
};

/* What values of the difference are possible. */
struct clock_range {
  double least, most;
};

/* The ranges at x0 and at x1 over all lines that keep all bounds. If none does (the clock's rate
 * changed), the bounds are widened as far as one line needs. Sorts the bounds and drops those that
 * others imply. False if one side has no bound. */
bool clock_bounds_solve(struct bounds *bounds, double x0, double x1, struct clock_range *at_x0,
                        struct clock_range *at_x1);
