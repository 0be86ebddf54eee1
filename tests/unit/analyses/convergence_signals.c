/* SPDX-License-Identifier: MIT
 *
 * The job's own values together with what tscope measured: step times and memory.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse_cluster.h"
#include "model/memory_history.h"

#define STEPS 50u
#define RESUMED 7000u /* the job continues from a checkpoint, with its own count of steps */

/* A run in which every tenth step is long. Rank 0 reports the loss of a step when the next step
 * begins; steps `first`, `first` + 10, ... have twice the loss. */
struct run {
  struct cluster *cluster;
  struct results *results;
};

static struct run run_with(i64 slow, u32 first, const struct memory_origin *memory) {
  struct cluster_options options = healthy_gpu();
  struct analyse_options given = no_options();
  options.steps = STEPS;
  options.slow_step = slow;
  struct run run = {cluster_new(&options), NULL};
  struct model *model = &run.cluster->model;
  model->scalars = arena_array(&run.cluster->arena, STEPS, sizeof(*model->scalars));
  for (u32 s = 0; s < STEPS; s++)
    model->scalars[model->n_scalars++] =
        (struct scalar){.rank = 0,
                        .step = RESUMED + s,
                        .name = "train/loss",
                        .time = model->steps.begin[(size_t)s * model->n_ranks] + 3,
                        .value = (s >= first && (s - first) % 10 == 0 ? 2 : 1) *
                                 (3 - 0.01 * s + 0.001 * (s * 7 % 5))};
  model->memories = memory;
  model->n_memories = memory != NULL;
  run.results = cluster_analyse(run.cluster, &given);
  return run;
}

static void end(struct run run) {
  cluster_end(run.results, run.cluster);
}

static void long_steps_and_loss_spikes_at_once(void **state) {
  (void)state;
  struct run run = run_with(400 * MS, 19, NULL);
  const struct convergence_result *c = &run.results->convergence;
  const struct finding *finding = finding_of(run.results, "CROSS.CORRELATED_INSTABILITY");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "loss, step time"));
  assert_int_equal(c->n_clusters, 4); /* steps 19, 29, 39, 49; at 9 too few steps came before */
  assert_true(c->clusters[0].first_step == RESUMED + 19 &&
              c->clusters[3].last_step == RESUMED + 49);
  assert_true(c->instability_p < 0.01);
  end(run);
}

static void apart_they_mean_nothing(void **state) {
  (void)state;
  struct run run = run_with(400 * MS, 14, NULL);
  assert_null(finding_of(run.results, "CROSS.CORRELATED_INSTABILITY"));
  assert_int_equal(run.results->convergence.n_clusters, 0);
  end(run);
}

static void long_steps_alone_mean_nothing(void **state) {
  (void)state;
  struct run run = run_with(400 * MS, STEPS, NULL);
  assert_null(finding_of(run.results, "CROSS.CORRELATED_INSTABILITY"));
  assert_non_null(run.results->convergence.loss);
  assert_true(run.results->convergence.loss->spikes == 0);
  end(run);
}

/* Each step has a block of 1 MiB; the steps with an unusual loss have one of 5 MiB. */
static int read_memory(const struct model *model, const struct memory_origin *origin,
                       struct arena *arena, struct memory_history *history) {
  u32 first = *(const u32 *)origin->data;
  *history = (struct memory_history){
      .rank = 0, .origin = "a test", .steps_method = "marks", .n_steps = STEPS, .n_sources = 1};
  history->sources = arena_array(arena, 1, sizeof(*history->sources));
  history->events = arena_array(arena, 2 * STEPS, sizeof(*history->events));
  for (u32 s = 0; s < STEPS; s++) {
    i64 bytes = (s >= first && (s - first) % 10 == 0 ? 5 : 1) << 20;
    i64 time = model->steps.begin[(size_t)s * model->n_ranks];
    for (u32 half = 0; half < 2; half++)
      history->events[history->n_events++] =
          (struct memory_event){.time = time + half + 1,
                                .address = 4096,
                                .bytes = bytes,
                                .allocated = half ? 0 : bytes,
                                .reserved = 8 << 20,
                                .step = (i32)s,
                                .kind = half ? MEMORY_FREE : MEMORY_ALLOC};
  }
  history->reserved_before = history->reserved_at_end = 8 << 20;
  return 0;
}

static void memory_and_loss_at_once(void **state) {
  (void)state;
  u32 first = 19;
  struct memory_origin origin = {.read = read_memory, .data = &first};
  struct run run = run_with(0, 19, &origin);
  const struct finding *finding = finding_of(run.results, "CROSS.CORRELATED_INSTABILITY");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "loss, memory"));
  assert_true(run.results->memory.peak_allocated_bytes == 5 << 20);
  end(run);
  first = 14;
  run = run_with(0, 19, &origin);
  assert_null(finding_of(run.results, "CROSS.CORRELATED_INSTABILITY"));
  end(run);
}

static void three_signals_once_are_enough(void **state) {
  (void)state;
  u32 first = 49;
  struct memory_origin origin = {.read = read_memory, .data = &first};
  struct run run = run_with(400 * MS, 49, &origin);
  const struct finding *finding = finding_of(run.results, "CROSS.CORRELATED_INSTABILITY");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "loss, step time, memory"));
  end(run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_steps_and_loss_spikes_at_once),
      cmocka_unit_test(apart_they_mean_nothing), cmocka_unit_test(long_steps_alone_mean_nothing),
      cmocka_unit_test(memory_and_loss_at_once), cmocka_unit_test(three_signals_once_are_enough)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
