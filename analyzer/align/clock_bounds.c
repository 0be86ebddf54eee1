/* SPDX-License-Identifier: MIT */
#include "align/clock_bounds.h"

#include <math.h>
#include <stdlib.h>

#include "base/sorting.h"

#define SEARCHES 80 /* each makes the interval 0.62 times as wide: 1e-3 becomes 1e-20 */
#define GOLDEN 0.6180339887498949

ORDER_BY(by_x, struct bound, UP(x))

/* Keeps the bounds that some line touches: the convex hull, from below (sign 1: upper bounds) or
 * from above (sign -1: lower bounds). Andrew's monotone chain. */
static u32 keep_hull(struct bound *at, u32 n, double sign) {
  u32 kept = 0;
  SORT(at, n, by_x);
  FOR_EACH(at, n, one) {
    while (kept && at[kept - 1].x == one->x && sign * at[kept - 1].y >= sign * one->y)
      kept--;
    if (kept && at[kept - 1].x == one->x)
      continue;
    while (kept >= 2) {
      const struct bound *a = &at[kept - 2], *b = &at[kept - 1];
      double turn = (b->x - a->x) * (one->y - a->y) - (b->y - a->y) * (one->x - a->x);
      if (sign * turn > 0)
        break;
      kept--;
    }
    at[kept++] = *one;
  }
  return kept;
}

/* The most (or least) that a line of this slope may be at x. */
static double most_at(const struct bounds *bounds, double slope, double x) {
  double most = INFINITY;
  FOR_EACH(bounds->most.at, bounds->most.n, one)
    most = fmin(most, one->y + slope * (x - one->x));
  return most;
}

static double least_at(const struct bounds *bounds, double slope, double x) {
  double least = -INFINITY;
  FOR_EACH(bounds->least.at, bounds->least.n, one)
    least = fmax(least, one->y + slope * (x - one->x));
  return least;
}

enum wanted { WIDEST, HIGHEST, LOWEST };

/* A concave function of the slope: how much room the bounds leave, or how far they let a line go at
 * x. */
static double goal(const struct bounds *bounds, enum wanted wanted, double slope, double x) {
  switch (wanted) {
  case WIDEST:
    return most_at(bounds, slope, x) - least_at(bounds, slope, x);
  case HIGHEST:
    return most_at(bounds, slope, x);
  default:
    return -least_at(bounds, slope, x);
  }
}

/* The slope in [from, to] with the highest goal. */
static double best_slope(const struct bounds *bounds, enum wanted wanted, double from, double to,
                         double x) {
  double a = to - GOLDEN * (to - from), b = from + GOLDEN * (to - from);
  double at_a = goal(bounds, wanted, a, x), at_b = goal(bounds, wanted, b, x);
  for (u32 i = 0; i < SEARCHES; i++) {
    if (at_a >= at_b) {
      to = b;
      b = a;
      at_b = at_a;
      a = to - GOLDEN * (to - from);
      at_a = goal(bounds, wanted, a, x);
    } else {
      from = a;
      a = b;
      at_a = at_b;
      b = from + GOLDEN * (to - from);
      at_b = goal(bounds, wanted, b, x);
    }
  }
  return (from + to) / 2;
}

/* The last slope on the way from `inside`, which leaves room, to `outside` that still does. */
static double edge_slope(const struct bounds *bounds, double inside, double outside, double x) {
  if (goal(bounds, WIDEST, outside, x) >= 0)
    return outside;
  for (u32 i = 0; i < SEARCHES; i++) {
    double middle = (inside + outside) / 2;
    if (goal(bounds, WIDEST, middle, x) >= 0)
      inside = middle;
    else
      outside = middle;
  }
  return inside;
}

bool clock_bounds_solve(struct bounds *bounds, double x0, double x1, struct clock_range *at_x0,
                        struct clock_range *at_x1) {
  bounds->least.n = keep_hull(bounds->least.at, bounds->least.n, -1);
  bounds->most.n = keep_hull(bounds->most.at, bounds->most.n, 1);
  if (bounds->least.n == 0 || bounds->most.n == 0)
    return false;
  double middle = (x0 + x1) / 2;
  double widest = best_slope(bounds, WIDEST, -MOST_DRIFT, MOST_DRIFT, middle);
  double room = goal(bounds, WIDEST, widest, middle);
  if (room < 0) {
    FOR_EACH_CHANGED(bounds->least.at, bounds->least.n, each)
      each->y += room;
    FOR_EACH_CHANGED(bounds->most.at, bounds->most.n, one)
      one->y -= room;
  }
  double from = edge_slope(bounds, widest, -MOST_DRIFT, middle);
  double to = edge_slope(bounds, widest, MOST_DRIFT, middle);
  const double x[2] = {x0, x1};
  struct clock_range *ranges[2] = {at_x0, at_x1};
  for (u32 i = 0; i < 2; i++) {
    double highest = best_slope(bounds, HIGHEST, from, to, x[i]);
    double lowest = best_slope(bounds, LOWEST, from, to, x[i]);
    *ranges[i] =
        (struct clock_range){least_at(bounds, lowest, x[i]), most_at(bounds, highest, x[i])};
  }
  return true;
}
