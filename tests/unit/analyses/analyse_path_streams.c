/* SPDX-License-Identifier: MIT
 *
 * What work of several streams, and of a GPU that was not seen, makes of the critical path.
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

/* A host launches ten kernels of 2 ms, one every 10 ms, alternately on two streams, and then works
 * for 5 ms more; all that `rounds` times, which are steps, or a run without any. */
static struct results *host_with_two_streams(u32 rounds, bool are_steps, bool compute_known) {
  enum { KERNELS = 10, SPANS = 2 * KERNELS + 1, MOST = 20 };
  static struct span spans[MOST * SPANS];
  static struct lane lanes[] = {{false, 0, "main"}, {true, 0, "0"}, {true, 1, "1"}};
  static i64 begins[MOST], ends[MOST];
  static struct phase_times phases[MOST];
  static struct rank rank;
  static struct timeline timeline;
  static struct cluster c;
  static struct interval compute[MOST * KERNELS];
  i64 round = 105 * MS;
  for (u32 s = 0; s < rounds; s++) {
    struct span *at = &spans[s * SPANS];
    for (u32 i = 0; i < KERNELS; i++) {
      i64 t = s * round + i * 10 * MS;
      at[2 * i] = (struct span){.start = t,
                                .end = t + LAUNCH,
                                .kind = SPAN_LAUNCH,
                                .link = INDEX_NONE,
                                .launch = INDEX_NONE};
      at[2 * i + 1] = (struct span){.start = t + LAUNCH,
                                    .end = t + LAUNCH + 2 * MS,
                                    .kind = SPAN_KERNEL,
                                    .lane = (u16)(1 + i % 2),
                                    .link = INDEX_NONE,
                                    .launch = s * SPANS + 2 * i};
      compute[s * KERNELS + i] = (struct interval){t + LAUNCH, t + LAUNCH + 2 * MS};
    }
    at[2 * KERNELS] = (struct span){.start = s * round + 100 * MS,
                                    .end = (s + 1) * round,
                                    .kind = SPAN_OP,
                                    .link = INDEX_NONE,
                                    .launch = INDEX_NONE};
    begins[s] = s * round;
    ends[s] = (s + 1) * round;
    phases[s] = (struct phase_times){NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, round};
  }
  rank = (struct rank){.closed = true, .records = rounds * SPANS, .end = rounds * round};
  timeline =
      (struct timeline){.spans = spans,
                        .n_spans = rounds * SPANS,
                        .lanes = lanes,
                        .n_lanes = 3,
                        .compute = {.at = compute, .n = compute_known ? rounds * KERNELS : 0},
                        .on_gpu = true,
                        .has_compute = true,
                        .has_comm = true,
                        .ring_begin = NS_UNKNOWN};
  c = (struct cluster){
      .timelines = &timeline,
      .model = {.world_size = 1, .n_ranks = 1, .ranks = &rank, .end = rounds * round}};
  if (are_steps) {
    c.model.phases = phases;
    c.model.steps.n = rounds;
    c.model.steps.begin = begins;
    c.model.steps.end = ends;
  }
  return cluster_analyse(&c, NULL);
}

/* However fast the host is, each stream has 10 ms of work. */
static void the_streams_have_work_without_launch_gaps(void **state) {
  (void)state;
  struct results *r = host_with_two_streams(1, false, false);
  assert_near(r->path_length_ms, 105, 1e-6);
  assert_near(r->path_selfcheck, 0, 1e-9);
  assert_near(step_if(r, WHAT_IF_LAUNCHES), 10, 1e-6);
  results_free(r);
}

/* And so it is in every step, though the host ends each long after its device: it is not that most
 * take no time, and the last that of all. */
static void a_step_ends_on_the_device_without_its_host(void **state) {
  (void)state;
  struct results *r = host_with_two_streams(20, true, false);
  const struct what_if *fast = r->what_if;
  while (fast->kind != WHAT_IF_LAUNCHES)
    fast++;
  assert_near(fast->step_ms, 10, 1e-6);
  assert_near(fast->saving_low * 105, 95, 0.1);
  assert_near(fast->saving_high * 105, 95, 0.1);
  results_free(r);
}

/* Kernels of two streams that only ran side by side in a replay would not be as fast. */
static void no_step_is_shorter_than_its_compute(void **state) {
  (void)state;
  struct results *r = host_with_two_streams(20, true, true);
  const struct finding *idle = finding_of(r, "EFFICIENCY.RECOVERABLE");
  assert_non_null(idle);
  assert_int_equal(idle->severity, SEVERITY_CRITICAL);
  assert_near(step_if(r, WHAT_IF_LAUNCHES), 20, 1e-6);
  assert_near(1e3 * idle->saving_s / r->training_steps, 85, 1e-6);
  results_free(r);
}

/* 20 kernels are launched on a stream in the first millisecond. Meanwhile a communication stream is
 * busy for `other` nanoseconds. The first kernel begins `after` nanoseconds later than that; no
 * event shows that it waited. */
static struct results *queued_work(i64 other, i64 after) {
  enum { KERNELS = 20, SPANS = 2 * KERNELS + 3 };
  static struct span spans[SPANS];
  static struct lane lanes[] = {{false, 0, "main"}, {true, 0, "0"}, {true, 1, "1"}};
  static struct rank rank;
  static struct timeline timeline;
  static struct cluster c;
  i64 busy = KERNELS * 40 * US + LAUNCH + 5 * US, begin = busy + other + after;
  i64 end = begin + KERNELS * MS;
  u32 n = 0;
  rank = (struct rank){.closed = true, .records = SPANS, .end = end};
  for (u32 i = 0; i <= KERNELS; i++) /* the last launch is the work that the others wait for */
    spans[n++] = (struct span){.start = i * 40 * US,
                               .end = i * 40 * US + LAUNCH,
                               .kind = SPAN_LAUNCH,
                               .link = INDEX_NONE,
                               .launch = INDEX_NONE};
  if (other)
    spans[n++] = (struct span){.start = busy,
                               .end = busy + other,
                               .kind = SPAN_KERNEL,
                               .lane = 2,
                               .link = INDEX_NONE,
                               .launch = KERNELS};
  for (u32 i = 0; i < KERNELS; i++)
    spans[n++] = (struct span){.start = begin + i * MS,
                               .end = begin + (i + 1) * MS,
                               .kind = SPAN_KERNEL,
                               .lane = 1,
                               .link = INDEX_NONE,
                               .launch = i};
  timeline = (struct timeline){.spans = spans,
                               .n_spans = n,
                               .lanes = lanes,
                               .n_lanes = 3,
                               .on_gpu = true,
                               .has_compute = true,
                               .has_comm = true,
                               .ring_begin = NS_UNKNOWN};
  c = (struct cluster){.timelines = &timeline,
                       .model = {.world_size = 1, .n_ranks = 1, .ranks = &rank, .end = end}};
  return cluster_analyse(&c, NULL);
}

static double inferred(const struct results *r) {
  for (u32 i = 0; i < r->n_path_edges; i++)
    if (!strcmp(r->path_edges[i].name, "inferred"))
      return r->path_edges[i].count;
  return 0;
}

/* A start two microseconds after the end of 40 ms of other work is not a coincidence. */
static void a_wait_without_an_event_is_inferred(void **state) {
  (void)state;
  struct results *r = queued_work(40 * MS, 2 * US);
  assert_near(inferred(r), 1, 0);
  assert_near(path_ms(r, "compute"), 60, 1e-6);
  assert_near(path_ms(r, "unknown"), 0, 1e-6);
  assert_true(path_ms(r, "launch") < 1.1);
  assert_near(r->path_selfcheck, 0, 1e-9);
  assert_true(step_if(r, WHAT_IF_LAUNCHES) >= 60);
  results_free(r);
}

/* After three milliseconds nobody knows what the kernel waited for: it was not a launch, and every
 * what-if keeps this time. */
static void a_wait_for_nothing_recorded_is_unknown(void **state) {
  (void)state;
  struct results *r = queued_work(40 * MS, 3 * MS);
  assert_near(inferred(r), 0, 0);
  assert_true(path_ms(r, "launch") < 1.1);
  assert_near(path_ms(r, "unknown"), 0.81 + 43 - LAUNCH / 1e6, 1e-6);
  assert_true(step_if(r, WHAT_IF_LAUNCHES) >= 20 + 43);
  results_free(r);
}

/* Nothing else runs on the GPU, and the work does not begin: the GPU does something else. */
static void a_gpu_that_is_away_is_told(void **state) {
  (void)state;
  struct results *r = queued_work(0, 43 * MS);
  double waits = 0.81 + 43 - LAUNCH / 1e6;
  assert_near(path_ms(r, "GPU away"), waits, 1e-6);
  assert_near(path_ms(r, "unknown"), 0, 1e-6);
  assert_null(r->what_if_reason);
  assert_near(step_if(r, WHAT_IF_GPU_AWAY), r->path_length_ms - waits, 1e-6);
  assert_non_null(finding_of(r, "KERNEL.LATE_START"));
  results_free(r);
  r = queued_work(40 * MS, 3 * MS);
  assert_near(path_ms(r, "GPU away"), 0, 1e-6);
  assert_null(finding_of(r, "KERNEL.LATE_START"));
  results_free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_streams_have_work_without_launch_gaps),
      cmocka_unit_test(a_step_ends_on_the_device_without_its_host),
      cmocka_unit_test(no_step_is_shorter_than_its_compute),
      cmocka_unit_test(a_wait_without_an_event_is_inferred),
      cmocka_unit_test(a_wait_for_nothing_recorded_is_unknown),
      cmocka_unit_test(a_gpu_that_is_away_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
