/* SPDX-License-Identifier: MIT */
#include "base/ordered_values.h"

#include <math.h>

#include "base/intervals.h"
#include "base/sorting.h"

struct ordered_value {
  double value;
  u32 index;
};

ORDER_BY(first_index_last, struct ordered_value, UP(value) DOWN(index))

void ordered_values_reserve(struct ordered_values *ordered, struct arena *arena, u32 size) {
  ordered->at = arena_array(arena, size, sizeof(*ordered->at));
  ordered->place = arena_array(arena, size, sizeof(u32));
  ordered->counts = arena_array(arena, size, sizeof(u32));
}

void ordered_values_fill(struct ordered_values *ordered, const double *values, u32 size) {
  u32 n = 0;
  for (u32 i = 0; i < size; i++) {
    ordered->place[i] = INDEX_NONE;
    if (!isnan(values[i]))
      ordered->at[n++] = (struct ordered_value){values[i], i};
  }
  SORT(ordered->at, n, first_index_last);
  for (u32 i = 0; i < n; i++)
    ordered->place[ordered->at[i].index] = i;
  for (u32 i = 1; i <= n; i++)
    ordered->counts[i] = i & -i;
  ordered->n = ordered->left = n;
}

void ordered_values_take_out(struct ordered_values *ordered, u32 index) {
  if (ordered->place[index] == INDEX_NONE)
    return;
  for (u32 i = ordered->place[index] + 1; i <= ordered->n; i += i & -i)
    ordered->counts[i]--;
  ordered->left--;
}

/* How many are left before that place. */
static u32 left_before(const struct ordered_values *ordered, u32 place) {
  u32 n = 0;
  for (u32 i = place; i > 0; i -= i & -i)
    n += ordered->counts[i];
  return n;
}

/* The k-th that is left, from 0. */
static const struct ordered_value *left_at(const struct ordered_values *ordered, u32 k) {
  u32 place = 0, stride = 1;
  while (stride <= ordered->n / 2)
    stride *= 2;
  for (; stride; stride /= 2)
    if (place + stride <= ordered->n && ordered->counts[place + stride] <= k) {
      place += stride;
      k -= ordered->counts[place];
    }
  return &ordered->at[place];
}

u32 ordered_values_largest(const struct ordered_values *ordered) {
  return left_at(ordered, ordered->left - 1)->index;
}

/* As median_of() has it, of the values that are left but the one with `before` others before it. */
static double median_but(const struct ordered_values *ordered, u32 n, u32 before) {
  if (n == 0)
    return NAN;
  u32 k = (n - 1) / 2;
  double value = left_at(ordered, k + (k >= before))->value;
  if (n % 2)
    return value;
  k++;
  return value + 0.5 * (left_at(ordered, k + (k >= before))->value - value);
}

double ordered_values_median(const struct ordered_values *ordered) {
  return median_but(ordered, ordered->left, INDEX_NONE);
}

double ordered_values_median_without(const struct ordered_values *ordered, u32 index) {
  if (ordered->place[index] == INDEX_NONE)
    return ordered_values_median(ordered);
  return median_but(ordered, ordered->left - 1, left_before(ordered, ordered->place[index]));
}
