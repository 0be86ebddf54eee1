/* SPDX-License-Identifier: MIT
 *
 * Two runs against each other: what changed is said, what is noise is not, and how the runs were
 * made is told apart from what they did.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "analyse_cluster.h"
#include "base/statistics.h"
#include "diff/diff.h"

struct pair {
  struct cluster *before, *after;
  struct results *old, *new;
};

static struct pair compare_with(struct cluster_options before, struct cluster_options after,
                                void (*edit)(struct pair *)) {
  struct pair pair = {.before = cluster_new(&before), .after = cluster_new(&after)};
  struct analyse_options options = no_options();
  if (edit)
    edit(&pair);
  pair.old = cluster_analyse(pair.before, &options);
  pair.new = cluster_analyse(pair.after, &options);
  assert_int_equal(diff_results(pair.old, pair.new), 0);
  return pair;
}

static void pair_free(struct pair *pair) {
  results_free(pair->old);
  results_free(pair->new);
  cluster_free(pair->before);
  cluster_free(pair->after);
}

static const struct finding *found(const struct pair *pair, const char *id) {
  const struct diff_result *diff = pair->new->diff;
  for (u32 i = 0; i < diff->n_findings; i++)
    if (!strcmp(diff->findings[i].id, id))
      return &diff->findings[i];
  return NULL;
}

static const struct diff_row *row(const struct pair *pair, const char *section, const char *name) {
  const struct diff_result *diff = pair->new->diff;
  for (u32 i = 0; i < diff->n_rows; i++)
    if (!strcmp(diff->rows[i].section, section) && !strcmp(diff->rows[i].name, name))
      return &diff->rows[i];
  return NULL;
}

/* Runs that only their noise tells apart are called alike in at least 95 of 100. */
static void noise_is_no_change(void **state) {
  (void)state;
  u32 called = 0;
  for (u32 round = 0; round < 100; round++) {
    struct cluster_options before = healthy_gpu(), after = healthy_gpu();
    before.noise = after.noise = 0.05;
    before.ranks = after.ranks = 2;
    before.seed = 2 * round + 1;
    after.seed = 7000 + 2 * round;
    struct pair pair = compare_with(before, after, NULL);
    assert_non_null(pair.new->diff->verdict);
    called += strcmp(pair.new->diff->verdict, "no change beyond noise") != 0;
    pair_free(&pair);
  }
  assert_true(called <= 5);
}

static void a_change_beyond_noise_is_said(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = healthy_gpu();
  before.noise = after.noise = 0.02;
  after.forward += 20 * MS; /* of 310 */
  struct pair pair = compare_with(before, after, NULL);
  assert_string_equal(pair.new->diff->verdict, "slower");
  assert_true(fabs(pair.new->diff->step_after_ms - pair.new->diff->step_before_ms - 20) < 2);
  const struct finding *finding = found(&pair, "DIFF.SLOWER");
  assert_non_null(finding);
  assert_non_null(strstr(finding->evidence, "compute"));
  assert_true(fabs(row(&pair, "a step", "compute")->after -
                   row(&pair, "a step", "compute")->before - 20) < 2);
  pair_free(&pair);
  pair = compare_with(after, before, NULL);
  assert_string_equal(pair.new->diff->verdict, "faster");
  assert_null(found(&pair, "DIFF.SLOWER"));
  pair_free(&pair);
}

static void too_few_steps_cannot_tell(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = healthy_gpu();
  after.steps = 10;
  after.forward *= 2;
  struct pair pair = compare_with(before, after, NULL);
  assert_null(pair.new->diff->verdict);
  assert_non_null(pair.new->diff->reason);
  assert_null(found(&pair, "DIFF.SLOWER"));
  pair_free(&pair);
}

static void make_them_otherwise(struct pair *pair) {
  struct rank *was = &pair->before->model.ranks[0], *is = &pair->after->model.ranks[0];
  was->info[TSCOPE_INFO_GIT_COMMIT] = "aaaa";
  is->info[TSCOPE_INFO_GIT_COMMIT] = "bbbb";
  was->info[TSCOPE_INFO_TORCH] = is->info[TSCOPE_INFO_TORCH] = "2.11.0";
  was->info[TSCOPE_INFO_PID] = "1";
  is->info[TSCOPE_INFO_PID] = "2";
  was->info[TSCOPE_INFO_ENVIRONMENT] = "OMP_NUM_THREADS=4\nNCCL_ALGO=Ring\nTSCOPE_DIR=/a\nRANK=0";
  is->info[TSCOPE_INFO_ENVIRONMENT] = "OMP_NUM_THREADS=1\nTSCOPE_DIR=/b\nRANK=0\nNCCL_PROTO=LL";
}

static const struct diff_fact *fact(const struct pair *pair, const char *what, const char *name) {
  for (u32 i = 0; i < pair->new->diff->n_facts; i++) {
    const struct diff_fact *one = &pair->new->diff->facts[i];
    if (!strcmp(one->what, what) && (!name || !strcmp(one->name, name)))
      return one;
  }
  return NULL;
}

static void how_runs_were_made(void **state) {
  (void)state;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), make_them_otherwise);
  assert_int_equal(pair.new->diff->n_facts, 4);
  assert_string_equal(fact(&pair, "git_commit", NULL)->after, "bbbb");
  assert_string_equal(fact(&pair, "environment", "OMP_NUM_THREADS")->before, "4");
  assert_null(fact(&pair, "environment", "NCCL_ALGO")->after);
  assert_null(fact(&pair, "environment", "NCCL_PROTO")->before);
  pair_free(&pair);
}

enum { LOSSES = 12 };
static double nudge; /* what the later run's loss is off by, from step 8 on */

static void tell_losses(struct pair *pair) {
  static struct scalar losses[2][LOSSES];
  for (u32 run = 0; run < 2; run++) {
    struct model *model = run ? &pair->after->model : &pair->before->model;
    for (u32 i = 0; i < LOSSES; i++) {
      double value = 2 + 1.0 / (i + 1) + (run && i >= 5 ? 1e-9 : 0);
      value += run && i >= 8 ? nudge : 0;
      losses[run][i] = (struct scalar){.rank = 0, .step = i, .name = "loss", .value = value};
    }
    model->scalars = losses[run];
    model->n_scalars = LOSSES;
  }
}

static void values_part(void **state) {
  (void)state;
  nudge = 0.01;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), tell_losses);
  const struct diff_scalar *loss = &pair.new->diff->scalars[0];
  assert_int_equal((int)loss->steps, LOSSES);
  assert_int_equal((int)loss->first_step, 5);
  assert_int_equal((int)loss->parted_step, 8);
  assert_non_null(found(&pair, "DIFF.RESULTS"));
  pair_free(&pair);
  nudge = 1e-5; /* sums in another order do that */
  pair = compare_with(healthy_gpu(), healthy_gpu(), tell_losses);
  assert_true(isnan(pair.new->diff->scalars[0].parted_step));
  assert_null(found(&pair, "DIFF.RESULTS"));
  pair_free(&pair);
}

static struct results *with_peak(struct pair *pair, double bytes) {
  pair->new->memory.peak_allocated_bytes = bytes;
  assert_int_equal(diff_results(pair->old, pair->new), 0);
  return pair->new;
}

static void memory_that_grew(void **state) {
  (void)state;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), NULL);
  assert_null(found(&pair, "DIFF.MEMORY"));
  pair.old->memory.peak_allocated_bytes = 100e6;
  with_peak(&pair, 106e6);
  assert_non_null(found(&pair, "DIFF.MEMORY"));
  with_peak(&pair, 104e6);
  assert_null(found(&pair, "DIFF.MEMORY"));
  pair_free(&pair);
}

/* Twice the batch: activations double, parameters stay; what one run alone has counts from 0. */
static void tensors_that_scale(void **state) {
  (void)state;
  struct memory_use before[] = {{"activation", "forward model.py:10", 100, 4, 0.5},
                                {"parameter", "__init__ model.py:3", 80, 9, 0.4},
                                {"optimizer", "step adam.py:1", 20, 1, 0.1}};
  struct memory_use after[] = {{"activation", "forward model.py:10", 200, 4, 0.6},
                               {"parameter", "__init__ model.py:3", 80, 9, 0.3},
                               {"other", "cache.py:7", 40, 2, 0.1}};
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), NULL);
  pair.old->memory.live_at_peak = before;
  pair.new->memory.live_at_peak = after;
  pair.old->memory.n_live_at_peak = pair.new->memory.n_live_at_peak = 3;
  assert_int_equal(diff_results(pair.old, pair.new), 0);
  assert_true(row(&pair, "tensors at peak", "forward model.py:10")->change == 1);
  assert_true(row(&pair, "tensors at peak", "__init__ model.py:3")->change == 0);
  assert_true(row(&pair, "tensors at peak", "step adam.py:1")->after == 0);
  assert_true(isnan(row(&pair, "tensors at peak", "cache.py:7")->change));
  pair_free(&pair);
}

/* Tables of Student's t: two-sided 0.05 at 10 degrees of freedom, 0.01 at 10 and at 7. */
static void student_is_tabulated(void **state) {
  (void)state;
  assert_true(fabs(student_tails(2.2281389, 10) - 0.05) < 1e-7);
  assert_true(fabs(student_tails(-3.1692727, 10) - 0.01) < 1e-7);
  assert_true(fabs(student_quantile(0.99, 7) - 3.4994833) < 1e-6);
  assert_true(fabs(student_tails(0, 3) - 1) < 1e-12);
  assert_true(fabs(student_quantile(0.95, 1) - 12.706205) < 1e-5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(noise_is_no_change),
                                     cmocka_unit_test(a_change_beyond_noise_is_said),
                                     cmocka_unit_test(too_few_steps_cannot_tell),
                                     cmocka_unit_test(how_runs_were_made),
                                     cmocka_unit_test(values_part),
                                     cmocka_unit_test(memory_that_grew),
                                     cmocka_unit_test(tensors_that_scale),
                                     cmocka_unit_test(student_is_tabulated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
