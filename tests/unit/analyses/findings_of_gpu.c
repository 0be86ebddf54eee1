/* SPDX-License-Identifier: MIT
 *
 * Findings about what the GPU does, and how efficiently. For each finding: a run in which it fires,
 * and one in which it nearly fires but must not.
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

#include "analyses/findings/findings.h"
#include "kernels/kernels.h"
#include "model/gemms.h"
#include "model/span_call_sites.h"
#include "sampled_cluster.h"
#include "scenario.h"

static void low_mfu(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.given.peak_tflops = 100; /* 8 x 100 TFLOP/s x 0.311 s = 249 TFLOP */
  s.given.flops_per_step = 60e12;
  assert_true(fires(&s, "EFFICIENCY.LOW_MFU"));
  s.given.flops_per_step = 80e12;
  assert_false(fires(&s, "EFFICIENCY.LOW_MFU"));
  s.given = no_options();
  assert_false(fires(&s, "EFFICIENCY.LOW_MFU"));
}

/* All kernels, 300 ms in each step, are GEMMs on an H100, which can do 67 TFLOP/s in fp32. */
static void make_gemms(struct cluster *c, u8 precision, double share_of_peak) {
  struct gemm_shape *shape = arena_alloc(&c->arena, sizeof(*shape));
  struct gemms *gemms = arena_alloc(&c->arena, sizeof(*gemms));
  shape->m = shape->n = shape->k = 16384;
  shape->precision = precision;
  *gemms = (struct gemms){.shapes = shape, .n_shapes = 1};
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    c->model.ranks[r].info[TSCOPE_INFO_GPU_NAME] = "NVIDIA H100 80GB HBM3";
    t->arithmetic = arena_array(&c->arena, t->n_spans, sizeof(*t->arithmetic));
    t->gemms = gemms;
    for (u32 i = 0; i < t->n_spans; i++) {
      const struct span *kernel = &t->spans[i];
      if (kernel->kind != SPAN_KERNEL || kernel->launch == INDEX_NONE)
        continue;
      const struct span *launch = &t->spans[kernel->launch];
      double seconds = (double)(kernel->end - kernel->start) / 1e9;
      t->arithmetic[t->n_arithmetic++] =
          (struct arithmetic){.start = launch->start - 1,
                              .end = launch->end + 1,
                              .flops = (u64)(share_of_peak * 67e12 * seconds),
                              .lane = launch->lane};
    }
  }
}

static void at_half_the_peak_of_fp32(struct cluster *c) {
  make_gemms(c, PRECISION_FP32, 0.5);
}
static void waiting_for_memory(struct cluster *c) {
  make_gemms(c, PRECISION_FP32, 0.05); /* of 311 ms 300 x 0.05 x (1 - 67 / 494.5) = 13 */
}
static void in_tf32(struct cluster *c) {
  make_gemms(c, PRECISION_TF32, 0.5);
}

static void precision(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.spoil = at_half_the_peak_of_fp32;
  assert_true(fires(&s, "EFFICIENCY.PRECISION"));
  s.spoil = waiting_for_memory;
  assert_false(fires(&s, "EFFICIENCY.PRECISION"));
  s.spoil = in_tf32;
  assert_false(fires(&s, "EFFICIENCY.PRECISION"));
}

/* As the join of the ranks fills them in from their phases. */
static void with_phases(struct cluster *c) {
  u32 n = c->model.steps.n * c->model.n_ranks;
  c->model.phases = arena_array(&c->arena, n, sizeof(*c->model.phases));
  for (u32 i = 0; i < n; i++)
    c->model.phases[i] =
        (struct phase_times){.data = c->options.input,
                             .forward = LAUNCH,
                             .backward = 2 * LAUNCH,
                             .optimizer = 0,
                             .other = c->options.late_launch[i % c->model.n_ranks]};
}

static void outside_phases(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.spoil = with_phases;
  for (u32 i = 0; i < s.options.ranks; i++)
    s.options.late_launch[i] = 140 * MS; /* the device is idle for 40 of them */
  assert_true(fires(&s, "TIMING.OUTSIDE_PHASES"));
  for (u32 i = 0; i < s.options.ranks; i++)
    s.options.late_launch[i] = 110 * MS; /* for 10 */
  assert_false(fires(&s, "TIMING.OUTSIDE_PHASES"));
  for (u32 i = 0; i < s.options.ranks; i++)
    s.options.late_launch[i] = 140 * MS;
  for (u32 i = 0; i < s.options.ranks; i++)
    s.options.late_launch[i] = i == 2 ? 110 * MS : 0;
  assert_false(fires(&s, "TIMING.OUTSIDE_PHASES")); /* a straggler */
  s.options.ranks = 2;
  s.options.late_launch[0] = 0;
  s.options.late_launch[1] = 200 * MS;
  assert_false(fires(&s, "TIMING.OUTSIDE_PHASES")); /* nor of two */
  s.options.late_launch[0] = 140 * MS;
  assert_true(fires(&s, "TIMING.OUTSIDE_PHASES"));
}

/* The device of each rank idles for 40 ms outside the phases, that of rank 2 for 140 ms: the
 * straggler saves 100 ms, and what all do the other 40. */
static void what_a_straggler_does_outside_is_its_own(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  for (u32 i = 0; i < o.ranks; i++)
    o.late_launch[i] = (i == 2 ? 240 : 140) * MS;
  struct cluster *c = cluster_new(&o);
  with_phases(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *outside = finding_of(r, "TIMING.OUTSIDE_PHASES");
  const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
  assert_non_null(outside);
  assert_non_null(straggler);
  assert_true(fabs(outside->saving_s / r->training_steps - 0.040) < 0.002);
  assert_true(fabs(straggler->saving_s / r->training_steps - 0.100) < 0.002);
  assert_true(fabs(outside->saving_added_s - outside->saving_s) < 1e-6);
  assert_true(fabs(straggler->saving_added_s - straggler->saving_s) < 1e-6);
  cluster_end(r, c);
}

static void recoverable(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.exposed_memcpy = 30 * MS;
  assert_true(fires(&s, "EFFICIENCY.RECOVERABLE"));
  s.options.exposed_memcpy = 14 * MS;
  assert_false(fires(&s, "EFFICIENCY.RECOVERABLE"));
}

/* Copies make up the lost time: they are the thing to begin with, though the sum is a little more.
 */
static void causes_come_before_what_sums_them_up(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.exposed_memcpy = 30 * MS;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *copies = finding_of(r, "KERNEL.COPY");
  const struct finding *sum = finding_of(r, "EFFICIENCY.RECOVERABLE");
  assert_true(copies && sum && copies->saving_s < sum->saving_s && copies < sum);
  assert_string_equal(sum->overlaps[0], "KERNEL.COPY");
  cluster_end(r, c);
}

/* The rules about kernels read sums that other tests check; here they are set by hand. */
static bool fires_on(void (*rule)(struct findings *), struct results *given) {
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  u32 before = r->n_findings;
  struct analysis a = {.model = &c->model, .results = given, .arena = r->internal};
  struct findings f = {.a = &a, .arena = a.arena, .r = given, .steps = 1, .step_ms = 100};
  given->n_findings = 0;
  given->what_if_reason = "none";
  rule(&f);
  bool fired = given->n_findings == 1;
  if (fired)
    assert_non_null(strpbrk(given->findings[0].evidence, "0123456789"));
  assert_int_equal(r->n_findings, before);
  cluster_end(r, c);
  return fired;
}

/* The action where the devices idle for 80 ms of a second, and without the wait at a line a step is
 * shorter by this share. */
static bool idle_names_line(double share) {
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct results *whole = cluster_analyse(c, NULL);
  struct cure_change idle = {.kind = CHANGE_LAUNCHES};
  struct budget_line budget[] = {
      {.part = BUDGET_LAUNCH_AND_IDLE, .seconds = 0.08, .fraction = 0.08, .cure = {&idle, 1}}};
  struct line_result at[] = {{.place = "train.py:7"}};
  struct what_if what_if[] = {{.kind = WHAT_IF_LINE, .saving_fraction = share}};
  struct results given = {.budget = budget,
                          .n_budget = 1,
                          .wall_s = 1,
                          .analysed_s = 1,
                          .what_if = what_if,
                          .n_what_if = 1,
                          .lines = {.at = at, .n_at = 1}};
  struct analysis a = {.model = &c->model, .results = &given, .arena = whole->internal};
  struct findings f = {.a = &a, .arena = a.arena, .r = &given, .steps = 10, .step_ms = 100};
  rule_recoverable(&f);
  assert_int_equal(given.n_findings, 1);
  bool named = strstr(given.findings[0].action, "train.py:7") != NULL;
  cluster_end(whole, c);
  return named;
}

/* Devices idle for 8 % of the time, and for much more while the host is outside the phases. */
static void other_idle_time_is_told(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct results *whole = cluster_analyse(c, NULL);
  struct cure_change idle = {.kind = CHANGE_LAUNCHES};
  struct budget_line budget[] = {
      {.part = BUDGET_LAUNCH_AND_IDLE, .seconds = 0.08, .fraction = 0.08, .cure = {&idle, 1}},
      {.part = BUDGET_OUTSIDE_PHASES, .seconds = 0.39, .fraction = 0.39},
      {.part = BUDGET_INPUT, .seconds = 0.04, .fraction = 0.04}};
  struct results given = {.budget = budget, .n_budget = 3, .wall_s = 1, .analysed_s = 1};
  struct analysis a = {.model = &c->model, .results = &given, .arena = whole->internal};
  struct findings f = {.a = &a, .arena = a.arena, .r = &given, .steps = 10, .step_ms = 100};
  rule_recoverable(&f);
  assert_int_equal(given.n_findings, 1);
  assert_non_null(
      strstr(given.findings[0].title, ", besides work of the host outside the phases (39 %)"));
  cluster_end(whole, c);
}

/* A line is named that is at least half of it; one that saves 5 % or more is a finding of its own.
 */
static void idle_devices_name_the_line_that_waits(void **state) {
  (void)state;
  assert_true(idle_names_line(0.045));
  assert_false(idle_names_line(0.035));
  assert_false(idle_names_line(0.06));
}

static void launch_bound(void **state) {
  (void)state;
  struct results r = {.gpu_timeline = {.host_bound_ms = 12, .total_ms = 100},
                      .launch = {.kernels = 1000, .short_kernels = 600}};
  assert_true(fires_on(rule_launch_bound, &r));
  r.gpu_timeline.host_bound_ms = 9;
  assert_false(fires_on(rule_launch_bound, &r));
  r.gpu_timeline.host_bound_ms = 30;
  r.launch.short_kernels = 400; /* the kernels are long: the host is late for another reason */
  assert_false(fires_on(rule_launch_bound, &r));
  r.gpu_timeline.host_bound_ms = NAN;
  r.launch.short_kernels = 1000;
  assert_false(fires_on(rule_launch_bound, &r));
  r.gpu_timeline.host_bound_ms = 95; /* setting up, or a hang: within the steps the GPU works */
  r.ov_steps = 10;
  r.ov_step_ms = 100;
  r.ov_idle_ms = 9;
  assert_false(fires_on(rule_launch_bound, &r));
  r.ov_idle_ms = 11;
  assert_true(fires_on(rule_launch_bound, &r));
}

/* Copies and kernels that only copy: 5 % of the GPUs' work without NCCL. */
static void copy(void **state) {
  (void)state;
  struct kernel_category_result categories[] = {
      {.category = "GEMM", .kind = KERNEL_GEMM, .count = 100, .sum_ms = 78},
      {.category = "memcpy", .kind = KERNEL_MEMCPY, .count = 40, .sum_ms = 12},
      {.category = "elementwise", .kind = KERNEL_ELEMENTWISE, .count = 10, .sum_ms = 10},
      {.category = "communication", .kind = KERNEL_COMMUNICATION, .count = 10, .sum_ms = 900}};
  struct kernel_result kernels[] = {
      {.name = "void at::native::elementwise_kernel<direct_copy_kernel_cuda>(int)",
       .category = "elementwise",
       .kind = KERNEL_ELEMENTWISE,
       .count = 10,
       .sum_ms = 10},
      {.name = "gemm", .category = "GEMM", .kind = KERNEL_GEMM, .count = 100, .sum_ms = 78}};
  struct results r = {.kernel_categories = categories,
                      .n_kernel_categories = 4,
                      .kernels = kernels,
                      .n_kernels = 2};
  assert_true(fires_on(rule_copy, &r));                              /* 22 % */
  kernels[0].name = "void at::native::elementwise_kernel<mul>(int)"; /* 12 % */
  assert_true(fires_on(rule_copy, &r));
  categories[1].sum_ms = 4; /* 4 % */
  assert_false(fires_on(rule_copy, &r));
  kernels[0].name = "void at::native::CatArrayBatchedCopy<float>(int)";
  assert_true(fires_on(rule_copy, &r));
  kernels[0].kind = KERNEL_CONVERSION; /* conversions have their own finding */
  assert_false(fires_on(rule_copy, &r));
}

static void host_sync(void **state) {
  (void)state;
  struct line_result line = {.place = "train.py:88",
                             .file = "/job/train.py",
                             .function = "main",
                             .line = 88,
                             .waits = 1,
                             .wait_ms = 4,
                             .idle_ms = 6,
                             .without_ms = NAN};
  struct results r = {.step_mean_ms = 100, .lines = {.at = &line, .n_at = 1, .sites = 10}};
  assert_true(fires_on(rule_host_sync, &r));
  line.idle_ms = 4; /* the GPU has enough work: the wait costs little */
  assert_false(fires_on(rule_host_sync, &r));
  line.idle_ms = NAN; /* the GPU's work is unknown */
  assert_false(fires_on(rule_host_sync, &r));
}

/* Without steps all figures are of the run, and so is what a wait costs. */
static void without_steps_the_run_is_shorter(void **state) {
  (void)state;
  struct arena arena = {0};
  struct line_result line = {.place = "serve.py:135",
                             .file = "/job/serve.py",
                             .function = "main",
                             .line = 135,
                             .waits = 1,
                             .wait_ms = 231,
                             .idle_ms = 270,
                             .without_ms = 700};
  for (int whole_run = 0; whole_run < 2; whole_run++) {
    struct results r = {.lines = {.at = &line, .n_at = 1, .sites = 10}};
    struct model model = {0};
    struct analysis a = {
        .model = &model, .results = &r, .arena = &arena, .whole_run = whole_run != 0};
    struct findings f = {.a = &a, .arena = a.arena, .r = &r, .steps = 1, .step_ms = 1000};
    rule_host_sync(&f);
    assert_int_equal(r.n_findings, 1);
    assert_int_equal(strstr(r.findings[0].title, "the run is 270 ms shorter") != NULL, whole_run);
    assert_int_equal(strstr(r.findings[0].title, "a step is 270 ms shorter") != NULL, !whole_run);
  }
  arena_release(&arena);
}

static void fills(void **state) {
  (void)state;
  struct kernel_category_result categories[] = {
      {"communication", 10, 900, 0.9, KERNEL_COMMUNICATION},
      {"GEMM", 10, 94, 0.094, KERNEL_GEMM},
      {"memset", 50, 6, 0.006, KERNEL_MEMSET}};
  struct results r = {.kernel_categories = categories,
                      .n_kernel_categories = 3,
                      .launch = {.fill_count = NAN, .fill_ms = NAN}};
  assert_true(fires_on(rule_fill, &r)); /* out of 100 ms that are not communication */
  categories[2].sum_ms = 4;
  assert_false(fires_on(rule_fill, &r));
  struct kernel_result kernel = {.name = "vectorized<FillFunctor<float>>", .count = 5, .sum_ms = 2};
  r.kernels = &kernel;
  r.n_kernels = 1;
  assert_true(fires_on(rule_fill, &r));
}

static void dtype_conversion(void **state) {
  (void)state;
  struct kernel_category_result categories[] = {
      {"GEMM", 10, 94, 0.94, KERNEL_GEMM}, {"dtype conversion", 50, 6, 0.06, KERNEL_CONVERSION}};
  struct results r = {.kernel_categories = categories, .n_kernel_categories = 2};
  assert_true(fires_on(rule_dtype_conversion, &r));
  categories[1].sum_ms = 4;
  assert_false(fires_on(rule_dtype_conversion, &r));
}

/* For nearly all of each step the host is in no phase. */
static void leave_the_phases(struct cluster *c) {
  u32 n = c->model.n_ranks * c->model.steps.n;
  c->model.phases = arena_array(&c->arena, n, sizeof(*c->model.phases));
  for (u32 i = 0; i < n; i++)
    c->model.phases[i] = (struct phase_times){
        .forward = MS, .backward = MS, .data = MS, .optimizer = MS, .other = 300 * MS};
}

/* For half of each step the GPU does nothing, for no recorded reason: no replay can be relied on.
 */
static void wait_for_something_unknown(struct cluster *c) {
  leave_the_phases(c);
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    u32 step = 0, kernels = 0; /* F, B1 and B2 in each step */
    for (u32 i = 0; i < t->n_spans; i++) {
      struct span *forward = &t->spans[i];
      if (forward->kind != SPAN_KERNEL || kernels++ % 3)
        continue;
      forward->start = forward->end - MS;
      forward->launch = INDEX_NONE;
      t->compute.at[2 * step++].start = forward->start;
    }
  }
}

/* What the host does while it waits for its GPU, or could, costs nothing. */
static void a_host_that_waits_for_its_gpu_is_not_the_limit(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.spoil = wait_for_something_unknown;
  assert_false(fires(&s, "TIMING.OUTSIDE_PHASES"));
  s.spoil = leave_the_phases;
  for (u32 i = 0; i < s.options.ranks; i++)
    s.options.late_launch[i] = 400 * MS;
  assert_true(fires(&s, "TIMING.OUTSIDE_PHASES"));
}

/* Between its launches the host is at line 20 for 400 ms; the GPU has work for 150 of these. */
static struct cluster *at_line_20_while_the_gpu_is_idle(void) {
  static i64 at_line_20[100 * CLUSTER_RANKS];
  for (u32 i = 0; i < 100 * CLUSTER_RANKS; i++)
    at_line_20[i] = 400 * MS;
  struct cluster_options o = healthy_gpu();
  for (u32 i = 0; i < o.ranks; i++)
    o.late_launch[i] = 400 * MS;
  struct cluster *c = cluster_new(&o);
  cluster_sample(c, at_line_20, 0, 10 * MS, 1);
  return c;
}

static void the_line_at_which_the_gpu_has_nothing_to_do(void **state) {
  (void)state;
  struct cluster *c = at_line_20_while_the_gpu_is_idle();
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *idle = finding_of(r, "EFFICIENCY.RECOVERABLE");
  assert_non_null(idle);
  assert_non_null(
      strstr(idle->evidence, "is then at me/train.py:20 (log) in 99.9 % of the samples"));
  assert_non_null(strstr(idle->action, "train.py:20"));
  cluster_end(r, c);
}

/* Where it is at line 20 it captures a graph, in each step or in the last one only. */
static void the_line_at_which_graphs_are_captured(void **state) {
  (void)state;
  for (u32 every = 0; every < 2; every++) {
    struct cluster *c = at_line_20_while_the_gpu_is_idle();
    for (u32 rank = 0; rank < c->model.n_ranks; rank++) {
      const struct call_sites *sites = c->timelines[rank].call_sites;
      struct intervals *made = &c->timelines[rank].capturing;
      u32 last = c->model.steps.n - 1;
      i64 from = every ? INT64_MIN : c->model.steps.begin[(size_t)last * c->model.n_ranks + rank];
      *made = (struct intervals){arena_array(&c->arena, sites->n_samples, sizeof(*made->at)), 0};
      for (u32 i = 0; i < sites->n_samples; i++)
        if (sites->samples[i].stack == 1 && sites->samples[i].time - 10 * MS >= from)
          intervals_append(made, sites->samples[i].time - 10 * MS, sites->samples[i].time);
    }
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *captures = finding_of(r, "KERNEL.RECAPTURE");
    assert_true((captures != NULL) == every);
    if (captures) {
      assert_non_null(strstr(captures->title, "train.py:20"));
      assert_non_null(strstr(captures->action, "train.py:20"));
    }
    cluster_end(r, c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_line_at_which_graphs_are_captured),
      cmocka_unit_test(low_mfu),
      cmocka_unit_test(precision),
      cmocka_unit_test(outside_phases),
      cmocka_unit_test(what_a_straggler_does_outside_is_its_own),
      cmocka_unit_test(other_idle_time_is_told),
      cmocka_unit_test(idle_devices_name_the_line_that_waits),
      cmocka_unit_test(recoverable),
      cmocka_unit_test(causes_come_before_what_sums_them_up),
      cmocka_unit_test(launch_bound),
      cmocka_unit_test(copy),
      cmocka_unit_test(host_sync),
      cmocka_unit_test(without_steps_the_run_is_shorter),
      cmocka_unit_test(fills),
      cmocka_unit_test(dtype_conversion),
      cmocka_unit_test(a_host_that_waits_for_its_gpu_is_not_the_limit),
      cmocka_unit_test(the_line_at_which_the_gpu_has_nothing_to_do)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
