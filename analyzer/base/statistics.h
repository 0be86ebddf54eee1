/* SPDX-License-Identifier: MIT
 *
 * Small statistics over plain arrays. Unknown values (NAN) must be left out by the caller; an
 * empty sample has NAN for every figure.
 */
#pragma once

#include <stddef.h>

#include "format/tscope_format.h"

/* The standard deviation of a normal distribution over its median absolute deviation. */
#define NORMAL_OF_MAD 1.4826

double mean_of(const double *values, size_t n);

/* Sample standard deviation, alone and over the mean; NAN below two values, or for a mean of 0. */
double deviation_of(const double *values, size_t n);
double variation_of(const double *values, size_t n);

/* The value at or below which the share q of the sample lies, linear between neighbours (the
 * usual definition 7). Reorders the array. O(n). */
double quantile_of(double *values, size_t n, double q);
double median_of(double *values, size_t n);

/* What a share may be in truth that so many looks found, less or more by so many standard errors:
 * with one more look that has it and one that has not, so that few that are alike are not taken for
 * certain. */
double share_by_looks(double share, u32 looks, double errors);

double middle_of(double a, double b, double c);

/* The standard error of a sample's median, of which as many as `independent` tell something of
 * their own: half of what lies between the ranks that are one standard error from the middle,
 * whatever the distribution. Reorders the array. */
double error_of_median(double *values, size_t n, double independent);

/* Median of an ascending array less one element equal to `own`. */
double median_of_others(const double *sorted, size_t n, double own);

/* The logarithm of (n over k). */
double log_choose(double n, double k);

/* P(X >= k) of X ~ Binomial(n, p), by the incomplete beta function [Abramowitz and Stegun 26.5.24],
 * which also lies between whole numbers. */
double binomial_tail(double k, double n, double p);

/* P(|T| >= |t|) of Student's t with so many degrees of freedom, and the value that |T| stays below
 * with probability q; by the incomplete beta function [Abramowitz and Stegun 26.5.8, 26.7.1]. */
double student_tails(double t, double freedom);
double student_quantile(double q, double freedom);

/* Each value replaced by the middle one of it and its two neighbours: a single outlier disappears,
 * and a step stays where it is. */
void smooth_outliers(const double *values, u32 n, double *smooth);

/* Where a series changes for good: the index k at which values[k ..] differ most from values[.. k),
 * and the probability that a series without a change looks as changed anywhere (Pettitt's test, by
 * ranks: no outlier and no shape of the noise matters; or by how far the sides are apart), where
 * values follow each other as far as those of each side do (persistence.h). The place is where
 * values lie nearest to the medians of the two sides. `scratch` holds n of struct ranked_value. k
 * is 0 and the probability 1 below 4 values. */
struct ranked_value {
  double value;
  u32 index;
};
u32 change_point(const double *values, u32 n, struct ranked_value *scratch, double *probability);
