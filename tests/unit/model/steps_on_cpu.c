/* SPDX-License-Identifier: MIT
 *
 * CPU jobs that spend time outside all phases: the CPU clocks of their threads show whether they
 * compute or sleep. The schedule of these runs is known.
 */
#include "model_support.h"

enum { RANK = 2, UNMARKED_MS = 45 };

static struct tracegen_options job(bool asleep) {
  struct tracegen_options options = tracegen_defaults();
  options.flavour = TRACEGEN_GLOO;
  options.phases = true;
  options.steps = 40;
  options.unmarked_rank = RANK;
  options.unmarked_ns = UNMARKED_MS * 1000000ull;
  options.unmarked_asleep = asleep;
  return options;
}

static struct results *analyse_job(struct fixture *fixture, struct tracegen_options *options,
                                   struct model **model) {
  struct tracegen_truth truth;
  struct results *results = NULL;
  *model = generate(fixture, options, &truth);
  results = analyse_all(*model);
  tracegen_truth_free(&truth);
  return results;
}

static double compute_ms(const struct tracegen_options *o) {
  return (2.0 * o->buckets * o->kernels * (double)o->kernel_ns + (double)o->optimizer_ns) / 1e6;
}

static const struct budget_line *line_of(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_budget; i++)
    if (strcmp(budget_part_words[r->budget[i].part], name) == 0)
      return &r->budget[i];
  return NULL;
}

static void compute_in_no_phase_is_compute(void **state) {
  struct tracegen_options options = job(false);
  struct model *model;
  struct results *r = analyse_job(*state, &options, &model);
  for (u32 i = 0; i < options.ranks; i++)
    assert_near(r->ranks[i].median_compute_ms, compute_ms(&options) + (i == RANK ? UNMARKED_MS : 0),
                0.1);
  assert_true(r->ranks[RANK].straggler);
  assert_int_equal(r->ranks[RANK].reason, STRAGGLER_SLOW_COMPUTE);
  /* the largest minus the mean, relative to the wall time */
  double lost = UNMARKED_MS * (1 - 1.0 / options.ranks) / r->step_mean_ms;
  assert_near(r->wall_frac_lost_to_imbalance, lost, 0.02);
  assert_near(line_of(r, "not running outside phases")->seconds / r->wall_s, 0, 0.02);
  results_free(r);
  model_free(model);
}

static void sleep_in_no_phase_is_not(void **state) {
  struct tracegen_options options = job(true);
  struct model *model;
  struct results *r = analyse_job(*state, &options, &model);
  for (u32 i = 0; i < options.ranks; i++)
    assert_near(r->ranks[i].median_compute_ms, compute_ms(&options), 0.1);
  assert_true(r->ranks[RANK].straggler);
  assert_int_not_equal(r->ranks[RANK].reason, STRAGGLER_SLOW_COMPUTE);
  double asleep = UNMARKED_MS / r->step_mean_ms / options.ranks;
  assert_near(line_of(r, "not running outside phases")->fraction, asleep, 0.02);
  results_free(r);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(compute_in_no_phase_is_compute, make_fixture, drop_fixture),
      cmocka_unit_test_setup_teardown(sleep_in_no_phase_is_not, make_fixture, drop_fixture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
