/* SPDX-License-Identifier: MIT
 *
 * The period of calls, and that of the pauses between equal ones: repeated layers are not taken for
 * steps.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/period.h"
#include "seeded.h"

/* Appends `count` copies of a token. */
static u32 repeat(u32 *tokens, u32 n, u32 token, u32 count) {
  while (count-- > 0)
    tokens[n++] = token;
  return n;
}

static void plain_period_between_start_up_and_shut_down(void **state) {
  (void)state;
  u32 tokens[1000], n = 0;
  struct period period;
  n = repeat(tokens, n, 90, 3); /* parameters are broadcast once */
  for (u32 step = 0; step < 20; step++) {
    n = repeat(tokens, n, 1, 1);
    n = repeat(tokens, n, 2, 2);
    n = repeat(tokens, n, 3, 1);
  }
  n = repeat(tokens, n, 91, 1); /* a barrier at the end */
  assert_true(find_period(tokens, n, &period));
  assert_int_equal(period.length, 4);
  assert_int_equal(period.first, 3);
  assert_int_equal(period.last, 83);
}

/* In a short run one reduction at the end is more than 5 % of all. */
static void ending_of_a_short_run(void **state) {
  (void)state;
  struct period period;
  for (u32 a_step = 1; a_step <= 3; a_step++) {
    u32 tokens[64], n = 0;
    n = repeat(tokens, n, 90, 1); /* a barrier, here and at the end */
    for (u32 step = 0; step < 12; step++)
      for (u32 i = 0; i < a_step; i++)
        n = repeat(tokens, n, i, 1);
    n = repeat(tokens, n, 91, 1);
    n = repeat(tokens, n, 90, 1);
    assert_true(find_period(tokens, n, &period));
    assert_int_equal(period.length, a_step);
    assert_int_equal(period.first, 1);
    assert_int_equal(period.last, 1 + 12 * a_step);
  }
}

static void three_long_periods(void **state) {
  (void)state;
  u32 tokens[300];
  struct period period;
  for (u32 i = 0; i < 300; i++)
    tokens[i] = i % 100;
  assert_true(find_period(tokens, 300, &period));
  assert_int_equal(period.length, 100);
  assert_int_equal(period.last, 300);
}

/* 48 layers make the same reduction, and the embedding makes another once per step: 98 % of all
 * tokens equal the one before, but that of the embedding never does. */
static void layers_are_not_steps(void **state) {
  (void)state;
  u32 tokens[1000], n = 0;
  struct period period;
  for (u32 step = 0; step < 12; step++) {
    n = repeat(tokens, n, 7, 48);
    n = repeat(tokens, n, 8, 1);
  }
  assert_true(find_period(tokens, n, &period));
  assert_int_equal(period.length, 49);
}

static void layers_of_several_collectives(void **state) {
  (void)state;
  u32 tokens[4000], n = 0;
  struct period period;
  for (u32 step = 0; step < 10; step++) {
    for (u32 layer = 0; layer < 32; layer++) {
      n = repeat(tokens, n, 1, 1); /* gather parameters */
      n = repeat(tokens, n, 2, 1); /* scatter gradients */
    }
    n = repeat(tokens, n, 3, 1); /* gradient norm */
  }
  assert_true(find_period(tokens, n, &period));
  assert_int_equal(period.length, 65);
}

static void a_stray_collective_does_not_hide_the_period(void **state) {
  (void)state;
  u32 tokens[1000], n = 0;
  struct period period;
  for (u32 step = 0; step < 60; step++)
    for (u32 i = 0; i < 5; i++)
      tokens[n++] = i;
  tokens[137] = 99;
  assert_true(find_period(tokens, n, &period));
  assert_int_equal(period.length, 5);
  assert_int_equal(period.first, 0);
  assert_true(period.match > 0.98 && period.match < 1);
}

static void no_period_is_none(void **state) {
  (void)state;
  u32 tokens[500], x = 1;
  struct period period;
  for (u32 i = 0; i < 500; i++)
    tokens[i] = random_bits(&x);
  assert_false(find_period(tokens, 500, &period));
  assert_false(find_period(tokens, 1, &period));
  assert_false(find_period(tokens, 0, &period));
}

static void pauses_distinguish_equal_collectives(void **state) {
  (void)state;
  double gaps[200];
  u32 first;
  for (u32 i = 0; i < 200; i++) /* a step of 8 begins with the third */
    gaps[i] = (i % 8 == 2 ? 5000 : 300) * (1 + 0.2 * (i * 7919 % 13) / 13);
  assert_int_equal(find_gap_period(gaps, 200, &first), 8);
  assert_int_equal(first, 2);
  for (u32 i = 0; i < 200; i++)
    gaps[i] = 300 * (1 + (i * 7919 % 13) / 13.0);
  assert_int_equal(find_gap_period(gaps, 200, &first), 1);
  assert_int_equal(first, 0);
}

/* Each step of four passes waits 30 ms for its batch. On a busy machine a third of the other pauses
 * are long too: these only get longer by that, and no place in the period but the first is long
 * each time. */
static void pauses_that_a_busy_machine_makes_long_do_not_hide_those_of_the_program(void **state) {
  (void)state;
  double gaps[159];
  u32 first, x = 1;
  for (u32 i = 0; i < 159; i++) {
    bool held_up = random_below(&x, 100) < 35;
    gaps[i] = i % 4 == 3 ? 3e7 : held_up ? 1e6 * (5 + random_below(&x, 20)) : 3e5;
  }
  assert_int_equal(find_gap_period(gaps, 159, &first), 4);
  assert_int_equal(first, 3);
  for (u32 i = 0; i < 159; i++) /* the same pauses, at any place */
    gaps[i] = random_below(&x, 100) < 50 ? 3e7 : 3e5;
  assert_int_equal(find_gap_period(gaps, 159, &first), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_period_between_start_up_and_shut_down),
      cmocka_unit_test(ending_of_a_short_run),
      cmocka_unit_test(three_long_periods),
      cmocka_unit_test(layers_are_not_steps),
      cmocka_unit_test(layers_of_several_collectives),
      cmocka_unit_test(a_stray_collective_does_not_hide_the_period),
      cmocka_unit_test(no_period_is_none),
      cmocka_unit_test(pauses_distinguish_equal_collectives),
      cmocka_unit_test(pauses_that_a_busy_machine_makes_long_do_not_hide_those_of_the_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
