/* SPDX-License-Identifier: MIT
 *
 * The lines of the budget sum to the wall time, MFU is computed only from given values, and devices
 * are recognised by name.
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
#include "analyses/queries.h"

static double line_s(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_budget; i++)
    if (!strcmp(budget_part_words[r->budget[i].part], name))
      return r->budget[i].seconds;
  return NAN;
}

static void lines_sum_to_the_wall(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.noise = 0.2;
  o.slow[1] = 0.3;
  o.input = 12 * MS;
  o.exposed_memcpy = 7 * MS;
  o.late_launch[2] = 150 * MS;
  for (u32 gpu = 0; gpu < 2; gpu++) {
    o.on_gpu = gpu;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    double sum = 0;
    for (u32 i = 0; i < r->n_budget; i++) {
      assert_true(r->budget[i].seconds >= 0);
      assert_true(!(r->budget[i].recoverable < 0));
      sum += r->budget[i].seconds;
    }
    assert_true(fabs(r->residual_s) < 1e-9);
    assert_true(fabs(sum - r->wall_s) < 1e-9);
    assert_true(fabs(r->wall_s - r->step_mean_ms * 48 / 1e3) < 1e-6);
    assert_true(fabs(line_s(r, "waiting for input") - 0.012 * 48) < 1e-3);
    if (gpu)
      assert_true(fabs(line_s(r, "memory copies") - 0.007 * 48) < 1e-3);
    cluster_end(r, c);
  }
}

/* On each rank F begins 30 ms after its launch, while the GPU does nothing. That is not the host's
 * launching, nor is it outside the phases. */
static void launched_work_that_begins_late_has_a_line(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  double launch_s = line_s(r, "launch and idle");
  assert_true(isnan(line_s(r, "launched, begun late")));
  results_free(r);
  for (u32 rank = 0; rank < o.ranks; rank++) {
    struct timeline *t = &c->timelines[rank];
    u32 kernels = 0, step = 0; /* F, B1 and B2 in each step; the last two compute in one stretch */
    for (u32 i = 0; i < t->n_spans; i++)
      if (t->spans[i].kind == SPAN_KERNEL && kernels++ % 3 == 0) {
        t->spans[i].start += 30 * MS;
        t->compute.at[step].start = t->spans[i].start;
        step += t->compute.at[step].end > t->spans[i].end ? 1 : 2;
      }
  }
  r = cluster_analyse(c, NULL);
  assert_true(fabs(line_s(r, "launched, begun late") - 0.030 * 48) < 1e-3);
  assert_true(fabs(line_s(r, "launch and idle") - launch_s) < 1e-3);
  cluster_end(r, c);
}

/* Without steps the path is longer than a rank's run where ranks end apart: shares are of one. */
static void savings_of_a_whole_run_have_one_base(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  double saving_s = NAN, recoverable_s = NAN;
  o.no_steps = true;
  for (u32 rank = 0; rank < o.ranks; rank++)
    o.late_launch[rank] = 150 * MS;
  struct cluster *c = cluster_new(&o);
  c->model.ranks[3].end += 8000 * MS;
  struct results *r = cluster_analyse(c, NULL);
  for (u32 i = 0; i < r->n_what_if; i++)
    if (r->what_if[i].kind == WHAT_IF_LAUNCHES)
      saving_s = r->what_if[i].saving_fraction * r->analysed_s;
  for (u32 i = 0; i < r->n_budget; i++)
    if (r->budget[i].part == BUDGET_LAUNCH_AND_IDLE)
      recoverable_s = r->budget[i].recoverable;
  assert_true(r->path_length_ms > 1.1e3 * r->wall_s);
  assert_true(recoverable_s > 0.1 * r->wall_s);
  assert_true(fabs(saving_s - recoverable_s) < 1e-6);
  cluster_end(r, c);
}

static void mfu_is_never_guessed(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct analyse_options options = no_options();
  struct results *r = cluster_analyse(c, &options);
  assert_true(isnan(r->mfu) && isnan(r->hfu) && isnan(r->flops_per_step));
  assert_non_null(strstr(r->mfu_reason, "--flops-per-step"));
  results_free(r);

  options.flops_per_step = 1e15;
  r = cluster_analyse(c, &options);
  assert_true(isnan(r->mfu)); /* the device has no name */
  assert_non_null(strstr(r->mfu_reason, "--peak-tflops"));
  results_free(r);

  for (u32 i = 0; i < o.ranks; i++)
    c->model.ranks[i].info[TSCOPE_INFO_GPU_NAME] = "NVIDIA H100 80GB HBM3";
  r = cluster_analyse(c, &options);
  assert_null(r->mfu_reason);
  assert_true(fabs(r->mfu - 1e15 / (r->step_mean_ms / 1e3 * 8 * 989e12)) < 1e-9);
  results_free(r);

  options = no_options();
  options.params = 1e9;
  options.tokens_per_step = 1e6;
  options.peak_tflops = 100;
  r = cluster_analyse(c, &options);
  assert_true(fabs(r->mfu - 6e15 / (r->step_mean_ms / 1e3 * 8 * 100e12)) < 1e-9);
  cluster_end(r, c);
}

/* A peak is the number of operations per clock of all multiprocessors, times the boost clock: both
 * are published for every card. The tensor cores of GA102 and of the Ada and Blackwell cards do
 * 1024 operations per clock and multiprocessor in bf16; those of GeForce and L40 do half as many if
 * they accumulate in FP32, and half of that in TF32. FP32 units do 256. The tolerance is 2 %,
 * because data sheets round. */
static void peaks_are_units_times_clock(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double multiprocessors, boost_ghz, bf16_per_clock;
  } cards[] = {{"NVIDIA L4", 58, 2.04, 1024},
               {"NVIDIA L40", 142, 2.49, 512},
               {"NVIDIA L40S", 142, 2.52, 1024},
               {"NVIDIA A10", 72, 1.695, 1024},
               {"NVIDIA A10G", 80, 1.71, 512},
               {"NVIDIA RTX A6000", 84, 1.80, 1024},
               {"NVIDIA GeForce RTX 3090", 82, 1.695, 512},
               {"NVIDIA GeForce RTX 4080", 76, 2.505, 512},
               {"NVIDIA GeForce RTX 4090", 128, 2.52, 512},
               {"NVIDIA GeForce RTX 5090", 170, 2.407, 512}};
  for (size_t i = 0; i < LENGTH_OF(cards); i++) {
    double per_unit = cards[i].multiprocessors * cards[i].boost_ghz / 1e3;
    double bf16 = device_peak_tflops(cards[i].name, PRECISION_FP16);
    double tf32 = device_peak_tflops(cards[i].name, PRECISION_TF32);
    double fp32 = device_peak_tflops(cards[i].name, PRECISION_FP32);
    double fp8 = device_peak_tflops(cards[i].name, PRECISION_FP8);
    assert_true(fabs(bf16 / (per_unit * cards[i].bf16_per_clock) - 1) < 0.02);
    assert_true(fabs(tf32 / (per_unit * cards[i].bf16_per_clock / 2) - 1) < 0.02);
    assert_true(fabs(fp32 / (per_unit * 256) - 1) < 0.02);
    assert_true(isnan(fp8) || fabs(fp8 / (2 * bf16) - 1) < 0.02);
  }
}

static void devices_by_whole_words(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double tflops;
  } known[] = {{"NVIDIA H200", 989},
               {"NVIDIA H20", 148},
               {"NVIDIA H100 PCIe", 756},
               {"NVIDIA H100 NVL", 835},
               {"NVIDIA H100 80GB HBM3", 989},
               {"NVIDIA A100-SXM4-80GB", 312},
               {"NVIDIA GB200", 2500},
               {"NVIDIA B200", 2250},
               {"NVIDIA L40S", 362},
               {"NVIDIA L4", 121},
               {"NVIDIA L40", 181},
               {"NVIDIA A10", 125},
               {"NVIDIA A10G", 70},
               {"NVIDIA RTX A6000", 154.8},
               {"NVIDIA GeForce RTX 3090", 71},
               {"NVIDIA GeForce RTX 4080", 97.5},
               {"NVIDIA GeForce RTX 4090", 165.2},
               {"NVIDIA GeForce RTX 5090", 209.5},
               {"Tesla T4", 65},
               {"Tesla V100-SXM2-16GB", 125},
               {"AMD Instinct MI300X", 1307},
               {"AMD Instinct MI250X", 191.5}};
  static const char *const unknown[] = {"NVIDIA RTX A1000",
                                        "Quadro T400",
                                        "B2000",
                                        "NVIDIA GeForce RTX 4090 Laptop GPU",
                                        "NVIDIA GeForce RTX 4080 SUPER",
                                        "",
                                        "NVIDIA A100-SXM4-40GB MIG 1g.5gb"};
  for (size_t i = 0; i < LENGTH_OF(known); i++)
    assert_true(device_peak_tflops(known[i].name, PRECISION_FP16) == known[i].tflops);
  for (size_t i = 0; i < LENGTH_OF(unknown); i++)
    assert_true(isnan(device_peak_tflops(unknown[i], PRECISION_FP16)));
  assert_true(isnan(device_peak_tflops(NULL, PRECISION_FP16)));
}

static void steps_without_warm_up(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_true(r->step_count == 50 && r->warmup_excluded == 2 && r->n_step_ms == 50);
  assert_true(fabs(r->step_median_ms - 311.023) < 1e-6 && r->step_cv < 1e-9);
  cluster_end(r, c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lines_sum_to_the_wall),
                                     cmocka_unit_test(launched_work_that_begins_late_has_a_line),
                                     cmocka_unit_test(savings_of_a_whole_run_have_one_base),
                                     cmocka_unit_test(mfu_is_never_guessed),
                                     cmocka_unit_test(peaks_are_units_times_clock),
                                     cmocka_unit_test(devices_by_whole_words),
                                     cmocka_unit_test(steps_without_warm_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
