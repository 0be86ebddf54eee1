/* SPDX-License-Identifier: MIT
 *
 * Robust statistics: a few extreme points do not change them.
 */
#pragma once

#include "format/tscope_format.h"

/* Medians reorder `values`. The lower middle value of an even number; 0 for none. */
i64 lower_median_i64(i64 *values, u32 n);
double lower_median(double *values, u32 n);

/* Likewise: the value that would be at `wanted` (under n) if they were sorted. */
i64 ranked_i64(i64 *values, u32 n, u32 wanted);
double ranked_double(double *values, u32 n, u32 wanted);

/* A line through (x, y): y = at_x0 + slope x (x - x0). */
struct line {
  double x0, at_x0, slope;
  double mad; /* median absolute deviation of y about it */
};

/* Theil-Sen: the slope is the median over pairs of points (Sen 1968), the offset the median of what
 * is left. If there are more than `THEIL_SEN_POINTS` points, an even selection is used for the
 * slope. A slope above `most_slope`, or one that the points' scatter could cause by chance (under
 * three standard errors), becomes 0. `scratch` holds n doubles. n is at least 1. */
#define THEIL_SEN_POINTS 96u
struct line fit_line(const double *x, const double *y, u32 n, double most_slope, double *scratch);

static inline double line_at(const struct line *line, double x) {
  return line->at_x0 + line->slope * (x - line->x0);
}
