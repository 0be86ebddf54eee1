/* SPDX-License-Identifier: MIT
 *
 * Compares what runs computed: the job's own values, and its memory.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "diff_pair.h"

enum { LOSSES = 12 };
static double nudge; /* the difference of the later run's loss from step 8 on */

static void set_losses(struct pair *pair) {
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
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), set_losses);
  const struct diff_scalar *loss = &pair.new->diff->scalars[0];
  assert_int_equal((int)loss->steps, LOSSES);
  assert_int_equal((int)loss->first_step, 5);
  assert_int_equal((int)loss->parted_step, 8);
  assert_non_null(found(&pair, "DIFF.RESULTS"));
  pair_free(&pair);
  nudge = 1e-5; /* a different order of summation makes such differences */
  pair = compare_with(healthy_gpu(), healthy_gpu(), set_losses);
  assert_true(isnan(pair.new->diff->scalars[0].parted_step));
  assert_null(found(&pair, "DIFF.RESULTS"));
  pair_free(&pair);
}

/* Jobs that request the same bits in every run. */

static const char *requested[2]; /* environments */

static void set_environments(struct pair *pair) {
  set_losses(pair);
  pair->before->model.ranks[0].info[TSCOPE_INFO_ENVIRONMENT] = requested[0];
  pair->after->model.ranks[0].info[TSCOPE_INFO_ENVIRONMENT] = requested[1];
}

static void bits_differ_where_they_must_not(void **state) {
  (void)state;
  nudge = 0;
  requested[0] = "CUBLAS_WORKSPACE_CONFIG=:4096:8\nPYTHONHASHSEED=0\nOMP_NUM_THREADS=1";
  requested[1] = "CUBLAS_WORKSPACE_CONFIG=:4096:8\nPYTHONHASHSEED=1\nOMP_NUM_THREADS=1";
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), set_environments);
  const struct finding *finding = found(&pair, "DIFF.BITS");
  assert_non_null(finding); /* although they differ by only 1e-9 */
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  assert_non_null(strstr(finding->title, "loss differs from step 5"));
  assert_non_null(strstr(finding->evidence, "PYTHONHASHSEED (0, now 1)"));
  assert_null(strstr(finding->evidence, "OMP_NUM_THREADS"));
  assert_null(found(&pair, "DIFF.RESULTS"));
  pair_free(&pair);
  requested[0] = requested[1] = "PYTHONHASHSEED=random\nCUBLAS_WORKSPACE_CONFIG=:0:0";
  pair = compare_with(healthy_gpu(), healthy_gpu(), set_environments);
  assert_null(pair.new->diff->determinism);
  assert_null(found(&pair, "DIFF.BITS"));
  pair_free(&pair);
  requested[0] = "PYTHONHASHSEED=0"; /* requested in one run only */
  pair = compare_with(healthy_gpu(), healthy_gpu(), set_environments);
  assert_null(found(&pair, "DIFF.BITS"));
  pair_free(&pair);
}

static void set_command(struct pair *pair) {
  set_losses(pair);
  pair->before->model.ranks[0].info[TSCOPE_INFO_COMMAND] = requested[0];
  pair->after->model.ranks[0].info[TSCOPE_INFO_COMMAND] = requested[0];
}

static void bits_requested_by_the_command(void **state) {
  (void)state;
  static const struct {
    const char *command;
    bool requests_bits;
  } cases[] = {{"train.py --deterministic", true},
               {"train.py --use_deterministic_algorithms=True --x", true},
               {"main trainer.deterministic=true", true},
               {"train.py --deterministic=false", false},
               {"train.py --no-deterministic", false},
               {"deterministic.py --lr 1", false}};
  nudge = 0;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    requested[0] = cases[i].command;
    struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), set_command);
    assert_int_equal(found(&pair, "DIFF.BITS") != NULL, cases[i].requests_bits);
    pair_free(&pair);
  }
}

/* A job's own times are not results: they differ in every run. */
static void throughput_is_no_result(void **state) {
  (void)state;
  nudge = 0;
  requested[0] = requested[1] = "PYTHONHASHSEED=0";
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), set_environments);
  struct scalar *losses = pair.after->model.scalars;
  for (u32 i = 0; i < LOSSES; i++)
    losses[i].name = pair.before->model.scalars[i].name = "tokens_per_second";
  diff_results(pair.old, pair.new);
  assert_true(pair.new->diff->n_scalars == 1);
  assert_int_equal(pair.new->diff->n_findings, 0);
  pair_free(&pair);
}

/* Three runs per side, each with its own loss: the seeds differ, or the seeds and the level. */
static double level;

static void set_levels(struct sides *all) {
  static struct scalar losses[2][RUNS][LOSSES];
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++) {
      for (u32 k = 0; k < LOSSES; k++)
        losses[side][i][k] = (struct scalar){
            .step = k, .name = "loss", .value = 2 + 0.02 * i + 0.01 * side + side * level};
      all->clusters[side][i]->model.scalars = losses[side][i];
      all->clusters[side][i]->model.n_scalars = LOSSES;
    }
}

static void values_end_apart(void **state) {
  (void)state;
  level = 0;
  struct sides all = compare_several(small(), small(), RUNS, even, set_levels);
  assert_int_equal(found_in(all.shown->diff, "DIFF.RESULTS")->severity, SEVERITY_INFO);
  sides_free(&all);
  level = 0.5;
  all = compare_several(small(), small(), RUNS, even, set_levels);
  const struct finding *finding = found_in(all.shown->diff, "DIFF.RESULTS");
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  assert_non_null(strstr(finding->title, "loss ends at"));
  sides_free(&all);
}

static void set_falling(struct sides *all) {
  level = 0;
  set_levels(all);
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++)
      for (u32 k = 0; k < LOSSES; k++)
        all->clusters[side][i]->model.scalars[k].value += LOSSES - k;
  all->clusters[1][2]->model.n_scalars = 0;
}

/* A run that reports no values does not take the end of the others' away. */
static void levels_without_one_run(void **state) {
  (void)state;
  struct sides all = compare_several(small(), small(), RUNS, even, set_falling);
  const struct diff_result *diff = all.shown->diff;
  const struct diff_row *loss = FIND(diff->rows, diff->n_rows, one, one->section == DIFF_OF_VALUES);
  assert_non_null(loss);
  assert_true(loss->before < 2 + LOSSES / 2);
  sides_free(&all);
}

static struct results *with_peak(struct pair *pair, double bytes) {
  pair->new->memory.peak_allocated_bytes = bytes;
  diff_results(pair->old, pair->new);
  return pair->new;
}

static void memory_that_grew(void **state) {
  (void)state;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), NULL);
  assert_null(found(&pair, "DIFF.MEMORY"));
  pair.old->memory.peak_allocated_bytes = 100e6;
  with_peak(&pair, 126e6);
  assert_int_equal(found(&pair, "DIFF.MEMORY")->severity, SEVERITY_INFO);
  with_peak(&pair, 104e6);
  assert_null(found(&pair, "DIFF.MEMORY"));
  pair_free(&pair);
  struct sides all = compare_several(small(), small(), RUNS, even, NULL);
  for (u32 i = 0; i < RUNS; i++) {
    all.runs[0][i]->memory.peak_allocated_bytes = 100e6 + 1e5 * i;
    all.runs[1][i]->memory.peak_allocated_bytes = 126e6 + 1e5 * i;
  }
  const struct diff_side was = {.runs = all.runs[0], .n = RUNS},
                         is = {.runs = all.runs[1], .n = RUNS};
  diff_sides(&was, &is, &all.shown);
  assert_int_equal(found_in(all.shown->diff, "DIFF.MEMORY")->severity, SEVERITY_CRITICAL);
  sides_free(&all);
}

/* Twice the batch size: activations double, parameters do not change; what only one run has counts
 * from 0. */
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
  diff_results(pair.old, pair.new);
  assert_true(row(&pair, "tensors at peak", "forward model.py:10")->change == 1);
  assert_true(row(&pair, "tensors at peak", "__init__ model.py:3")->change == 0);
  assert_true(row(&pair, "tensors at peak", "step adam.py:1")->after == 0);
  assert_true(isnan(row(&pair, "tensors at peak", "cache.py:7")->change));
  pair_free(&pair);
}

/* Half of the later run's steps hold something else than training, and are counted in neither. */
static void collectives_of_a_step_of_training(void **state) {
  (void)state;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), NULL);
  struct results *r = pair.new;
  r->training_steps /= 2;
  for (u32 i = 0; i < r->n_collectives; i++)
    r->collectives[i].count /= 2;
  diff_results(pair.old, r);
  assert_true(r->diff->n_collectives > 0);
  for (u32 i = 0; i < r->diff->n_collectives; i++)
    assert_true(r->diff->collectives[i].before_per_step == 1 &&
                r->diff->collectives[i].after_per_step == 1);
  pair_free(&pair);
}

/* Every fourth step of the later run validates, and takes thrice as long: it is no step whose
 * length is compared. */
static void steps_with_other_work_are_not_compared(void **state) {
  (void)state;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), NULL);
  struct results *r = pair.new;
  double validates[64];
  struct other_work work = {.step = validates};
  const u32 first = first_analysed_step(r), as_many = r->diff->runs[1].steps;
  pair.after->model.steps.first = 7;
  for (u32 i = first; i < r->n_step_ms; i += 4) {
    r->step_ms[i] *= 3;
    validates[work.n_steps++] = 7 + i;
  }
  r->other_work = &work;
  r->n_other_work = 1;
  diff_results(pair.old, r);
  assert_int_equal(r->diff->runs[0].steps, as_many);
  assert_int_equal(r->diff->runs[1].steps, as_many - work.n_steps);
  assert_true(r->diff->step_noise_ms < 0.01 * r->step_median_ms);
  pair_free(&pair);
}

/* A collective that two runs of three make: a mean over the runs, like that of a kernel. */
static void collectives_are_means_over_runs(void **state) {
  (void)state;
  struct sides all = compare_several(small(), small(), RUNS, even, NULL);
  const double ms[2][RUNS] = {{10, 20, 30}, {10, 10, 40}};
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++) {
      struct results *r = all.runs[side][i];
      r->n_collectives = 1;
      r->training_steps = 10;
      r->collectives[0].sizes = 1;
      r->collectives[0].bytes = 4;
      r->collectives[0].count = 10 * (i + 1);
      r->collectives[0].transfer_ms = ms[side][i];
    }
  const struct diff_side was = {.runs = all.runs[0], .n = RUNS};
  const struct diff_side is = {.runs = all.runs[1], .n = RUNS};
  diff_sides(&was, &is, &all.shown);
  assert_int_equal(all.shown->diff->n_collectives, 1);
  const struct diff_collective *one = &all.shown->diff->collectives[0];
  assert_true(one->before_per_step == 2 && one->after_per_step == 2);
  assert_float_equal(one->before_ms, (10 + 2 * 20 + 3 * 30) / 6., 1e-9);
  assert_float_equal(one->after_ms, (10 + 2 * 10 + 3 * 40) / 6., 1e-9);
  sides_free(&all);
}

/* What changed most comes first, as it explains the step. */
static void collectives_that_changed_come_first(void **state) {
  (void)state;
  struct collective_result before[] = {
      {.op = "all_reduce", .sizes = 1, .bytes = 4, .count = 10, .transfer_ms = 1},
      {.op = "all_gather", .sizes = 2, .bytes = 4, .count = 10, .transfer_ms = 1},
      {.op = "all_gather", .sizes = 3, .bytes = 8, .count = 10, .transfer_ms = 3},
      {.op = "broadcast", .sizes = 1, .bytes = 4, .count = 10, .transfer_ms = NAN}};
  struct collective_result after[] = {
      {.op = "all_reduce", .sizes = 1, .bytes = 4, .count = 10, .transfer_ms = 1},
      {.op = "all_gather", .sizes = 2, .bytes = 4, .count = 20, .transfer_ms = 5}};
  struct pair pair = compare_with(small(), small(), NULL);
  pair.old->collectives = before;
  pair.old->n_collectives = LENGTH_OF(before);
  pair.new->collectives = after;
  pair.new->n_collectives = LENGTH_OF(after);
  pair.old->training_steps = pair.new->training_steps = 10;
  diff_results(pair.old, pair.new);
  const struct diff_result *diff = pair.new->diff;
  assert_int_equal(diff->n_collectives, 3);
  const struct diff_collective *first = &diff->collectives[0];
  assert_string_equal(first->op, "all_gather");
  assert_true(isnan(first->bytes) && first->before_per_step == 2 && first->before_ms == 2);
  assert_true(first->after_per_step == 2 && first->after_ms == 5 && first->change == 1.5);
  const struct diff_collective *untimed =
      FIND(diff->collectives, diff->n_collectives, one, !strcmp(one->op, "broadcast"));
  assert_true(untimed && isnan(untimed->before_ms) && untimed->after_per_step == 0);
  pair_free(&pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_part),
                                     cmocka_unit_test(bits_differ_where_they_must_not),
                                     cmocka_unit_test(bits_requested_by_the_command),
                                     cmocka_unit_test(throughput_is_no_result),
                                     cmocka_unit_test(values_end_apart),
                                     cmocka_unit_test(levels_without_one_run),
                                     cmocka_unit_test(memory_that_grew),
                                     cmocka_unit_test(tensors_that_scale),
                                     cmocka_unit_test(collectives_of_a_step_of_training),
                                     cmocka_unit_test(steps_with_other_work_are_not_compared),
                                     cmocka_unit_test(collectives_are_means_over_runs),
                                     cmocka_unit_test(collectives_that_changed_come_first)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
