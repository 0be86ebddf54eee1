/* SPDX-License-Identifier: MIT
 *
 * Differences in how runs were made are reported separately from differences in what they did.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "diff_pair.h"

static void set_different_facts(struct pair *pair) {
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
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), set_different_facts);
  assert_int_equal(pair.new->diff->n_facts, 4);
  assert_string_equal(fact(&pair, "git_commit", NULL)->after, "bbbb");
  assert_string_equal(fact(&pair, "environment", "OMP_NUM_THREADS")->before, "4");
  assert_null(fact(&pair, "environment", "NCCL_ALGO")->after);
  assert_null(fact(&pair, "environment", "NCCL_PROTO")->before);
  pair_free(&pair);
}

static void set_different_commands(struct pair *pair) {
  pair->before->model.ranks[0].info[TSCOPE_INFO_COMMAND] = "train.py --port 1 --lr 1";
  pair->after->model.ranks[0].info[TSCOPE_INFO_COMMAND] = "train.py --port 2 --lr 2";
}

static void another_learning_rate_is_a_difference(void **state) {
  (void)state;
  struct pair pair = compare_with(healthy_gpu(), healthy_gpu(), set_different_commands);
  assert_int_equal(pair.new->diff->n_facts, 1);
  assert_string_equal(fact(&pair, "command", NULL)->after, "train.py --port 2 --lr 2");
  pair_free(&pair);
}

static void set_commands_that_differ_late(struct pair *pair) {
  pair->before->model.ranks[0].info[TSCOPE_INFO_COMMAND] =
      "python -u pretrain.py --config configs/of-a-model/with-a-long-name.yaml --lr 1 --seed 7";
  pair->after->model.ranks[0].info[TSCOPE_INFO_COMMAND] =
      "python -u pretrain.py --config configs/of-a-model/with-a-long-name.yaml --lr 12 --seed 7";
}

static void long_commands_are_shown_from_where_they_differ(void **state) {
  (void)state;
  struct cluster_options after = healthy_gpu();
  after.forward *= 2;
  struct pair pair = compare_with(healthy_gpu(), after, set_commands_that_differ_late);
  assert_non_null(strstr(found(&pair, "DIFF.SLOWER")->evidence,
                         "command (... 1 --seed 7, now ... 12 --seed 7)"));
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

/* What differs between the runs of one side is not a difference between the sides. */
static void only_differences_between_sides(void **state) {
  (void)state;
  struct sides all = compare_several(small(), small(), RUNS, even, vary_within_a_side);
  assert_int_equal(all.shown->diff->n_facts, 1);
  assert_string_equal(all.shown->diff->facts[0].name, "NCCL_ALGO");
  sides_free(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(how_runs_were_made), cmocka_unit_test(another_learning_rate_is_a_difference),
      cmocka_unit_test(long_commands_are_shown_from_where_they_differ),
      cmocka_unit_test(only_differences_between_sides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
