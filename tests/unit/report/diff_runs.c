/* SPDX-License-Identifier: MIT
 *
 * Compares runs with each other: changes are reported, noise is not.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "base/statistics.h"
#include "diff_pair.h"
#include "seeded.h"

/* Runs of one kind, whose levels differ by up to a tenth of the step: comparing three with three
 * finds a difference in very few of a hundred cases. A comparison of single steps would find one in
 * nearly all of them. */
static void runs_of_a_kind_are_no_change(void **state) {
  (void)state;
  u32 called = 0, by_steps = 0, seed = 12345;
  for (u32 round = 0; round < 100; round++) {
    double factor[2][RUNS];
    for (u32 i = 0; i < 2 * RUNS; i++)
      factor[i / RUNS][i % RUNS] = 0.85 + 0.3 * uniform_share(&seed);
    struct sides all = compare_several(small(), small(), RUNS, factor, NULL);
    assert_int_equal(all.shown->diff->noise, NOISE_BETWEEN_RUNS);
    called += all.shown->diff->verdict != STEPS_SAME && all.shown->diff->verdict != STEPS_UNDECIDED;
    struct results *first = all.runs[1][0];
    diff_results(all.runs[0][0], first);
    by_steps += first->diff->step_p_value < 0.01;
    assert_null(found_in(first->diff, "DIFF.SLOWER") &&
                        found_in(first->diff, "DIFF.SLOWER")->severity != SEVERITY_INFO
                    ? first
                    : NULL);
    sides_free(&all);
  }
  assert_true(called <= 4);
  assert_true(by_steps >= 75);
}

/* As measured on runs of the same code: one of them was 38 % slower, on a bad host. */
static void one_bad_run_is_no_change(void **state) {
  (void)state;
  const double factor[2][RUNS] = {{1, 1.02, 0.98}, {1.01, 2.18, 0.99}};
  struct sides all = compare_several(small(), small(), RUNS, factor, NULL);
  assert_int_equal(all.shown->diff->verdict, STEPS_UNDECIDED);
  assert_int_equal(all.shown->diff->n_findings, 0);
  assert_ptr_equal(all.shown, all.runs[1][0]); /* the middle one represents its side */
  sides_free(&all);
}

static void a_change_larger_than_noise_is_reported(void **state) {
  (void)state;
  struct cluster_options after = small();
  after.forward += 70 * MS; /* of 312 */
  const double apart[2][RUNS] = {{1, 1.01, 0.99}, {1.006, 0.994, 1}};
  struct sides all = compare_several(small(), after, RUNS, apart, NULL);
  const struct diff_result *diff = all.shown->diff;
  assert_int_equal(diff->verdict, STEPS_SLOWER);
  assert_true(diff->runs_before == RUNS && diff->runs_after == RUNS && diff->n_runs == 2 * RUNS);
  double known = 0; /* the mean of the medians of the runs */
  for (u32 i = 0; i < RUNS; i++)
    known += all.runs[1][i]->step_median_ms / RUNS;
  assert_true(fabs(diff->step_after_ms - known) < 1e-9);
  const struct finding *finding = found_in(diff, "DIFF.SLOWER");
  assert_non_null(finding);
  assert_int_equal(finding->severity, SEVERITY_CRITICAL);
  assert_non_null(strstr(finding->title, "median step"));
  assert_non_null(strstr(diff->cause.text, "compute"));
  sides_free(&all);
  all = compare_several(after, small(), RUNS, apart, NULL);
  assert_int_equal(all.shown->diff->verdict, STEPS_FASTER);
  assert_null(found_in(all.shown->diff, "DIFF.SLOWER"));
  sides_free(&all);
}

/* Compares again, with these medians; the sides are freed by sides_free(). */
static const struct diff_result *compare_medians(struct sides *all, const double ms[2][RUNS]) {
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++)
      all->runs[side][i]->step_median_ms = ms[side][i];
  const struct diff_side was = {.runs = all->runs[0], .n = RUNS};
  const struct diff_side is = {.runs = all->runs[1], .n = RUNS};
  diff_sides(&was, &is, &all->shown);
  return all->shown->diff;
}

/* Changed, not changed, and undecided; and always how small a change could be shown. The values are
 * those of Welch's test, by numerical integration of Student's density. */
static void there_are_three_answers(void **state) {
  (void)state;
  static const struct {
    double ms[2][RUNS], p, detectable;
    enum step_verdict verdict;
  } cases[] = {
      {{{11.2, 11.25, 11.3}, {11.9, 12.0, 12.1}}, 0.0015017, 0.034187, STEPS_SLOWER},
      {{{11.9, 12.0, 12.1}, {11.2, 11.25, 11.3}}, 0.0015017, 0.032050, STEPS_FASTER},
      {{{11.2, 11.25, 11.3}, {11.3, 11.2, 11.27}}, 0.87978, 0.016937, STEPS_SAME},
      {{{11.2, 11.25, 11.3}, {11.9, 12.0, 12.4}}, 0.027321, 0.122742, STEPS_UNDECIDED},
      {{{11.2, 12.6, 9.9}, {12.0, 13.1, 11.0}}, 0.46596, 0.42205, STEPS_UNDECIDED},
  };
  struct sides all = compare_several(small(), small(), RUNS, even, NULL);
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    const struct diff_result *diff = compare_medians(&all, cases[i].ms);
    assert_int_equal(diff->verdict, cases[i].verdict);
    assert_true(fabs(diff->step_p_value / cases[i].p - 1) < 1e-3);
    assert_true(fabs(diff->step_detectable / cases[i].detectable - 1) < 1e-3);
    assert_int_equal(diff->reason != NULL, cases[i].verdict == STEPS_UNDECIDED);
    if (diff->reason)
      assert_non_null(strstr(diff->reason, "would decide"));
  }
  sides_free(&all);
}

static void set_lines(struct results *r, struct line_result *lines, u32 n) {
  r->lines.at = lines;
  r->lines.n_at = n;
}

/* The line that became slower is named with what it costs more; one that moved is not taken for a
 * new one; one that became faster explains nothing. */
static void lines_that_explain_are_named(void **state) {
  (void)state;
  static const double ms[2][RUNS] = {{20, 20.1, 19.9}, {25, 25.1, 24.9}};
  struct line_result lines[2][RUNS][4];
  struct sides all = compare_several(small(), small(), RUNS, even, NULL);
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++) {
      const struct line_result of_run[] = {
          {.place = "sl.py:4",
           .file = "/a/sl.py",
           .function = "f",
           .line = 4,
           .host_ms = 2 + 4.0 * side + 0.01 * i},
          {.place = side ? "sl.py:12" : "sl.py:9",
           .file = "/a/sl.py",
           .function = "g",
           .line = side ? 12 : 9,
           .host_ms = 3 + 0.01 * i},
          {.place = "sl.py:20",
           .file = "/a/sl.py",
           .function = "h",
           .line = 20,
           .host_ms = 5 - 3.0 * side + 0.01 * i},
          {.place = "sl.py:30",
           .file = "/a/sl.py",
           .function = "h",
           .line = 30,
           .host_ms = NAN,
           .wait_ms = 1 + 1.5 * side,
           .input_ms = NAN},
      };
      memcpy(lines[side][i], of_run, sizeof(of_run));
      set_lines(all.runs[side][i], lines[side][i], 4);
    }
  const struct diff_result *diff = compare_medians(&all, ms);
  assert_int_equal(diff->n_lines, 4);
  assert_string_equal(diff->lines[0].place, "sl.py:4");
  assert_true(fabs(diff->lines[0].after_ms - diff->lines[0].before_ms - 4) < 1e-9);
  assert_string_equal(diff->lines[3].place, "sl.py"); /* moved: the function as a whole */
  assert_true(isnan(diff->lines[3].line) && fabs(diff->lines[3].after_ms - 3.01) < 1e-9);
  assert_true(diff->n_explained_by >= 2);
  assert_string_equal(diff->explained_by[0], "sl.py:4 +4.00 ms");
  assert_string_equal(diff->explained_by[1], "sl.py:30 +1.50 ms");
  assert_non_null(strstr(found_in(diff, "DIFF.SLOWER")->evidence, "sl.py:4 +4.00 ms"));
  sides_free(&all);
}

/* Of a run that lists no line it is not known what its lines cost; and where one has no samples,
 * the waits of all are compared. */
static void lines_of_a_run_may_be_unknown(void **state) {
  (void)state;
  static const double ms[2][RUNS] = {{20, 20.1, 19.9}, {25, 25.1, 24.9}};
  struct line_result lines[2][RUNS][1];
  struct sides all = compare_several(small(), small(), RUNS, even, NULL);
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++) {
      lines[side][i][0] = (struct line_result){.place = "sl.py:4",
                                               .file = "/a/sl.py",
                                               .function = "f",
                                               .line = 4,
                                               .host_ms = 6,
                                               .wait_ms = 2,
                                               .input_ms = NAN};
      set_lines(all.runs[side][i], lines[side][i], side && i == 1 ? 0 : 1);
    }
  const struct diff_result *diff = compare_medians(&all, ms);
  assert_true(diff->lines[0].before_ms == 6 && diff->lines[0].after_ms == 6);
  lines[1][0][0].host_ms = NAN;
  diff = compare_medians(&all, ms);
  assert_true(diff->lines[0].before_ms == 2 && diff->lines[0].after_ms == 2);
  for (u32 side = 0; side < 2; side++) /* as a line at which only workers are */
    for (u32 i = 0; i < RUNS; i++)
      lines[side][i][0].wait_ms = 0;
  assert_int_equal(compare_medians(&all, ms)->n_lines, 0);
  sides_free(&all);
}

/* Two runs per side are too few to show a spread. */
static void two_runs_per_side_are_undecided(void **state) {
  (void)state;
  struct cluster_options after = small();
  after.forward *= 2;
  struct sides all = compare_several(small(), after, 2, even, NULL);
  assert_int_equal(all.shown->diff->verdict, STEPS_UNJUDGED);
  assert_non_null(strstr(all.shown->diff->reason, "2 and 2 runs"));
  assert_int_equal(found_in(all.shown->diff, "DIFF.SLOWER")->severity, SEVERITY_INFO);
  sides_free(&all);
}

/* One rank became slow in its input: the report names this, not the waiting of the others in
 * backward. */
static void the_rank_and_the_reason_lead(void **state) {
  (void)state;
  for (u32 on_gpu = 0; on_gpu < 2; on_gpu++) {
    struct cluster_options before = on_gpu ? healthy_gpu() : healthy_cpu(), after = before;
    before.noise = after.noise = 0.01;
    after.extra_input[3] = 34 * MS;
    struct sides all = compare_several(before, after, RUNS, even, NULL);
    const struct diff_result *diff = all.shown->diff;
    const struct finding *finding = found_in(diff, "DIFF.SLOWER");
    assert_non_null(finding);
    assert_string_equal(diff->cause.text, "rank 3 became slower in its input");
    assert_true(fabs(diff->cause.after_ms - diff->cause.before_ms - 34) < 1);
    assert_non_null(strstr(finding->title, "rank 3 became slower in its input"));
    assert_null(strstr(finding->evidence, "backward"));
    assert_true(finding->n_ranks == 1 && finding->ranks[0] == 3);
    sides_free(&all);
    struct pair pair = compare_with(before, after, NULL); /* one run per side: only information */
    assert_non_null(
        strstr(found(&pair, "DIFF.SLOWER")->title, "rank 3 became slower in its input"));
    assert_int_equal(found(&pair, "DIFF.SLOWER")->severity, SEVERITY_INFO);
    assert_non_null(strstr(found(&pair, "DIFF.SLOWER")->action, "at least three times"));
    pair_free(&pair);
  }
}

/* The runs differ so much that their steps show nothing, but the input of one rank grew in all of
 * them. */
static void a_rank_is_named_in_spite_of_noise(void **state) {
  (void)state;
  const double apart[2][RUNS] = {{1, 1.5, 0.6}, {1.5, 0.6, 1.1}};
  struct cluster_options before = healthy_gpu(), after = before;
  before.ranks = after.ranks = 4;
  before.noise = after.noise = 0.01;
  after.extra_input[3] = 100 * MS; /* in addition to 312 */
  struct sides all = compare_several(before, after, RUNS, apart, NULL);
  assert_int_equal(all.shown->diff->verdict, STEPS_UNDECIDED);
  const struct finding *finding = found_in(all.shown->diff, "DIFF.RANK");
  assert_non_null(finding);
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  assert_non_null(strstr(finding->title, "Rank 3 became slower in its input"));
  assert_true(finding->n_ranks == 1 && finding->ranks[0] == 3);
  assert_null(found_in(all.shown->diff, "DIFF.SLOWER"));
  sides_free(&all);
  after.extra_input[3] = 0; /* the same noise, and no slow rank */
  const double worse[2][RUNS] = {{1, 1.5, 0.6}, {2.5, 0.9, 1.9}};
  all = compare_several(before, after, RUNS, worse, NULL);
  assert_true(all.shown->diff->step_change > 0.05);
  assert_int_equal(all.shown->diff->n_findings, 0);
  assert_null(all.shown->diff->cause.text);
  sides_free(&all);
}

static void a_rank_slow_in_compute_leads(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = before;
  before.noise = after.noise = 0.01;
  after.slow[5] = 0.3;
  struct sides all = compare_several(before, after, RUNS, even, NULL);
  assert_string_equal(all.shown->diff->cause.text, "rank 5 became slower in its compute");
  sides_free(&all);
}

/* Among many figures few differ only by chance: in runs of one kind hardly any. */
static void figures_of_a_kind_are_the_same(void **state) {
  (void)state;
  u32 judged = 0, wrong = 0, seed = 99;
  for (u32 round = 0; round < 60; round++) {
    double factor[2][RUNS];
    for (u32 i = 0; i < 2 * RUNS; i++)
      factor[i / RUNS][i % RUNS] = 0.95 + 0.1 * uniform_share(&seed);
    struct sides all = compare_several(small(), small(), RUNS, factor, NULL);
    for (u32 i = 0; i < all.shown->diff->n_rows; i++) {
      const struct diff_row *one = &all.shown->diff->rows[i];
      judged += one->verdict != FIGURE_UNJUDGED;
      wrong += one->verdict && one->verdict != FIGURE_IS_SAME;
    }
    sides_free(&all);
  }
  assert_true(judged > 500);
  assert_true(wrong < judged / 50);
}

/* Eight steps are too few for a verdict, but enough to see which kernel became slower. */
static void kernels_need_no_steps(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = healthy_gpu();
  before.steps = after.steps = 8;
  after.forward *= 2;
  struct pair pair = compare_with(before, after, NULL);
  const struct diff_result *diff = pair.new->diff;
  assert_int_equal(diff->verdict, STEPS_UNJUDGED);
  assert_true(diff->n_kernels > 0);
  assert_true(fabs(diff->kernels[0].speedup - 0.5) < 1e-3); /* the largest difference comes first */
  assert_true(fabs(diff->kernels[0].before_mean_ms - 100) < 0.1);
  bool kinds = false;
  for (u32 i = 0; i < diff->n_rows; i++)
    kinds |= diff->rows[i].section == DIFF_OF_KERNELS && diff->rows[i].change > 0;
  assert_true(kinds);
  pair_free(&pair);
}

/* A run whose kernels were not seen is no run in which they took no time. */
static void kernels_of_a_run_may_be_unknown(void **state) {
  (void)state;
  struct cluster_options one = healthy_gpu();
  one.noise = 0;
  struct sides all = compare_several(one, one, RUNS, even, NULL);
  const struct diff_side was = {.runs = all.runs[0], .n = RUNS};
  const struct diff_side is = {.runs = all.runs[1], .n = RUNS};
  double before_ms = all.shown->diff->kernels[0].before_ms;
  assert_true(before_ms > 0);
  all.runs[1][1]->n_kernels = 0;
  diff_sides(&was, &is, &all.shown);
  const struct diff_kernel *kernel = &all.shown->diff->kernels[0];
  assert_true(fabs(kernel->after_ms / kernel->before_ms - 1) < 0.02);
  sides_free(&all);
}

/* Kernels are those of a rank that has some, also where not all were recorded; and of an engine
 * what was not seen is of earlier iterations, as the report has it. */
static void kernels_are_of_ranks_that_have_some(void **state) {
  (void)state;
  for (u32 engine = 0; engine < 2; engine++) {
    struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), NULL);
    struct results *r = pair.new;
    if (engine) {
      r->n_step_kinds = 1;
      r->kernels_seen = 0.5;
    } else {
      r->kernels_ranks /= 2;
    }
    for (u32 i = 0; i < r->n_kernels && !engine; i++) {
      struct kernel_result *kernel = (struct kernel_result *)&r->kernels[i];
      kernel->count /= 2;
      kernel->sum_ms /= 2;
    }
    diff_results(pair.old, r);
    const struct diff_kernel *kernel = &r->diff->kernels[0];
    assert_true(fabs(kernel->after_ms / kernel->before_ms - 1) < 1e-3);
    r->n_step_kinds = 0;
    pair_free(&pair);
  }
}

/* The steps of single runs show no difference in at least 95 of 100 cases, and never prove one. */
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
    called += !pair.new->diff->verdict;
    if (pair.new->diff->verdict)
      assert_int_equal(pair.new->diff->verdict, STEPS_SAME);
    pair_free(&pair);
  }
  assert_true(called <= 5);
}

/* Even with a very small p-value: runs of the same code have differed by 38 %. */
static void one_run_per_side_is_only_information(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = healthy_gpu();
  before.noise = after.noise = 0.02;
  after.forward += 120 * MS; /* of 310 */
  struct pair pair = compare_with(before, after, NULL);
  assert_int_equal(pair.new->diff->verdict, STEPS_UNJUDGED);
  assert_non_null(strstr(pair.new->diff->reason, "1 and 1 runs"));
  assert_int_equal(pair.new->diff->noise, NOISE_WITHIN_RUNS);
  assert_true(pair.new->diff->step_p_value < 1e-4);
  assert_true(fabs(pair.new->diff->step_after_ms - pair.new->diff->step_before_ms - 120) < 5);
  const struct finding *finding = found(&pair, "DIFF.SLOWER");
  assert_non_null(finding);
  assert_int_equal(finding->severity, SEVERITY_INFO);
  assert_true(isnan(finding->saving_s));
  assert_non_null(strstr(finding->evidence, "compute"));
  assert_null(row(&pair, "step time", "median")->verdict);
  assert_true(fabs(row(&pair, "a step", "compute")->after -
                   row(&pair, "a step", "compute")->before - 120) < 5);
  pair_free(&pair);
}

static void too_few_steps_are_undecided(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = healthy_gpu();
  after.steps = 10;
  after.forward *= 2;
  struct pair pair = compare_with(before, after, NULL);
  assert_int_equal(pair.new->diff->verdict, STEPS_UNJUDGED);
  assert_non_null(pair.new->diff->reason);
  assert_null(found(&pair, "DIFF.SLOWER"));
  pair_free(&pair);
}

/* Values from tables of Student's t: two-sided 0.05 at 10 degrees of freedom, 0.01 at 10 and at 7.
 */
static void student_is_tabulated(void **state) {
  (void)state;
  assert_true(fabs(student_tails(2.2281389, 10) - 0.05) < 1e-7);
  assert_true(fabs(student_tails(-3.1692727, 10) - 0.01) < 1e-7);
  assert_true(fabs(student_quantile(0.99, 7) - 3.4994833) < 1e-6);
  assert_true(fabs(student_tails(0, 3) - 1) < 1e-12);
  assert_true(fabs(student_quantile(0.95, 1) - 12.706205) < 1e-5);
}

/* A straggler in all runs of one side: it is gone, or new. */
static void warnings_of_one_side_are_told(void **state) {
  (void)state;
  struct cluster_options well = healthy_gpu(), slow;
  well.noise = 0.01;
  slow = well;
  slow.slow[5] = 0.3;
  for (u32 mended = 0; mended <= 1; mended++) {
    struct sides all = mended ? compare_several(slow, well, RUNS, even, NULL)
                              : compare_several(well, slow, RUNS, even, NULL);
    const struct diff_result *diff = all.shown->diff;
    const char *const *told = mended ? diff->gone : diff->came;
    u32 n = mended ? diff->n_gone : diff->n_came, stragglers = 0;
    assert_int_equal(mended ? diff->n_came : diff->n_gone, 0);
    for (u32 i = 0; i < n; i++)
      stragglers += strstr(told[i], "DIST.STRAGGLER: Rank 5 ") != NULL;
    assert_int_equal(stragglers, 1);
    sides_free(&all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_of_a_kind_are_no_change),
                                     cmocka_unit_test(one_bad_run_is_no_change),
                                     cmocka_unit_test(warnings_of_one_side_are_told),
                                     cmocka_unit_test(a_change_larger_than_noise_is_reported),
                                     cmocka_unit_test(there_are_three_answers),
                                     cmocka_unit_test(lines_that_explain_are_named),
                                     cmocka_unit_test(two_runs_per_side_are_undecided),
                                     cmocka_unit_test(the_rank_and_the_reason_lead),
                                     cmocka_unit_test(a_rank_is_named_in_spite_of_noise),
                                     cmocka_unit_test(a_rank_slow_in_compute_leads),
                                     cmocka_unit_test(figures_of_a_kind_are_the_same),
                                     cmocka_unit_test(kernels_need_no_steps),
                                     cmocka_unit_test(kernels_of_a_run_may_be_unknown),
                                     cmocka_unit_test(kernels_are_of_ranks_that_have_some),
                                     cmocka_unit_test(lines_of_a_run_may_be_unknown),
                                     cmocka_unit_test(noise_is_no_change),
                                     cmocka_unit_test(one_run_per_side_is_only_information),
                                     cmocka_unit_test(too_few_steps_are_undecided),
                                     cmocka_unit_test(student_is_tabulated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
