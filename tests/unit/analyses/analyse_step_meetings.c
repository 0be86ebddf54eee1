/* SPDX-License-Identifier: MIT
 *
 * What the host and its GPU do together tells steps that hold something else: checkpoints,
 * validations, losses that are logged. In these runs every tenth step takes 100 ms longer.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse_cluster.h"

enum { STEPS = 60, RANKS = 2, EVERY = 10, MOST = STEPS * 32 };

/* `n` times in a step. */
struct meet {
  u8 what;
  u32 n;
  u64 bytes;
};

static struct cluster *new_cluster(i64 longer) {
  struct cluster_options o = {.ranks = RANKS,
                              .steps = STEPS,
                              .warmup = 2,
                              .on_gpu = true,
                              .forward = 100 * MS,
                              .backward = 50 * MS,
                              .transfer = 20 * MS,
                              .slow_step = longer,
                              .slow_every = EVERY};
  return cluster_new(&o);
}

/* Every rank copies its batch in each step. So many ranks also do the other things in each tenth,
 * or if not `regular`, in as many at no fixed distance. */
static struct results *analyse_meetings(struct cluster *cluster, const struct meet *meets, u32 n,
                                        u32 ranks, bool regular) {
  static struct rank_meeting all[RANKS][MOST];
  static u8 known[STEPS * RANKS];
  struct model *model = &cluster->model;
  for (u32 r = 0; r < RANKS; r++) {
    u32 count = 0;
    for (u32 step = 0; step < STEPS; step++) {
      i64 at = model->steps.begin[(size_t)step * RANKS + r] + 10 * US;
      all[r][count++] = (struct rank_meeting){at, at + US, 4096, MEETING_COPY_IN};
      bool holds = regular ? step % EVERY == EVERY - 1 : step * 7919 % STEPS < STEPS / EVERY;
      for (u32 i = 0; i < n && r < ranks && holds; i++)
        for (u32 k = 0; k < meets[i].n; k++, at += 10 * US)
          all[r][count++] =
              (struct rank_meeting){at + US, at + 2 * US, meets[i].bytes, meets[i].what};
    }
    model->ranks[r].meetings = all[r];
    model->ranks[r].n_meetings = count;
  }
  memset(known, STEP_BEGIN_KNOWN | STEP_END_KNOWN, sizeof(known));
  model->steps.ends_known = known;
  return cluster_analyse(cluster, NULL);
}

static void a_kind_is(const struct meet *meets, u32 n, u32 ranks, const char *what) {
  struct cluster *cluster = new_cluster(100 * MS);
  struct results *r = analyse_meetings(cluster, meets, n, ranks, true);
  assert_int_equal(r->n_other_work, 1);
  assert_int_equal(r->n_turns, 0);
  assert_string_equal(r->other_work[0].what, what);
  assert_true(r->other_work[0].period == EVERY && r->other_work[0].n_steps == STEPS / EVERY);
  assert_true(fabs(r->other_work[0].ms - 100) < 1);
  const struct finding *finding = finding_of(r, "TIMING.JITTER");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "every 10 steps"));
  cluster_end(r, cluster);
}

/* Tensors of two sizes. What several ranks copy alike is told as what one of them copies. */
static void a_checkpoint_copies_from_the_gpu(void **state) {
  static const struct meet meets[] = {
      {MEETING_COPY_OUT, 2, 400000}, {MEETING_COPY_OUT, 1, 200000}, {MEETING_WAIT, 2, 0}};
  (void)state;
  for (u32 ranks = 1; ranks <= RANKS; ranks++)
    a_kind_is(meets, 3, ranks, "with 1.00 MB copied from the GPU that other steps do not copy");
}

static void a_validation_copies_batches_to_the_gpu(void **state) {
  static const struct meet meets[] = {{MEETING_COPY_IN, 12, 4096}, {MEETING_COPY_OUT, 1, 4}};
  (void)state;
  a_kind_is(meets, 2, 1, "with copies to the GPU that other steps do not have");
}

/* It is a part of training, which every tenth step has. */
static void a_loss_that_is_read_is_in_turn(void **state) {
  static const struct meet meets[] = {{MEETING_COPY_OUT, 1, 4}, {MEETING_WAIT, 1, 0}};
  (void)state;
  struct cluster *cluster = new_cluster(100 * MS);
  struct results *r = analyse_meetings(cluster, meets, 2, 1, true);
  assert_int_equal(r->n_other_work, 0);
  assert_int_equal(r->n_turns, 1);
  assert_true(r->turns[0].period == EVERY && fabs(r->turns[0].ms - 100) < 1);
  assert_non_null(strstr(r->turns[0].what, "wait of the host for the GPU"));
  cluster_end(r, cluster);
}

static void what_takes_no_time_is_not_told(void **state) {
  static const struct meet meets[] = {{MEETING_COPY_OUT, 1, 4}, {MEETING_WAIT, 1, 0}};
  (void)state;
  struct cluster *cluster = new_cluster(1 * MS);
  struct results *r = analyse_meetings(cluster, meets, 2, 1, true);
  assert_true(r->n_other_work == 0 && r->n_turns == 0);
  cluster_end(r, cluster);
}

static void what_comes_at_any_time_explains_nothing(void **state) {
  static const struct meet meets[] = {{MEETING_COPY_OUT, 2, 500000}};
  (void)state;
  struct cluster *cluster = new_cluster(100 * MS);
  struct results *r = analyse_meetings(cluster, meets, 1, 1, false);
  for (u32 i = 0; i < r->n_other_work; i++)
    assert_null(strstr(r->other_work[i].what, "copied"));
  cluster_end(r, cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_checkpoint_copies_from_the_gpu),
      cmocka_unit_test(a_validation_copies_batches_to_the_gpu),
      cmocka_unit_test(a_loss_that_is_read_is_in_turn),
      cmocka_unit_test(what_takes_no_time_is_not_told),
      cmocka_unit_test(what_comes_at_any_time_explains_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
