/* SPDX-License-Identifier: MIT
 *
 * The budget for looking at call sites. The expected rates are the closed form: if a look takes L
 * and calls come every P, one call in n may be looked at if L / n <= 0.003 P.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* After cmocka, which defines these names differently. */
#include "callsites/looking_rate.h"
#include "callsites/sampling_budget.h"

enum { HZ = 1000000000, TICK = HZ / 100, WALK_US = 500 };

/* A job with `calls` calls in each of `ticks` ticks; a look at one takes `look_us`. In every
 * `pause_every`th tick one look takes `pause_us`. */
struct job {
  u32 calls, look_us, ticks, pause_every, pause_us;
};

static u32 rate_after(const struct job *job, double *share) {
  struct sampling_budget budget = {.hz = HZ};
  u64 now = 1, spent = 0;
  u32 one_in = 1;
  for (u32 t = 1; t <= job->ticks; t++) {
    now += TICK;
    spent += sampling_cost(HZ, job->look_us * 1000ull, WALK_US) * (job->calls / one_in);
    if (job->pause_every && t % job->pause_every == 0)
      spent += sampling_cost(HZ, job->pause_us * 1000ull, WALK_US);
    enum sampling_change change = sampling_budget_update(&budget, now, spent, 0);
    if (change == SAMPLING_LESS && one_in < 1 << 16)
      one_in *= 2;
    else if (change == SAMPLING_MORE && one_in > 1)
      one_in /= 2;
  }
  *share = (double)spent / (double)(now - 1);
  return one_in;
}

static void cheap_looks_are_all_taken(void **state) {
  (void)state;
  double share;
  const struct job job = {.calls = 10, .look_us = 2, .ticks = 6000};
  assert_int_equal(rate_after(&job, &share), 1);
}

/* 1,000 looks of 2 µs in 10 ms would be a fifth of the time. */
static void expensive_looks_stay_within_the_budget(void **state) {
  (void)state;
  double share;
  const struct job job = {.calls = 1000, .look_us = 2, .ticks = 60000};
  assert_true(rate_after(&job, &share) >= 32);
  assert_true(share <= 0.003 + 0.05 / 600); /* plus the 50 ms that are granted at the beginning */
}

/* On a busy machine a thread may lose the processor for 80 ms during a look. Once a second that
 * would be more than the budget, and no call would be looked at any more. */
static void pauses_of_the_thread_do_not_end_the_sampling(void **state) {
  (void)state;
  double share;
  const struct job job = {
      .calls = 10, .look_us = 2, .ticks = 6000, .pause_every = 100, .pause_us = 80000};
  assert_int_equal(rate_after(&job, &share), 1);
}

static void calls_that_are_always_looked_at_are_the_last_to_be_reduced(void **state) {
  (void)state;
  struct sampling_budget budget = {.hz = HZ};
  sampling_budget_update(&budget, 1, 0, 0);
  assert_int_equal(sampling_budget_update(&budget, 1 + TICK, HZ / 10, 0), SAMPLING_LESS);
  assert_int_equal(sampling_budget_update(&budget, 1 + 2 * TICK, HZ / 5, HZ / 10),
                   SAMPLING_LESS_OF_ALL);
}

/* A process that first imports its libraries, ten looks a second, and then trains. */
struct looks {
  u32 import_s, import_us, train_s, train_us;
};

/* The share of a core that looks take; the looks in each of the seconds of training. */
static double share_of_looks(const struct looks *job, u32 *in_second) {
  struct looking_rate rate = {0};
  u64 now = 1, cpu = 0, imported = (u64)job->import_s * HZ, end = imported + (u64)job->train_s * HZ;
  u64 round = 0;
  u32 looks = 0, interval_us = LEAST_LOOK_INTERVAL_US;
  while (now < end) {
    bool trains = now > imported;
    now += trains ? interval_us * 1000ull : HZ / 10;
    cpu += 1000ull * (trains ? job->train_us : job->import_us);
    looks++;
    if (trains && now < end)
      in_second[(now - imported) / HZ]++;
    if (now - round < HZ / 10)
      continue;
    round = now;
    interval_us = looking_rate_update(&rate, now, cpu, looks, trains);
  }
  return (double)cpu / (double)(now - 1);
}

static void looks_that_are_cheap_are_a_hundred_a_second(void **state) {
  (void)state;
  static u32 in_second[600];
  share_of_looks(&(struct looks){.import_s = 10, .import_us = 300, .train_s = 600, .train_us = 29},
                 in_second);
  for (u32 s = 1; s < 600; s++)
    assert_in_range(in_second[s], 99, 101);
}

/* 100 looks of 80 us a second would be 0.8 %. A short run has them all the same. */
static void the_first_seconds_of_training_have_a_hundred_looks(void **state) {
  (void)state;
  static u32 in_second[600];
  double share = share_of_looks(
      &(struct looks){.import_s = 10, .import_us = 300, .train_s = 600, .train_us = 80}, in_second);
  for (u32 s = 1; s < 4; s++)
    assert_in_range(in_second[s], 99, 101);
  assert_true(share <= 0.003 + 0.05 / 610);
  assert_true(share >= 0.5 * 0.003); /* intervals are doubled, so half of it may be left over */
  for (u32 s = 100; s < 599; s++)
    assert_in_range(in_second[s], 24, 51);
}

static void expensive_looks_stay_within_their_share(void **state) {
  (void)state;
  static u32 in_second[600];
  double share = share_of_looks(&(struct looks){.train_s = 600, .train_us = 1000}, in_second);
  assert_true(share <= 0.003 + 0.05 / 600);
}

/* Of steps of 40 ms, 10 are at a line: a quarter of the looks see it, whatever lies between them.
 */
static void looks_do_not_see_the_same_moment_of_each_step(void **state) {
  (void)state;
  enum { LOOKS = 4000, STEP_NS = 40000000 };
  u64 chance = 1;
  for (u32 interval_us = 10000; interval_us <= 160000; interval_us *= 2) {
    u64 now = 0, busy = 0;
    for (u32 i = 0; i < LOOKS; i++, now += looking_rate_next_ns(interval_us, &chance))
      busy += now % STEP_NS < STEP_NS / 4;
    assert_in_range(busy, LOOKS / 4 - LOOKS / 20, LOOKS / 4 + LOOKS / 20);
    assert_in_range(now / LOOKS / 1000, interval_us * 97 / 100, interval_us * 103 / 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cheap_looks_are_all_taken),
      cmocka_unit_test(expensive_looks_stay_within_the_budget),
      cmocka_unit_test(pauses_of_the_thread_do_not_end_the_sampling),
      cmocka_unit_test(calls_that_are_always_looked_at_are_the_last_to_be_reduced),
      cmocka_unit_test(looks_that_are_cheap_are_a_hundred_a_second),
      cmocka_unit_test(the_first_seconds_of_training_have_a_hundred_looks),
      cmocka_unit_test(expensive_looks_stay_within_their_share),
      cmocka_unit_test(looks_do_not_see_the_same_moment_of_each_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
