/* SPDX-License-Identifier: MIT */
#include "base/robust.h"

#include <math.h>

#include "base/statistics.h"

#define LEAST_FOR_SLOPE 8u

#define DEFINE_MEDIAN(ranked, median, type)                                                        \
  type ranked(type *values, u32 n, u32 wanted) {                                                   \
    i64 low = 0, high = (i64)n - 1;                                                                \
    while (low < high) {                                                                           \
      type pivot = values[low + (high - low) / 2];                                                 \
      i64 i = low, j = high;                                                                       \
      while (i <= j) {                                                                             \
        while (values[i] < pivot)                                                                  \
          i++;                                                                                     \
        while (values[j] > pivot)                                                                  \
          j--;                                                                                     \
        if (i <= j) {                                                                              \
          type swap = values[i];                                                                   \
          values[i++] = values[j];                                                                 \
          values[j--] = swap;                                                                      \
        }                                                                                          \
      }                                                                                            \
      if (wanted <= j)                                                                             \
        high = j;                                                                                  \
      else if (wanted >= i)                                                                        \
        low = i;                                                                                   \
      else                                                                                         \
        break;                                                                                     \
    }                                                                                              \
    return values[wanted];                                                                         \
  }                                                                                                \
  type median(type *values, u32 n) {                                                               \
    return n == 0 ? 0 : ranked(values, n, (n - 1) / 2);                                            \
  }

DEFINE_MEDIAN(ranked_i64, lower_median_i64, i64)
DEFINE_MEDIAN(ranked_double, lower_median, double)

/* Median slope over all pairs of at most THEIL_SEN_POINTS evenly chosen points. */
static double median_slope(const double *x, const double *y, u32 n) {
  static _Thread_local double slopes[THEIL_SEN_POINTS * (THEIL_SEN_POINTS - 1) / 2];
  u32 points = MIN(n, THEIL_SEN_POINTS), found = 0;
  for (u32 i = 0; i < points; i++) {
    u32 a = (u32)((u64)i * n / points);
    for (u32 j = i + 1; j < points; j++) {
      u32 b = (u32)((u64)j * n / points);
      if (x[a] != x[b])
        slopes[found++] = (y[b] - y[a]) / (x[b] - x[a]);
    }
  }
  return lower_median(slopes, found);
}

/* Offset and scatter of a line whose slope is given. */
static void fit_offset(struct line *line, const double *x, const double *y, u32 n,
                       double *scratch) {
  for (u32 i = 0; i < n; i++)
    scratch[i] = y[i] - line->slope * (x[i] - line->x0);
  line->at_x0 = lower_median(scratch, n);
  for (u32 i = 0; i < n; i++)
    scratch[i] = fabs(y[i] - line_at(line, x[i]));
  line->mad = lower_median(scratch, n);
}

struct line fit_line(const double *x, const double *y, u32 n, double most_slope, double *scratch) {
  double lowest = x[0], highest = x[0];
  for (u32 i = 1; i < n; i++) {
    lowest = fmin(lowest, x[i]);
    highest = fmax(highest, x[i]);
  }
  double span = highest - lowest;
  struct line line = {.x0 = lowest + span / 2};
  if (n >= LEAST_FOR_SLOPE && span > 0 && most_slope > 0)
    line.slope = median_slope(x, y, n);
  fit_offset(&line, x, y, n, scratch);
  /* x spread evenly over the span has variance span^2 / 12; NORMAL_OF_MAD * MAD is its deviation */
  double error = NORMAL_OF_MAD * line.mad * sqrt(12.0 / n) / (span > 0 ? span : 1);
  if (line.slope != 0 && (fabs(line.slope) > most_slope || fabs(line.slope) < 3 * error)) {
    line.slope = 0;
    fit_offset(&line, x, y, n, scratch);
  }
  return line;
}
