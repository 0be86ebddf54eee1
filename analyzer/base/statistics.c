/* SPDX-License-Identifier: MIT */
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "base/each.h"
#include "base/persistence.h"
#include "base/robust.h"
#include "base/sorting.h"

double mean_of(const double *values, size_t n) {
  double sum = TOTAL(double, values, n, one, *one);
  return n ? sum / (double)n : NAN;
}

double deviation_of(const double *values, size_t n) {
  double mean = mean_of(values, n);
  double squares = TOTAL(double, values, n, one, (*one - mean) * (*one - mean));
  return n < 2 ? NAN : sqrt(squares / (double)(n - 1));
}

double variation_of(const double *values, size_t n) {
  double mean = mean_of(values, n);
  return mean == 0 ? NAN : deviation_of(values, n) / mean;
}

double quantile_of(double *values, size_t n, double q) {
  if (n == 0)
    return NAN;
  double at = q * (double)(n - 1);
  size_t k = (size_t)at;
  double value = ranked_double(values, (u32)n, (u32)k); /* nothing after it is smaller */
  if (k + 1 >= n || at == (double)k)
    return value;
  double next = values[k + 1];
  for (size_t i = k + 2; i < n; i++)
    next = MIN(values[i], next);
  return value + (at - (double)k) * (next - value);
}

double share_by_looks(double share, u32 looks, double errors) {
  double n = looks + 2.0, middle = (share * looks + 1) / n;
  return middle + errors * sqrt(middle * (1 - middle) / n);
}

double median_of(double *values, size_t n) {
  return quantile_of(values, n, 0.5);
}

double error_of_median(double *values, size_t n, double independent) {
  double apart = fmin(0.5, 0.5 / sqrt(independent));
  return (quantile_of(values, n, 0.5 + apart) - quantile_of(values, n, 0.5 - apart)) / 2;
}

static double value_without(const double *sorted, size_t skip, size_t i) {
  return sorted[i >= skip ? i + 1 : i];
}

double median_of_others(const double *sorted, size_t n, double own) {
  if (n < 2)
    return NAN;
  size_t rest = n - 1, low = FIRST_NOT(0, (u32)n - 1, i, sorted[i] < own);
  double upper = value_without(sorted, low, rest / 2);
  return rest % 2 ? upper : (upper + value_without(sorted, low, rest / 2 - 1)) / 2;
}

/* lgamma() also writes the sign into a variable that all threads share. */
static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double log_choose(double n, double k) {
  return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1);
}

ORDER_BY(by_ranked_value, struct ranked_value, UP(value))

double middle_of(double a, double b, double c) {
  return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

void smooth_outliers(const double *values, u32 n, double *smooth) {
  for (u32 i = 0; i < n; i++) {
    u32 middle = i == 0 ? 1 : i + 1 == n ? n - 2 : i;
    smooth[i] =
        n < 3 ? values[i] : middle_of(values[middle - 1], values[middle], values[middle + 1]);
  }
}

/* The break that leaves the least squares about the means of its two sides. The test by ranks knows
 * that there is a break, but not where, if the last values before it are the largest of their side.
 */
static u32 find_break(const double *values, u32 n, double *smooth) {
  double all = 0, before = 0, most = -1;
  u32 at = 1;
  smooth_outliers(values, n, smooth);
  FOR_EACH(smooth, n, one)
    all += *one;
  for (u32 i = 1; i < n; i++) {
    before += smooth[i - 1];
    double off = before - all * i / n, gain = off * off / ((double)i * (n - i));
    if (gain > most) {
      most = gain;
      at = i;
    }
  }
  return at;
}

/* Of neighbouring values, on each side of a break about its own mean. `ranked` is used up. */
static double correlation_beside(struct ranked_value *ranked, u32 n, u32 at) {
  struct persistence p = {0};
  double *values = (double *)(void *)ranked;
  for (u32 i = 0; i < n; i++)
    values[i] = ranked[i].value;
  persistence_add(&p, values, at);
  persistence_add(&p, values + at, n - at);
  return persistence_of(&p);
}

u32 change_point(const double *values, u32 n, struct ranked_value *scratch, double *probability) {
  *probability = 1;
  if (n < 4)
    return 0;
  u32 at = find_break(values, n, (double *)(void *)scratch);
  for (u32 i = 0; i < n; i++)
    scratch[i] = (struct ranked_value){values[i], i};
  SORT(scratch, n, by_ranked_value);
  /* Each value's rank, the mean of their ranks where several are equal, in the place of its index.
   */
  for (u32 i = 0, next; i < n; i = next) {
    next = i + ROW_OF_EQUALS(scratch + i, n - i, a, b, a->value == b->value);
    double rank = (i + 1 + next) / 2.0;
    for (u32 k = i; k < next; k++)
      scratch[k].value = rank;
  }
  double statistic = 0, most = 0;
  for (u32 wanted = 0; wanted + 1 < n; wanted++) {
    u32 i = wanted; /* follow the permutation until this index holds its own rank */
    while (scratch[i].index != wanted) {
      struct ranked_value other = scratch[scratch[i].index];
      scratch[scratch[i].index] = scratch[i];
      scratch[i] = other;
    }
    statistic += 2 * scratch[wanted].value - (n + 1.0);
    most = fmax(most, fabs(statistic));
  }
  double size = n, correlation = correlation_beside(scratch, n, at);
  double by_rank = 2 * exp(-6 * independent_share(correlation) * most * most /
                           (size * size * size + size * size));
  double by_size = chance_of_change(values, n, at, correlation, (double *)(void *)scratch);
  *probability = fmin(1, fmin(by_rank, by_size));
  return most > 0 ? at : 0;
}

/* The continued fraction of the incomplete beta function, evaluated from the front (Lentz). */
static double beta_fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < tiny ? tiny : d);
  double value = d;
  for (int m = 1; m < 500; m++) {
    double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    const double steps[] = {even, odd};
    double change = 1;
    FOR_EACH(steps, 2, step) {
      d = 1 + *step * d;
      c = 1 + *step / c;
      d = 1 / (fabs(d) < tiny ? tiny : d);
      c = fabs(c) < tiny ? tiny : c;
      change = c * d;
      value *= change;
    }
    if (fabs(change - 1) < 1e-15)
      break;
  }
  return value;
}

static double incomplete_beta(double a, double b, double x) {
  if (x <= 0 || x >= 1)
    return x <= 0 ? 0 : 1;
  double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_tails(double t, double freedom) {
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double student_quantile(double q, double freedom) {
  double low = 0, high = 1;
  while (student_tails(high, freedom) > 1 - q && high < 1e12)
    high *= 2;
  for (int i = 0; i < 80; i++) {
    double middle = (low + high) / 2;
    *(student_tails(middle, freedom) > 1 - q ? &low : &high) = middle;
  }
  return (low + high) / 2;
}

double binomial_tail(double k, double n, double p) {
  return k <= 0 ? 1 : k > n ? 0 : incomplete_beta(k, n - k + 1, p);
}
