/* SPDX-License-Identifier: MIT */
#include "base/persistence.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/each.h"
#include "base/statistics.h"

#define SURE 0.8       /* standard errors: four of five */
#define MOST 0.95      /* of which 400 steps tell as much as 10 */
#define FEWEST 2.0     /* independent values: a series that is one swing shows no correlation */
#define CLIPPED 2.0    /* times the median size */
#define LEAST 4u       /* values of which the scatter says anything */
#define ROUNDING 1e-18 /* of a series' squares: such scatter is that of the arithmetic */

void persistence_add(struct persistence *p, const double *values, u32 n) {
  double mean = mean_of(values, n), squares = 0, products = 0;
  for (u32 i = 0; i < n; i++) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i + 1 < n)
      products += (values[i] - mean) * (values[i + 1] - mean);
  }
  bool scatters = squares > ROUNDING * n * mean * mean;
  p->products += scatters ? products : 0;
  p->squares += scatters ? squares : 0;
  p->squared += scatters ? squares * squares : 0;
  p->values += n;
  p->series += n > 0;
}

void persistence_join(struct persistence *p, const struct persistence *other, double sign) {
  p->products += sign * other->products;
  p->squares += sign * other->squares;
  p->squared += sign * other->squared;
  p->values += sign * other->values;
  p->series += sign * other->series;
}

double persistence_of(const struct persistence *p) {
  if (p->values == 0)
    return 0;
  /* Taking away a series' own mean takes (1 + 3 r) / n from what it shows of r [Kendall 1954]. */
  double n = p->values / p->series;
  bool scatters = p->squares > 0;
  double r = n > 4 && scatters ? (p->products / p->squares + 1 / n) / (1 - 3 / n) : 0;
  double most = fmin(MOST, fmax(0, (n - FEWEST) / (n + FEWEST)));
  r = fmin(fmax(r, 0), most);
  double independent_series = scatters ? p->squares * p->squares / p->squared : p->series;
  return fmin(r + SURE * sqrt((1 - r * r) / (n * independent_series)), most);
}

double independent_share(double correlation) {
  return (1 - correlation) / (1 + correlation);
}

double chance_of_count(u32 k, u32 n, double each, double correlation) {
  double share = independent_share(correlation);
  return binomial_tail(k * share, n * share, each);
}

/* Of the mean of n values that follow x' = r x + a change with variance 1. */
static double variance_of_mean(double n, double r) {
  double pairs = n * (1 + r) / (1 - r) - 2 * r * (1 - pow(r, n)) / ((1 - r) * (1 - r));
  return pairs / (n * n * (1 - r * r));
}

/* Values of at most twice the median size, as that of a rank that is always late is its lateness.
 */
static void clip(double *values, u32 n, double *scratch) {
  for (u32 i = 0; i < n; i++)
    scratch[i] = fabs(values[i]);
  double most = CLIPPED * median_of(scratch, n);
  FOR_EACH_CHANGED(values, n, value)
    *value = fmax(-most, fmin(*value, most));
}

double chance_of_mean(double *values, u32 n, double correlation, double *scratch) {
  if (n < LEAST)
    return 1;
  clip(values, n, scratch);
  double mean = mean_of(values, n), changes = 0;
  for (u32 i = 1; i < n; i++) {
    double change = values[i] - mean - correlation * (values[i - 1] - mean);
    changes += change * change;
  }
  if (changes == 0)
    return mean > 0 ? 0 : 1;
  double t = mean / sqrt(changes / (n - 2) * variance_of_mean(n, correlation));
  return t > 0 ? student_tails(t, n - 2) / 2 : 1;
}

double chance_of_change(const double *values, u32 n, u32 at, double correlation, double *scratch) {
  const double of_median = 1.5707963; /* its variance over that of a mean, of normal values */
  const u32 begin[] = {0, at}, end[] = {at, n};
  double median[2], changes = 0, variance = 0;
  if (n < LEAST || at == 0 || at >= n)
    return 1;
  for (u32 side = 0; side < 2; side++) {
    u32 of_side = end[side] - begin[side];
    memcpy(scratch, values + begin[side], of_side * sizeof(*scratch));
    median[side] = median_of(scratch, of_side);
    variance += of_median * variance_of_mean(of_side, correlation);
    for (u32 i = begin[side] + 1; i < end[side]; i++) {
      double change = values[i] - median[side] - correlation * (values[i - 1] - median[side]);
      changes += change * change;
    }
  }
  double off = fabs(median[1] - median[0]);
  if (changes == 0)
    return off > 0 ? 0 : 1;
  return fmin(1, n * student_tails(off / sqrt(changes / (n - 3) * variance), n - 3));
}
