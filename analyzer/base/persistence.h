/* SPDX-License-Identifier: MIT
 *
 * Does something happen more often than by chance, over steps that follow each other? All such
 * questions are asked here.
 *
 * Neighbouring steps are not independent trials: a rank that has no core in one step seldom has one
 * in the next. So n steps tell less than n independent ones. How much less follows from r, the
 * correlation of each value with the next: n steps count as n (1 - r) / (1 + r) [Bayley and
 * Hammersley 1946].
 */
#pragma once

#include "format/tscope_format.h"

struct persistence {
  double products, squares;
  double squared; /* sum over series of their squares, squared */
  double values, series;
};

/* Adds a series in order, each value against the series' mean. */
void persistence_add(struct persistence *p, const double *values, u32 n);

/* Adds what another has, or takes it away: `sign` -1. */
void persistence_join(struct persistence *p, const struct persistence *other, double sign);

/* The correlation of neighbours, from 0: of few values less is known, so it may be larger than what
 * they show, by as much as holds in four of five such series. */
double persistence_of(const struct persistence *p);

/* What part of so correlated steps tells as much as independent ones. */
double independent_share(double correlation);

/* The probability that something with probability `each` per step happens in k or more of n. */
double chance_of_count(u32 k, u32 n, double each, double correlation);

/* The probability that the mean of a series whose true mean is 0 is this large. A value counts as
 * twice the typical size at most, so that no single step decides; it is changed so. `scratch` holds
 * n. 1 below four values. */
double chance_of_mean(double *values, u32 n, double correlation, double *scratch);

/* The probability that values without a change differ as much as those before and from `at` on, as
 * medians, wherever in the series. `scratch` holds n. 1 below four values. */
double chance_of_change(const double *values, u32 n, u32 at, double correlation, double *scratch);
