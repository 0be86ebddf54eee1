/* SPDX-License-Identifier: MIT
 *
 * Values in order, of which some are taken out one after the other: the largest and the median of
 * those that are left, each in O(log n).
 */
#pragma once

#include "base/arena.h"
#include "format/tscope_format.h"

struct ordered_value;
struct ordered_values {
  struct ordered_value *at; /* [n] in order */
  u32 *place;               /* [size] of the value in `at`; INDEX_NONE: it is NAN */
  u32 *counts;              /* [n + 1] a Fenwick tree over `at`: those that are left */
  u32 n, left;
};

/* Memory for up to `size` values. */
void ordered_values_reserve(struct ordered_values *ordered, struct arena *arena, u32 size);

/* Once, after that; also in another thread. Values that are NAN are none. */
void ordered_values_fill(struct ordered_values *ordered, const double *values, u32 size);

/* Of the values that are left: `index` was its index in `values`. One that is NAN is none of them.
 */
void ordered_values_take_out(struct ordered_values *ordered, u32 index);
u32 ordered_values_largest(const struct ordered_values *ordered); /* of equal ones the first */
double ordered_values_median(const struct ordered_values *ordered);
double ordered_values_median_without(const struct ordered_values *ordered, u32 index);
