/* SPDX-License-Identifier: MIT
 *
 * Runs against each other: what changed is said, what is noise is not, and how the runs were made
 * is told apart from what they did.
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

/* --- several runs a side --- */

enum { RUNS = 3 };

struct sides {
  struct cluster *clusters[2][RUNS];
  struct results *runs[2][RUNS];
  struct results *shown;
};

/* `runs` runs of each kind; `factor` says how much longer all of a run's forward passes take than
 * the kind's do: hosts, clocks and neighbours differ from run to run. */
static struct sides compare_several(struct cluster_options before, struct cluster_options after,
                                    u32 runs, const double factor[2][RUNS],
                                    void (*edit)(struct sides *)) {
  struct sides all = {.shown = NULL};
  struct analyse_options options = no_options();
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < runs; i++) {
      struct cluster_options one = side ? after : before;
      one.forward = (i64)((double)one.forward * factor[side][i]);
      one.seed = 1 + 100 * side + i;
      all.clusters[side][i] = cluster_new(&one);
    }
  if (edit)
    edit(&all);
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < runs; i++)
      all.runs[side][i] = cluster_analyse(all.clusters[side][i], &options);
  const struct diff_side was = {.runs = all.runs[0], .n = runs};
  const struct diff_side is = {.runs = all.runs[1], .n = runs};
  assert_int_equal(diff_sides(&was, &is, &all.shown), 0);
  return all;
}

static void sides_free(struct sides *all) {
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++)
      if (all->runs[side][i]) {
        results_free(all->runs[side][i]);
        cluster_free(all->clusters[side][i]);
      }
}

static const struct finding *found_in(const struct diff_result *diff, const char *id) {
  for (u32 i = 0; i < diff->n_findings; i++)
    if (!strcmp(diff->findings[i].id, id))
      return &diff->findings[i];
  return NULL;
}

static double at_random(u32 *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (double)(*seed >> 8) / (1 << 24);
}

static struct cluster_options small(void) {
  struct cluster_options o = healthy_gpu();
  o.ranks = 2;
  o.steps = 20;
  o.noise = 0.02;
  return o;
}

static const double even[2][RUNS] = {{1, 1.01, 0.99}, {1.01, 0.99, 1}};

/* Runs of one kind whose levels lie up to a tenth of the step apart: three against three are called
 * different in hardly any of a hundred. Their steps alone would call nearly all of them so. */
static void runs_of_a_kind_are_no_change(void **state) {
  (void)state;
  u32 called = 0, by_steps = 0, seed = 12345;
  for (u32 round = 0; round < 100; round++) {
    double factor[2][RUNS];
    for (u32 i = 0; i < 2 * RUNS; i++)
      factor[i / RUNS][i % RUNS] = 0.85 + 0.3 * at_random(&seed);
    struct sides all = compare_several(small(), small(), RUNS, factor, NULL);
    assert_string_equal(all.shown->diff->noise, "between runs");
    called += strcmp(all.shown->diff->verdict, "no change beyond noise") != 0;
    struct results *first = all.runs[1][0];
    assert_int_equal(diff_results(all.runs[0][0], first), 0);
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

/* What two runs of the same code did: one of them 38 % slower, on a bad host. */
static void one_bad_run_is_no_change(void **state) {
  (void)state;
  const double factor[2][RUNS] = {{1, 1.02, 0.98}, {1.01, 2.18, 0.99}};
  struct sides all = compare_several(small(), small(), RUNS, factor, NULL);
  assert_string_equal(all.shown->diff->verdict, "no change beyond noise");
  assert_int_equal(all.shown->diff->n_findings, 0);
  assert_ptr_equal(all.shown, all.runs[1][0]); /* the one in the middle stands for its side */
  sides_free(&all);
}

static void a_change_beyond_runs_is_said(void **state) {
  (void)state;
  struct cluster_options after = small();
  after.forward += 70 * MS; /* of 312 */
  const double apart[2][RUNS] = {{1, 1.01, 0.99}, {1.006, 0.994, 1}};
  struct sides all = compare_several(small(), after, RUNS, apart, NULL);
  const struct diff_result *diff = all.shown->diff;
  assert_string_equal(diff->verdict, "slower");
  assert_true(diff->runs_before == RUNS && diff->runs_after == RUNS && diff->n_runs == 2 * RUNS);
  double known = 0; /* mean of the runs' medians */
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
  assert_string_equal(all.shown->diff->verdict, "faster");
  assert_null(found_in(all.shown->diff, "DIFF.SLOWER"));
  sides_free(&all);
}

/* Two runs a side show no spread to rely on. */
static void two_runs_a_side_cannot_tell(void **state) {
  (void)state;
  struct cluster_options after = small();
  after.forward *= 2;
  struct sides all = compare_several(small(), after, 2, even, NULL);
  assert_null(all.shown->diff->verdict);
  assert_non_null(strstr(all.shown->diff->reason, "2 and 2 runs"));
  assert_int_equal(found_in(all.shown->diff, "DIFF.SLOWER")->severity, SEVERITY_INFO);
  sides_free(&all);
}

/* One rank became slow in its input: the others' waiting, in backward, is not what is told. */
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
    struct pair pair = compare_with(before, after, NULL); /* as information */
    assert_non_null(
        strstr(found(&pair, "DIFF.SLOWER")->title, "rank 3 became slower in its input"));
    assert_int_equal(found(&pair, "DIFF.SLOWER")->severity, SEVERITY_INFO);
    assert_non_null(strstr(found(&pair, "DIFF.SLOWER")->action, "three times or more"));
    pair_free(&pair);
  }
}

/* Runs so far apart that their steps tell nothing: the rank whose input grew in all of them does.
 */
static void a_rank_is_told_in_spite_of_noise(void **state) {
  (void)state;
  const double apart[2][RUNS] = {{1, 1.5, 0.6}, {1.5, 0.6, 1.1}};
  struct cluster_options before = healthy_gpu(), after = before;
  before.ranks = after.ranks = 4;
  before.noise = after.noise = 0.01;
  after.extra_input[3] = 100 * MS; /* beside 312 */
  struct sides all = compare_several(before, after, RUNS, apart, NULL);
  assert_string_equal(all.shown->diff->verdict, "no change beyond noise");
  const struct finding *finding = found_in(all.shown->diff, "DIFF.RANK");
  assert_non_null(finding);
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  assert_non_null(strstr(finding->title, "Rank 3 became slower in its input"));
  assert_true(finding->n_ranks == 1 && finding->ranks[0] == 3);
  assert_null(found_in(all.shown->diff, "DIFF.SLOWER"));
  sides_free(&all);
  after.extra_input[3] = 0; /* the same noise, and nobody */
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

/* Where figures are many, those that only seem to differ are few: of a kind, hardly any. */
static void figures_of_a_kind_are_the_same(void **state) {
  (void)state;
  u32 judged = 0, wrong = 0, seed = 99;
  for (u32 round = 0; round < 60; round++) {
    double factor[2][RUNS];
    for (u32 i = 0; i < 2 * RUNS; i++)
      factor[i / RUNS][i % RUNS] = 0.95 + 0.1 * at_random(&seed);
    struct sides all = compare_several(small(), small(), RUNS, factor, NULL);
    for (u32 i = 0; i < all.shown->diff->n_rows; i++) {
      const struct diff_row *one = &all.shown->diff->rows[i];
      judged += one->verdict != NULL;
      wrong += one->verdict && strcmp(one->verdict, "same") != 0;
    }
    sides_free(&all);
  }
  assert_true(judged > 500);
  assert_true(wrong < judged / 50);
}

/* Eight steps are too few for a verdict, and enough to see which kernel got slower. */
static void kernels_need_no_steps(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = healthy_gpu();
  before.steps = after.steps = 8;
  after.forward *= 2;
  struct pair pair = compare_with(before, after, NULL);
  const struct diff_result *diff = pair.new->diff;
  assert_null(diff->verdict);
  assert_true(diff->n_kernels > 0);
  assert_true(fabs(diff->kernels[0].speedup - 0.5) < 1e-3); /* the largest difference comes first */
  assert_true(fabs(diff->kernels[0].before_mean_ms - 100) < 0.1);
  bool kinds = false;
  for (u32 i = 0; i < diff->n_rows; i++)
    kinds |= !strcmp(diff->rows[i].section, "kernels") && diff->rows[i].change > 0;
  assert_true(kinds);
  pair_free(&pair);
}

/* --- one run a side --- */

/* Steps of one run excuse a difference in at least 95 of 100, and never make one. */
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
      assert_string_equal(pair.new->diff->verdict, "no change beyond noise");
    pair_free(&pair);
  }
  assert_true(called <= 5);
}

/* However small its p-value: runs of the same code have differed by 38 %. */
static void one_run_a_side_is_information(void **state) {
  (void)state;
  struct cluster_options before = healthy_gpu(), after = healthy_gpu();
  before.noise = after.noise = 0.02;
  after.forward += 120 * MS; /* of 310 */
  struct pair pair = compare_with(before, after, NULL);
  assert_null(pair.new->diff->verdict);
  assert_non_null(strstr(pair.new->diff->reason, "1 and 1 runs"));
  assert_string_equal(pair.new->diff->noise, "within runs");
  assert_true(pair.new->diff->step_p_value < 1e-4);
  assert_true(fabs(pair.new->diff->step_after_ms - pair.new->diff->step_before_ms - 120) < 5);
  const struct finding *finding = found(&pair, "DIFF.SLOWER");
  assert_non_null(finding);
  assert_int_equal(finding->severity, SEVERITY_INFO);
  assert_true(isnan(finding->worth_s));
  assert_non_null(strstr(finding->evidence, "compute"));
  assert_null(row(&pair, "step time", "median")->verdict);
  assert_true(fabs(row(&pair, "a step", "compute")->after -
                   row(&pair, "a step", "compute")->before - 120) < 5);
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
  was->info[TSCOPE_INFO_ENVIRONMENT] =
      "OMP_NUM_THREADS=4\nNCCL_ALGO=Ring\nTSCOPE_DIR=/a\nRANK=0\n"
      "TORCHELASTIC_ERROR_FILE=/tmp/torchelastic_ab/none_x/attempt_0/0/error.json\n"
      "TORCHELASTIC_RUN_ID=none\nMASTER_PORT=29500\nSLURM_JOB_ID=11\nPMI_FD=9\nSLURM_TASK_PID=7";
  is->info[TSCOPE_INFO_ENVIRONMENT] =
      "OMP_NUM_THREADS=1\nTSCOPE_DIR=/b\nRANK=0\nNCCL_PROTO=LL\n"
      "TORCHELASTIC_ERROR_FILE=/tmp/torchelastic_cd/none_y/attempt_0/0/error.json\n"
      "TORCHELASTIC_RUN_ID=some\nMASTER_PORT=29512\nSLURM_JOB_ID=12\nPMI_FD=8\nSLURM_TASK_PID=6";
  was->info[TSCOPE_INFO_COMMAND] =
      "train.py --master_port 29500 --rdzv-id=ab /tmp/x1/c.json --lr 1";
  is->info[TSCOPE_INFO_COMMAND] = "train.py --master_port 29512 --rdzv-id=cd /tmp/x2/c.json --lr 1";
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

static void ask_otherwise(struct pair *pair) {
  pair->before->model.ranks[0].info[TSCOPE_INFO_COMMAND] = "train.py --port 1 --lr 1";
  pair->after->model.ranks[0].info[TSCOPE_INFO_COMMAND] = "train.py --port 2 --lr 2";
}

static void another_learning_rate_is_a_difference(void **state) {
  (void)state;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), ask_otherwise);
  assert_int_equal(pair.new->diff->n_facts, 1);
  assert_string_equal(fact(&pair, "command", NULL)->after, "train.py --port 2 --lr 2");
  pair_free(&pair);
}

static void vary_within_a_side(struct sides *all) {
  static const char *const environments[2][RUNS] = {
      {"NCCL_ALGO=Ring\nA_HOST=1", "NCCL_ALGO=Ring\nA_HOST=2", "NCCL_ALGO=Ring\nA_HOST=3"},
      {"NCCL_ALGO=Tree\nA_HOST=4", "NCCL_ALGO=Tree\nA_HOST=5", "NCCL_ALGO=Tree\nA_HOST=6"}};
  for (u32 side = 0; side < 2; side++)
    for (u32 i = 0; i < RUNS; i++)
      all->clusters[side][i]->model.ranks[0].info[TSCOPE_INFO_ENVIRONMENT] = environments[side][i];
}

/* What differs from run to run of a side anyway does not tell the sides apart. */
static void only_what_tells_sides_apart(void **state) {
  (void)state;
  struct sides all = compare_several(small(), small(), RUNS, even, vary_within_a_side);
  assert_int_equal(all.shown->diff->n_facts, 1);
  assert_string_equal(all.shown->diff->facts[0].name, "NCCL_ALGO");
  sides_free(&all);
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

/* --- the job asked for the same bits --- */

static const char *asked[2]; /* environments */

static void ask_for_bits(struct pair *pair) {
  tell_losses(pair);
  pair->before->model.ranks[0].info[TSCOPE_INFO_ENVIRONMENT] = asked[0];
  pair->after->model.ranks[0].info[TSCOPE_INFO_ENVIRONMENT] = asked[1];
}

static void bits_differ_where_they_must_not(void **state) {
  (void)state;
  nudge = 0;
  asked[0] = "CUBLAS_WORKSPACE_CONFIG=:4096:8\nPYTHONHASHSEED=0\nOMP_NUM_THREADS=1";
  asked[1] = "CUBLAS_WORKSPACE_CONFIG=:4096:8\nPYTHONHASHSEED=1\nOMP_NUM_THREADS=1";
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), ask_for_bits);
  const struct finding *finding = found(&pair, "DIFF.BITS");
  assert_non_null(finding); /* though they differ by 1e-9 only */
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  assert_non_null(strstr(finding->title, "loss differs from step 5"));
  assert_non_null(strstr(finding->evidence, "PYTHONHASHSEED (0, now 1)"));
  assert_null(strstr(finding->evidence, "OMP_NUM_THREADS"));
  assert_null(found(&pair, "DIFF.RESULTS"));
  pair_free(&pair);
  asked[0] = asked[1] = "PYTHONHASHSEED=random\nCUBLAS_WORKSPACE_CONFIG=:0:0";
  pair = compare_with(healthy_gpu(), healthy_gpu(), ask_for_bits);
  assert_null(pair.new->diff->determinism);
  assert_null(found(&pair, "DIFF.BITS"));
  pair_free(&pair);
  asked[0] = "PYTHONHASHSEED=0"; /* asked of one run only */
  pair = compare_with(healthy_gpu(), healthy_gpu(), ask_for_bits);
  assert_null(found(&pair, "DIFF.BITS"));
  pair_free(&pair);
}

static void command_asks(struct pair *pair) {
  tell_losses(pair);
  pair->before->model.ranks[0].info[TSCOPE_INFO_COMMAND] = asked[0];
  pair->after->model.ranks[0].info[TSCOPE_INFO_COMMAND] = asked[0];
}

static void bits_asked_for_by_the_command(void **state) {
  (void)state;
  static const struct {
    const char *command;
    bool asks;
  } cases[] = {{"train.py --deterministic", true},
               {"train.py --use_deterministic_algorithms=True --x", true},
               {"main trainer.deterministic=true", true},
               {"train.py --deterministic=false", false},
               {"train.py --no-deterministic", false},
               {"deterministic.py --lr 1", false}};
  nudge = 0;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    asked[0] = cases[i].command;
    struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), command_asks);
    assert_int_equal(found(&pair, "DIFF.BITS") != NULL, cases[i].asks);
    pair_free(&pair);
  }
}

/* A job's own times are no results: they differ in every run. */
static void throughput_is_no_result(void **state) {
  (void)state;
  nudge = 0;
  asked[0] = asked[1] = "PYTHONHASHSEED=0";
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), ask_for_bits);
  struct scalar *losses = pair.after->model.scalars;
  for (u32 i = 0; i < LOSSES; i++)
    losses[i].name = pair.before->model.scalars[i].name = "tokens_per_second";
  assert_int_equal(diff_results(pair.old, pair.new), 0);
  assert_true(pair.new->diff->n_scalars == 1);
  assert_int_equal(pair.new->diff->n_findings, 0);
  pair_free(&pair);
}

/* Three runs a side, each with a loss of its own: seeds, or seeds and a level. */
static double level;

static void tell_levels(struct sides *all) {
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
  struct sides all = compare_several(small(), small(), RUNS, even, tell_levels);
  assert_int_equal(found_in(all.shown->diff, "DIFF.RESULTS")->severity, SEVERITY_INFO);
  sides_free(&all);
  level = 0.5;
  all = compare_several(small(), small(), RUNS, even, tell_levels);
  const struct finding *finding = found_in(all.shown->diff, "DIFF.RESULTS");
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  assert_non_null(strstr(finding->title, "loss ends at"));
  sides_free(&all);
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
  assert_int_equal(diff_sides(&was, &is, &all.shown), 0);
  assert_int_equal(found_in(all.shown->diff, "DIFF.MEMORY")->severity, SEVERITY_CRITICAL);
  sides_free(&all);
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_of_a_kind_are_no_change),
                                     cmocka_unit_test(one_bad_run_is_no_change),
                                     cmocka_unit_test(a_change_beyond_runs_is_said),
                                     cmocka_unit_test(two_runs_a_side_cannot_tell),
                                     cmocka_unit_test(the_rank_and_the_reason_lead),
                                     cmocka_unit_test(a_rank_is_told_in_spite_of_noise),
                                     cmocka_unit_test(a_rank_slow_in_compute_leads),
                                     cmocka_unit_test(figures_of_a_kind_are_the_same),
                                     cmocka_unit_test(kernels_need_no_steps),
                                     cmocka_unit_test(noise_is_no_change),
                                     cmocka_unit_test(one_run_a_side_is_information),
                                     cmocka_unit_test(too_few_steps_cannot_tell),
                                     cmocka_unit_test(how_runs_were_made),
                                     cmocka_unit_test(another_learning_rate_is_a_difference),
                                     cmocka_unit_test(only_what_tells_sides_apart),
                                     cmocka_unit_test(values_part),
                                     cmocka_unit_test(bits_differ_where_they_must_not),
                                     cmocka_unit_test(bits_asked_for_by_the_command),
                                     cmocka_unit_test(throughput_is_no_result),
                                     cmocka_unit_test(values_end_apart),
                                     cmocka_unit_test(memory_that_grew),
                                     cmocka_unit_test(tensors_that_scale),
                                     cmocka_unit_test(student_is_tabulated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
