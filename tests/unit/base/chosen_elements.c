/* SPDX-License-Identifier: MIT
 *
 * One element of a list: the first of a kind, the one with the largest value, the last that has
 * begun, one that most are like. And a list that is a tree.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <math.h>

#include "base/each.h"
#include "base/intervals.h"
#include "base/tree_order.h"

static const double values[] = {NAN, 2, 7, 7, NAN, 3};
enum { N = LENGTH_OF(values) };

static void the_largest_is_the_first_of_equal_ones(void **state) {
  (void)state;
  assert_ptr_equal(LARGEST(values, N, one, true, *one), &values[2]);
  assert_ptr_equal(LARGEST(values, N, one, *one < 7, *one), &values[5]);
}

/* A value that is not known hides none that is, wherever it stands. */
static void unknown_values_are_less_than_any(void **state) {
  (void)state;
  u32 none = 0;
  assert_ptr_equal(LARGEST(values, 2, one, true, -*one), &values[1]);
  assert_ptr_equal(LARGEST(values, 1, one, true, *one), &values[0]);
  assert_null(LARGEST(values, none, one, true, *one));
}

static void the_first_of_a_kind(void **state) {
  (void)state;
  u32 none = 0;
  assert_ptr_equal(FIND(values, N, one, *one > 2), &values[2]);
  assert_null(FIND(values, N, one, *one > 7));
  assert_true(ANY(values, N, one, isnan(*one)));
  assert_false(ANY(values, none, one, true));
}

static void what_has_begun_is_found_beside_what_is_not_known(void **state) {
  (void)state;
  static const i64 begin[] = {NS_UNKNOWN, 10, NS_UNKNOWN, NS_UNKNOWN, 20, 30, NS_UNKNOWN};
  static const struct {
    i64 time;
    i32 last;
  } asked[] = {{NS_UNKNOWN, -1}, {9, -1}, {10, 1}, {19, 1}, {20, 4}, {29, 4}, {30, 5}, {99, 5}};
  FOR_EACH(asked, LENGTH_OF(asked), one)
    assert_int_equal(LAST_BEGUN(LENGTH_OF(begin), i, begin[i], one->time), one->last);
  assert_int_equal(LAST_BEGUN(1, i, begin[i], 9), -1);
  assert_int_equal(LAST_BEGUN(0, i, begin[i], 9), -1);
}

static void what_most_are_like_is_counted(void **state) {
  (void)state;
  static const u32 seen[] = {3, 7, 7, 1, 7, 7, 2};
  u32 times;
  assert_int_equal(seen[MAJORITY(LENGTH_OF(seen), i, k, seen[i] == seen[k], times)], 7);
  assert_int_equal(times, 4);
  assert_int_equal(MAJORITY(0, i, k, seen[i] == seen[k], times), 0);
  assert_int_equal(times, 0);
}

static void a_tree_is_listed_with_what_is_below_each_node(void **state) {
  (void)state;
  static const u32 above[] = {INDEX_NONE, 0, INDEX_NONE, 0, 1, 2};
  u32 listed[] = {2, 0, 3, 5, 1, 4}, ordered[] = {2, 5, 0, 3, 1, 4};
  ORDER_AS_TREE(listed, LENGTH_OF(listed), LENGTH_OF(above), i, above[i]);
  assert_memory_equal(listed, ordered, sizeof(listed));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_largest_is_the_first_of_equal_ones),
      cmocka_unit_test(unknown_values_are_less_than_any),
      cmocka_unit_test(the_first_of_a_kind),
      cmocka_unit_test(what_has_begun_is_found_beside_what_is_not_known),
      cmocka_unit_test(what_most_are_like_is_counted),
      cmocka_unit_test(a_tree_is_listed_with_what_is_below_each_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
