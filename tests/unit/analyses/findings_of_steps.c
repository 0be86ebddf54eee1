/* SPDX-License-Identifier: MIT
 *
 * Findings about steps. For each finding: a run in which it fires, and one in
 * which it nearly fires but must not.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "scenario.h"

static void dataloader_bound(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.input = 30 * MS;
  assert_true(fires(&s, "TIMING.DATALOADER_BOUND"));
  s.options.input = 14 * MS; /* 4.3 % */
  assert_false(fires(&s, "TIMING.DATALOADER_BOUND"));
  s = healthy_scenario();
  s.options.extra_input[5] = 50 * MS; /* of one rank alone: this is to mend, and it is named */
  assert_false(fires(&s, "TIMING.DATALOADER_BOUND"));
  assert_true(fires(&s, "DIST.STRAGGLER"));
  s = healthy_scenario();
  s.options.on_gpu = false;
  s.options.input = 30 * MS;
  assert_true(fires(&s, "TIMING.DATALOADER_BOUND"));
}

static u32 steps_of_rank_0;
static bool rank_0_leaves;
static void end_early(struct cluster *c) {
  struct model *model = &c->model;
  for (u32 i = 0; i < model->n_ranks; i++)
    model->ranks[i].closed = true;
  for (u32 step = steps_of_rank_0; step < model->steps.n; step++)
    model->steps.begin[step * model->n_ranks] = model->steps.end[step * model->n_ranks] =
        NS_UNKNOWN;
  if (rank_0_leaves)
    model->ranks[0].end = model->steps.end[(steps_of_rank_0 - 1) * model->n_ranks];
}

/* Of 50 steps: rank 0 has no more batches, but stays. */
static void uneven_steps(void **state) {
  (void)state;
  struct scenario s = {.options = healthy_cpu(), .given = no_options(), .spoil = end_early};
  steps_of_rank_0 = 40;
  assert_true(fires(&s, "DIST.UNEVEN_STEPS"));
  rank_0_leaves = true;
  assert_false(fires(&s, "DIST.UNEVEN_STEPS"));
  rank_0_leaves = false;
  steps_of_rank_0 = 48; /* 4 % */
  assert_false(fires(&s, "DIST.UNEVEN_STEPS"));
}

/* Rank 0 is slow by 120 ms in the 25 steps that it makes, of 50: in the others nothing is saved,
 * and they are not shared with those that do not make them. */
static void steps_that_a_slow_rank_does_not_make(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.slow[0] = 0.4;
  o.slow_until = steps_of_rank_0 = o.steps / 2;
  rank_0_leaves = false;
  struct cluster *c = cluster_new(&o);
  end_early(c);
  struct results *r = cluster_analyse(c, NULL);
  double half = (double)steps_of_rank_0 / o.steps;
  assert_true(r->ranks[0].straggler);
  assert_true(fabs(saved_ms(r, WHAT_IF_RANK) - 120 * half) < 8);
  assert_true(fabs(saved_ms(r, WHAT_IF_EVERY_RANK) - 120 * half) < 8);
  cluster_end(r, c);
}

/* Without rank 2, slow by 120 ms, a step waits for rank 0, slow by 60. That was recorded in half of
 * the steps: in the others it is not known what is waited for it, and these do not tell. */
static void steps_of_which_all_was_recorded_tell(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.slow[0] = 0.2;
  o.slow[2] = 0.4;
  struct cluster *c = cluster_new(&o);
  struct steps *steps = &c->model.steps;
  for (u32 i = 0; i < o.ranks; i++)
    c->model.ranks[i].closed = i > 0;
  for (u32 step = o.steps / 2; step < o.steps; step++)
    steps->begin[step * o.ranks] = steps->end[step * o.ranks] = NS_UNKNOWN;
  struct results *r = cluster_analyse(c, NULL);
  assert_true(fabs(saved_ms(r, WHAT_IF_RANK) - 60) < 1);
  cluster_end(r, c);
}

/* Batches that take long now and then: what to look at is their preparation. */
static void long_steps_wait_for_input(void **state) {
  (void)state;
  enum { N = 40, SLOW = 7 };
  static const u32 slow[SLOW] = {3, 8, 10, 17, 21, 30, 37};
  i64 late[N * 2] = {0};
  for (u32 i = 0; i < SLOW; i++)
    late[slow[i] * 2] = late[slow[i] * 2 + 1] = 300 * MS;
  struct cluster_options o = healthy_gpu();
  o.ranks = 2;
  o.steps = N;
  o.late_input = late;
  struct cluster *c = cluster_new(&o);
  c->model.phases = arena_array(&c->arena, N * 2, sizeof(*c->model.phases));
  for (u32 i = 0; i < N * 2; i++)
    c->model.phases[i] = (struct phase_times){.data = o.input + late[i]};
  struct analyse_options options = no_options();
  struct results *r = cluster_analyse(c, &options);
  const struct finding *found = finding_of(r, "TIMING.JITTER");
  assert_non_null(found);
  assert_non_null(strstr(found->evidence, "of that time they wait for their input"));
  assert_non_null(strstr(found->action, "batches slow to prepare"));
  c->model.phases = NULL;
  cluster_end(r, c);
}

static void jitter(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.slow_step = 200 * MS;
  assert_true(fires(&s, "TIMING.JITTER"));
  s.options.steps = 20; /* 18 are analysed */
  assert_false(fires(&s, "TIMING.JITTER"));
  s = healthy_scenario();
  s.options.slow_step = 50 * MS; /* 16 % */
  assert_false(fires(&s, "TIMING.JITTER"));
}

/* Where a scaler leaves the optimizer out, a step of the optimizer holds two backward passes: the
 * report says so. Where it does not, all devices compute longer in such a step. */
static void a_step_of_two_passes_is_told(void **state) {
  (void)state;
  for (u32 twice = 0; twice < 2; twice++) {
    struct cluster_options o = healthy_gpu();
    o.slow_step = 300 * MS;
    struct cluster *c = cluster_new(&o);
    u32 n = c->model.n_ranks;
    c->model.phases = arena_array(&c->arena, c->model.steps.n * n, sizeof(*c->model.phases));
    for (u32 i = 0; i < c->model.steps.n * n; i++)
      c->model.phases[i] = (struct phase_times){
          .forward = MS, .backward = MS, .backwards = twice && i / n % 10 == 9 ? 4 : 2};
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *jitter = finding_of(r, "TIMING.JITTER");
    assert_non_null(jitter);
    assert_int_equal(twice, strstr(jitter->evidence, "5 of them hold the backward passes") != NULL);
    assert_int_equal(twice, strstr(jitter->action, "gradient scaler") != NULL);
    assert_int_equal(!twice, strstr(jitter->action, "given to compute") != NULL);
    c->model.phases = NULL;
    cluster_end(r, c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(dataloader_bound),
                                     cmocka_unit_test(uneven_steps),
                                     cmocka_unit_test(steps_of_which_all_was_recorded_tell),
                                     cmocka_unit_test(steps_that_a_slow_rank_does_not_make),
                                     cmocka_unit_test(jitter),
                                     cmocka_unit_test(long_steps_wait_for_input),
                                     cmocka_unit_test(a_step_of_two_passes_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
