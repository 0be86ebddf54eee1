/* SPDX-License-Identifier: MIT
 *
 * Compares interval sets with a bitmap, and statistics with closed forms and with sorting.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/intervals.h"
#include "base/ordered_values.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "seeded.h"

#define AXIS 200

static u32 seed = 1;

/* Makes a random set, and the same set as a bitmap. */
static void random_set(struct intervals *set, bool *bits) {
  memset(bits, 0, AXIS * sizeof(bool));
  set->n = 0;
  for (i64 at = random_below(&seed, 20); at < AXIS;) {
    i64 end = at + 1 + random_below(&seed, 15);
    end = MIN(end, AXIS);
    intervals_append(set, at, end);
    for (i64 i = at; i < end; i++)
      bits[i] = true;
    at = end + random_below(&seed, 20);
  }
}

static void assert_is(const struct intervals *set, const bool *bits) {
  u32 k = 0;
  for (i64 i = 0; i < AXIS; i++) {
    while (k < set->n && set->at[k].end <= i)
      k++;
    bool inside = k < set->n && set->at[k].start <= i;
    assert_int_equal(inside, bits[i]);
  }
  for (u32 i = 1; i < set->n; i++)
    assert_true(set->at[i - 1].end < set->at[i].start);
}

static void sets_agree_with_a_bitmap(void **state) {
  (void)state;
  struct interval room_a[AXIS], room_b[AXIS];
  for (u32 round = 0; round < 500; round++) {
    struct intervals a = {room_a, 0}, b = {room_b, 0}, both, less;
    bool in_a[AXIS], in_b[AXIS], expected[AXIS];
    struct arena arena = {0};
    random_set(&a, in_a);
    random_set(&b, in_b);
    intervals_union(&arena, &a, &b, &both);
    for (u32 i = 0; i < AXIS; i++)
      expected[i] = in_a[i] || in_b[i];
    assert_is(&both, expected);
    intervals_subtract(&arena, &a, &b, &less);
    for (u32 i = 0; i < AXIS; i++)
      expected[i] = in_a[i] && !in_b[i];
    assert_is(&less, expected);
    u32 cursor = 0;
    for (i64 start = 0; start < AXIS; start += 7) {
      i64 wanted = 0, end = start + random_below(&seed, 30);
      for (i64 i = start; i < end && i < AXIS; i++)
        wanted += in_a[i];
      assert_int_equal(intervals_covered(&a, &cursor, start, end), wanted);
    }
    arena_release(&arena);
  }
}

static void quantiles_agree_with_sorting(void **state) {
  (void)state;
  for (u32 round = 0; round < 300; round++) {
    u32 n = 1 + random_below(&seed, 60);
    double values[64], sorted[64];
    for (u32 i = 0; i < n; i++)
      values[i] = sorted[i] = random_below(&seed, 20); /* with ties */
    qsort(sorted, n, sizeof(double), by_double);
    double q = random_below(&seed, 101) / 100.0, at = q * (n - 1);
    u32 k = (u32)at;
    double wanted = k + 1 < n ? sorted[k] + (at - k) * (sorted[k + 1] - sorted[k]) : sorted[k];
    double own = sorted[random_below(&seed, n)], others[64];
    u32 m = 0;
    bool skipped = false;
    for (u32 i = 0; i < n; i++)
      if (skipped || sorted[i] != own)
        others[m++] = sorted[i];
      else
        skipped = true;
    assert_true(fabs(quantile_of(values, n, q) - wanted) < 1e-12);
    if (n > 1)
      assert_true(median_of_others(sorted, n, own) == median_of(others, m));
  }
  assert_true(isnan(median_of(NULL, 0)));
  assert_true(isnan(mean_of(NULL, 0)));
}

static void tails_are_exact(void **state) {
  (void)state;
  /* fair coin: P(X >= 8 of 10) = (45 + 10 + 1) / 1024 */
  assert_true(fabs(binomial_tail(8, 10, 0.5) - 56.0 / 1024) < 1e-12);
  /* last in every step: p^n */
  assert_true(fabs(binomial_tail(50, 50, 0.125) / pow(0.125, 50) - 1) < 1e-9);
  assert_true(binomial_tail(0, 10, 0.3) == 1);
  assert_true(binomial_tail(11, 10, 0.3) == 0);
  /* complement of P(X = 0) */
  assert_true(fabs(binomial_tail(1, 20, 0.25) - (1 - pow(0.75, 20))) < 1e-12);
}

/* Compares with the definition: the sum, over all pairs, of the sign of their difference. */
static void a_change_is_as_likely_as_pairs_say(void **state) {
  (void)state;
  for (u32 round = 0; round < 200; round++) {
    u32 n = 4 + random_below(&seed, 40);
    double values[64], most = 0, probability;
    struct ranked_value scratch[64];
    for (u32 i = 0; i < n; i++)
      values[i] = random_below(&seed, 12) + (i > n / 2 ? random_below(&seed, 20) : 0);
    for (u32 k = 1; k < n; k++) {
      double sum = 0;
      for (u32 i = 0; i < k; i++)
        for (u32 j = k; j < n; j++)
          sum += (values[i] > values[j]) - (values[i] < values[j]);
      most = fmax(most, fabs(sum));
    }
    change_point(values, n, scratch, &probability);
    /* Values may follow each other, as 400 that tell as much as 10; how far they are apart may make
     * it less likely. */
    double p = 2 * exp(-6 * most * most / ((double)n * n * n + (double)n * n));
    assert_true(probability <= fmin(1, 2 * pow(p / 2, 0.025)) + 1e-12);
  }
}

/* Eight deviations are seen to the value, wherever they begin, also if the last values before are
 * the largest of their side, and with outliers in between. */
static void a_clear_change_is_found_where_it_is(void **state) {
  (void)state;
  for (u32 round = 0; round < 200; round++) {
    u32 n = 20 + random_below(&seed, 60), wanted = 5 + random_below(&seed, n - 10),
        outlier = random_below(&seed, n);
    double values[96], probability;
    struct ranked_value scratch[96];
    for (u32 i = 0; i < n; i++)
      values[i] = 100 + random_below(&seed, 3) + (i + 2 >= wanted) + (i >= wanted ? 12 : 0);
    if (outlier + 2 < wanted || outlier > wanted + 1) /* beside the change nobody could tell */
      values[outlier] = 1000;
    assert_int_equal(change_point(values, n, scratch, &probability), wanted);
  }
}

/* How many of 1,000 series said to be changed with p < 0.01: of 60 values, each following the one
 * before by `follows`, every second one higher by `second`, the last 30 by `higher`. */
static u32 changed_of_1000(double follows, double second, double higher) {
  u32 changed = 0;
  for (u32 round = 0; round < 1000; round++) {
    double values[60], off = 0, probability;
    struct ranked_value scratch[60];
    for (u32 i = 0; i < 100; i++) {
      double noise = 0;
      for (u32 k = 0; k < 12; k++)
        noise += random_below(&seed, 1000) / 1000.0 - 0.5;
      off = follows * off + noise * sqrt(1 - follows * follows);
      if (i >= 40)
        values[i - 40] = off + (i % 2 ? second : 0) + (i >= 70 ? higher : 0);
    }
    change_point(values, 60, scratch, &probability);
    changed += probability < 0.01;
  }
  return changed;
}

static void values_that_follow_each_other_have_not_changed(void **state) {
  (void)state;
  assert_in_range(changed_of_1000(0, 0, 0), 0, 10);
  assert_in_range(changed_of_1000(0.5, 0, 0), 0, 10);
  assert_in_range(changed_of_1000(0.8, 0, 0), 0, 30);
  assert_in_range(changed_of_1000(0, 5, 0), 0, 0);
  assert_in_range(changed_of_1000(0.5, 5, 0), 0, 0);
  assert_in_range(changed_of_1000(0, 0, 3), 990, 1000);
  assert_in_range(changed_of_1000(0.5, 0, 4), 900, 1000);
}

static void variation_is_sample_deviation_over_mean(void **state) {
  (void)state;
  const double values[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* mean 5, squares 32 */
  assert_true(fabs(variation_of(values, 8) - sqrt(32.0 / 7) / 5) < 1e-12);
  assert_true(isnan(variation_of(values, 1)));
}

/* Values of a few sizes, so that many are equal; some are none. */
static void values_left_in_order_agree_with_sorting(void **state) {
  (void)state;
  for (u32 n = 0; n < 40; n++) {
    struct arena arena = {0};
    struct ordered_values ordered = {0};
    double values[40], left[40];
    u32 out[40];
    for (u32 i = 0; i < n; i++) {
      out[i] = i;
      values[i] = random_below(&seed, 9) ? random_below(&seed, n) : (double)NAN;
    }
    for (u32 i = 0; i + 1 < n; i++) {
      u32 k = i + random_below(&seed, n - i), swap = out[i];
      out[i] = out[k];
      out[k] = swap;
    }
    ordered_values_reserve(&ordered, &arena, n);
    ordered_values_fill(&ordered, values, n);
    for (u32 taken = 0; taken < n; taken++) {
      u32 largest = INDEX_NONE, m = 0, others = 0, index = out[taken];
      for (u32 i = 0; i < n; i++)
        for (u32 k = taken; k < n; k++)
          if (out[k] == i && !isnan(values[i])) {
            largest = m++ && values[i] <= values[largest] ? largest : i;
            left[m - 1] = values[i];
          }
      assert_int_equal(ordered.left, m);
      if (m) {
        assert_int_equal(ordered_values_largest(&ordered), largest);
        assert_true(ordered_values_median(&ordered) == median_of(left, m));
      }
      if (isnan(values[index]))
        continue;
      for (u32 k = taken + 1; k < n; k++)
        if (!isnan(values[out[k]]))
          left[others++] = values[out[k]];
      double without = ordered_values_median_without(&ordered, index);
      assert_true(others ? without == median_of(left, others) : isnan(without));
      ordered_values_take_out(&ordered, index);
    }
    arena_release(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sets_agree_with_a_bitmap),
      cmocka_unit_test(quantiles_agree_with_sorting),
      cmocka_unit_test(values_left_in_order_agree_with_sorting),
      cmocka_unit_test(tails_are_exact),
      cmocka_unit_test(a_change_is_as_likely_as_pairs_say),
      cmocka_unit_test(a_clear_change_is_found_where_it_is),
      cmocka_unit_test(values_that_follow_each_other_have_not_changed),
      cmocka_unit_test(variation_is_sample_deviation_over_mean)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
