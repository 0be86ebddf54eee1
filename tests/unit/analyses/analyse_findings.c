/* SPDX-License-Identifier: MIT
 *
 * Each finding: a run in which it fires and one in which it nearly does, and must not. And
 * docs/findings.md against findings.def.
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
#include "analyses/findings/findings.h"
#include "diff/diff_findings.def"
#include "model/products.h"

struct scenario {
  struct cluster_options options;
  struct analyse_options given;
  void (*spoil)(struct cluster *); /* NULL, or changes the model before it is analysed */
};

static struct scenario well(void) {
  return (struct scenario){.options = healthy_gpu(), .given = no_options()};
}

static bool fires(const struct scenario *s, const char *id) {
  struct cluster *c = cluster_new(&s->options);
  if (s->spoil)
    s->spoil(c);
  struct results *r = cluster_analyse(c, &s->given);
  const struct finding *finding = finding_of(r, id);
  if (finding) {
    assert_true(strlen(finding->title) > 0 && strlen(finding->action) > 0);
    assert_non_null(strpbrk(finding->evidence, "0123456789"));
    assert_null(strstr(finding->evidence, "nan"));
    assert_true(isnan(finding->worth_s) || finding->worth_s >= 0);
  }
  for (u32 i = 1; i < r->n_findings; i++)
    assert_false(r->findings[i].worth_s > r->findings[i - 1].worth_s);
  bool found = finding != NULL;
  results_free(r);
  cluster_free(c);
  return found;
}

static void healthy_run_has_none(void **state) {
  (void)state;
  struct scenario s = well();
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  assert_int_equal(r->n_findings, 0);
  results_free(r);
  cluster_free(c);
}

static void straggler(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.slow[3] = 0.2;
  assert_true(fires(&s, "DIST.STRAGGLER"));
  s.options.slow[3] = 0.03; /* 3 % of the step */
  assert_false(fires(&s, "DIST.STRAGGLER"));
}

static void load_imbalance(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.noise = 0.3;
  assert_true(fires(&s, "DIST.LOAD_IMBALANCE"));
  assert_false(fires(&s, "DIST.STRAGGLER"));
  s.options.noise = 0.03;
  assert_false(fires(&s, "DIST.LOAD_IMBALANCE"));
  s.options.noise = 0;
  s.options.slow[2] = 0.5; /* one rank explains it all */
  assert_false(fires(&s, "DIST.LOAD_IMBALANCE"));
}

/* Two steps are too few to call a rank a straggler; that it was late is said all the same. */
static void late_in_few_steps(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.slow[3] = 0.2;
  s.options.steps = 4;
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  assert_null(finding_of(r, "DIST.STRAGGLER"));
  const struct finding *finding = finding_of(r, "DIST.LOAD_IMBALANCE");
  assert_non_null(finding);
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 3);
  assert_non_null(strstr(finding->evidence, "chance"));
  results_free(r);
  cluster_free(c);
}

static void comm_bound(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.transfer = 200 * MS; /* 400 against 300 of compute */
  assert_true(fires(&s, "DIST.COMM_BOUND"));
  assert_false(fires(&s, "DIST.EXPOSED_COMM"));
  s.options.transfer = 140 * MS; /* 280 */
  assert_false(fires(&s, "DIST.COMM_BOUND"));
}

static void exposed_comm(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.transfer = 40 * MS;
  s.options.no_overlap = true;
  assert_true(fires(&s, "DIST.EXPOSED_COMM"));
  s = well();
  s.options.transfer = 14 * MS; /* 4.5 % exposed */
  assert_false(fires(&s, "DIST.EXPOSED_COMM"));
}

/* Turns each all-reduce of a step into one of its own communicator, the k-th of four steps with a
 * transfer of its own. */
static double slow_link_ratio;
static struct comm four[4];
static void spread_over_communicators(struct cluster *c) {
  struct model *m = &c->model;
  for (u32 i = 0; i < 4; i++) {
    four[i] = m->comms[0];
    four[i].identity = i + 1;
    four[i].name = (const char *const[]){"group a", "group b", "group c", "group d"}[i];
  }
  m->comms = four;
  m->n_comms = 4;
  for (u32 i = 0; i < m->n_collectives; i++) {
    struct collective *collective = &m->collectives[i];
    collective->comm = i % 2 ? (i / 2) % 4 : 0;
    collective->bytes = i % 2 ? 8000000 : 1;
    if (i % 2 == 0 || collective->comm != 2)
      continue;
    for (u32 k = 0; k < collective->n_arrivals; k++)
      m->arrivals[collective->first_arrival + k].end +=
          (i64)((slow_link_ratio - 1) * (double)c->options.transfer);
  }
}

static void slow_link(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.transfer = 80 * MS;
  s.spoil = spread_over_communicators;
  slow_link_ratio = 2;
  assert_true(fires(&s, "DIST.SLOW_LINK"));
  slow_link_ratio = 1.4;
  assert_false(fires(&s, "DIST.SLOW_LINK"));
}

static void dataloader_bound(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.input = 30 * MS;
  assert_true(fires(&s, "TIMING.DATALOADER_BOUND"));
  s.options.input = 14 * MS; /* 4.3 % */
  assert_false(fires(&s, "TIMING.DATALOADER_BOUND"));
  s = well();
  s.options.extra_input[5] = 50 * MS; /* one rank's stall stalls all */
  assert_true(fires(&s, "TIMING.DATALOADER_BOUND"));
  s = well();
  s.options.on_gpu = false;
  s.options.input = 30 * MS;
  assert_true(fires(&s, "TIMING.DATALOADER_BOUND"));
}

static void fail_slow(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.slow[6] = 0.2;
  s.options.slow_from = 30;
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
  assert_non_null(finding);
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 6);
  assert_non_null(strstr(finding->title, "step 30"));
  assert_non_null(strstr(finding->title, "the median step"));
  assert_null(strstr(finding->title, "every step"));
  results_free(r);
  cluster_free(c);
  s.options.slow[6] = 0.08; /* the step grows by 7.7 % */
  assert_false(fires(&s, "DIST.FAIL_SLOW"));
  s.options.slow[6] = 0.2;
  s.options.slow_from = 0; /* slow all along: a straggler, but nothing changed */
  assert_false(fires(&s, "DIST.FAIL_SLOW"));
  s.options.slow_from = 47; /* three steps are an event */
  assert_false(fires(&s, "DIST.FAIL_SLOW"));
}

/* All ranks alike, or none by what it computes: the change is told, and nobody is named. */
static void fail_slow_of_everybody(void **state) {
  (void)state;
  struct scenario s = well();
  for (u32 i = 0; i < s.options.ranks; i++)
    s.options.slow[i] = 0.3;
  s.options.slow_from = 25;
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
  assert_non_null(finding);
  assert_int_equal(finding->n_ranks, 0);
  assert_non_null(strstr(finding->evidence, "all ranks"));
  results_free(r);
  cluster_free(c);
}

/* Phases as PyTorch's ranges would tell them. */
static double forward_ms, backward_ms, optimizer_ms;
static void name_phases(struct cluster *c) {
  static struct phase_times phases[100 * CLUSTER_RANKS];
  u32 n = c->model.steps.n * c->model.n_ranks;
  assert_true(n <= sizeof(phases) / sizeof(phases[0]));
  for (u32 i = 0; i < n; i++)
    phases[i] = (struct phase_times){.forward = (i64)(forward_ms * (double)MS),
                                     .backward = (i64)(backward_ms * (double)MS),
                                     .optimizer = (i64)(optimizer_ms * (double)MS)};
  c->model.phases = phases;
}

static void backward_heavy(void **state) {
  (void)state;
  struct scenario s = {.options = healthy_cpu(), .given = no_options(), .spoil = name_phases};
  forward_ms = 50;
  backward_ms = 230; /* of 310, of which 10 are communication that nothing hides */
  assert_true(fires(&s, "TIMING.BACKWARD_HEAVY"));
  backward_ms = 190;
  assert_false(fires(&s, "TIMING.BACKWARD_HEAVY"));
  backward_ms = 230;
  s.options = healthy_gpu(); /* there the host's phases are not the work's */
  assert_false(fires(&s, "TIMING.BACKWARD_HEAVY"));
}

static void optimizer_heavy(void **state) {
  (void)state;
  struct scenario s = {.options = healthy_cpu(), .given = no_options(), .spoil = name_phases};
  forward_ms = backward_ms = 100;
  optimizer_ms = 70; /* of 310 */
  assert_true(fires(&s, "TIMING.OPTIMIZER_HEAVY"));
  optimizer_ms = 55;
  assert_false(fires(&s, "TIMING.OPTIMIZER_HEAVY"));
}

static void jitter(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.slow_step = 200 * MS;
  assert_true(fires(&s, "TIMING.JITTER"));
  s.options.steps = 20; /* 18 looked at */
  assert_false(fires(&s, "TIMING.JITTER"));
  s = well();
  s.options.slow_step = 50 * MS; /* 16 % */
  assert_false(fires(&s, "TIMING.JITTER"));
}

static void low_mfu(void **state) {
  (void)state;
  struct scenario s = well();
  s.given.peak_tflops = 100; /* 8 x 100 TFLOP/s x 0.311 s = 249 TFLOP */
  s.given.flops_per_step = 60e12;
  assert_true(fires(&s, "EFFICIENCY.LOW_MFU"));
  s.given.flops_per_step = 80e12;
  assert_false(fires(&s, "EFFICIENCY.LOW_MFU"));
  s.given = no_options();
  assert_false(fires(&s, "EFFICIENCY.LOW_MFU"));
}

/* All kernels of 300 ms a step are products on an H100, which can do 67 TFLOP/s in fp32. */
static void make_products(struct cluster *c, u8 precision, double share_of_peak) {
  struct product_shape *shape = arena_alloc(&c->arena, sizeof(*shape));
  struct products *products = arena_alloc(&c->arena, sizeof(*products));
  shape->m = shape->n = shape->k = 16384;
  shape->precision = precision;
  *products = (struct products){.shapes = shape, .n_shapes = 1};
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    c->model.ranks[r].info[TSCOPE_INFO_GPU_NAME] = "NVIDIA H100 80GB HBM3";
    t->arithmetic = arena_array(&c->arena, t->n_spans, sizeof(*t->arithmetic));
    t->products = products;
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
  make_products(c, PRECISION_FP32, 0.5);
}
static void waiting_for_memory(struct cluster *c) {
  make_products(c, PRECISION_FP32, 0.05); /* of 311 ms 300 x 0.05 x (1 - 67 / 494.5) = 13 */
}
static void in_tf32(struct cluster *c) {
  make_products(c, PRECISION_TF32, 0.5);
}

static void precision(void **state) {
  (void)state;
  struct scenario s = well();
  s.spoil = at_half_the_peak_of_fp32;
  assert_true(fires(&s, "EFFICIENCY.PRECISION"));
  s.spoil = waiting_for_memory;
  assert_false(fires(&s, "EFFICIENCY.PRECISION"));
  s.spoil = in_tf32;
  assert_false(fires(&s, "EFFICIENCY.PRECISION"));
}

/* Eight ranks of one host, whose threads had `ran` seconds of ten and waited `waited` for a core.
 */
static void share_cores(struct cluster *c, u32 cores, double ran, double waited) {
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    c->model.ranks[r].host = "node0";
    c->model.ranks[r].info[TSCOPE_INFO_CORES] = "0-3";
    c->model.ranks[r].scheduling = (struct rank_scheduling){.seconds = 10,
                                                            .cpu_s = ran,
                                                            .wait_s = waited,
                                                            .main_wait_s = waited / 2,
                                                            .stolen_s = NAN,
                                                            .threads = 9,
                                                            .cores = cores};
  }
}
static void too_few_cores(struct cluster *c) {
  share_cores(c, 4, 5, 5);
}
static void cores_enough(struct cluster *c) {
  share_cores(c, 64, 5, 0.5); /* waited 9 % */
}
static void asleep_mostly(struct cluster *c) {
  share_cores(c, 4, 0.5, 0.4); /* 4 % of the wall */
}
static void pinned_apart(struct cluster *c) {
  static const char *const lists[] = {"0-7",   "8-15",  "16-23", "24-31",
                                      "32-39", "40-47", "48-55", "x"};
  share_cores(c, 8, 5, 0.1);
  for (u32 r = 0; r < 8; r++)
    c->model.ranks[r].info[TSCOPE_INFO_CORES] = lists[r];
  c->model.ranks[5].scheduling.wait_s = 5;
}

static void oversubscribed(void **state) {
  (void)state;
  struct scenario s = well();
  s.spoil = too_few_cores;
  assert_true(fires(&s, "HOST.OVERSUBSCRIBED"));
  s.spoil = cores_enough;
  assert_false(fires(&s, "HOST.OVERSUBSCRIBED"));
  s.spoil = asleep_mostly;
  assert_false(fires(&s, "HOST.OVERSUBSCRIBED"));
}

/* The others say that they may follow from it; those that are not about time do not. */
static void others_stand_under_it(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.slow[3] = 0.2;
  for (u32 shared = 0; shared < 2; shared++) {
    struct cluster *c = cluster_new(&s.options);
    if (shared)
      too_few_cores(c);
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(straggler);
    assert_int_equal(strstr(straggler->evidence, "HOST.OVERSUBSCRIBED") != NULL, shared);
    if (shared) {
      assert_string_equal(r->findings[0].id, "HOST.OVERSUBSCRIBED");
      assert_non_null(strstr(r->findings[0].title, "8 ranks share 4 cores"));
      assert_int_equal(r->findings[0].n_ranks, 0); /* all */
      assert_null(strstr(r->findings[0].evidence, "Stands under"));
    }
    results_free(r);
    cluster_free(c);
  }
}

/* One rank of eight, on cores of its own, which it does not fill: something else does. */
static void something_else_has_the_cores(void **state) {
  (void)state;
  struct scenario s = well();
  struct cluster *c = cluster_new(&s.options);
  pinned_apart(c);
  struct results *r = cluster_analyse(c, &s.given);
  const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "Something else"));
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 5);
  results_free(r);
  cluster_free(c);
}

static void recoverable(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.exposed_copy = 30 * MS;
  assert_true(fires(&s, "EFFICIENCY.RECOVERABLE"));
  s.options.exposed_copy = 14 * MS;
  assert_false(fires(&s, "EFFICIENCY.RECOVERABLE"));
  s = well();
  for (u32 i = 0; i < s.options.ranks; i++)
    s.options.late_launch[i] = 140 * MS; /* the device idles 40 of them */
  assert_true(fires(&s, "EFFICIENCY.RECOVERABLE"));
}

static void miss_a_rank(struct cluster *c) {
  c->model.world_size++;
}
static void kill_a_rank(struct cluster *c) {
  c->model.ranks[3].closed = false;
}
static void lose_records(struct cluster *c) {
  c->model.ranks[1].lost[TSCOPE_LOSS_DISK] = 10;
}

static void partial_data(void **state) {
  (void)state;
  void (*const spoils[])(struct cluster *) = {miss_a_rank, kill_a_rank, lose_records};
  for (size_t i = 0; i < 3; i++) {
    struct scenario s = well();
    s.spoil = spoils[i];
    assert_true(fires(&s, "DATA.PARTIAL"));
  }
  struct scenario s = well();
  s.options.unaligned = true;
  assert_true(fires(&s, "DATA.PARTIAL"));
  s = well();
  s.options.on_gpu = false; /* a CPU job lacks nothing for having no GPU times */
  assert_false(fires(&s, "DATA.PARTIAL"));
}

static void missing_times_are_said_loudly(void **state) {
  (void)state;
  struct scenario s = well();
  s.options.no_gpu_times = true;
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  bool loud = false;
  for (u32 i = 0; i < r->n_findings; i++)
    loud |= !strcmp(r->findings[i].id, "DATA.PARTIAL") &&
            strstr(r->findings[i].title, "MISSING") != NULL &&
            r->findings[i].severity == SEVERITY_CRITICAL;
  assert_true(loud);
  loud = false;
  for (u32 i = 0; i < r->n_coverage; i++)
    loud |= r->coverage[i].note && strstr(r->coverage[i].note, "NOT KNOWN") != NULL;
  assert_true(loud);
  results_free(r);
  cluster_free(c);
}

/* The rules about kernels read sums that other tests vouch for; here they are set by hand. */
static bool fires_on(int (*rule)(struct findings *), struct results *given) {
  struct scenario s = well();
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  u32 before = r->n_findings;
  struct analysis a = {.model = &c->model, .results = given, .arena = r->internal};
  struct findings f = {.a = &a, .r = given, .id = "", .steps = 1, .step_ms = 100};
  given->n_findings = 0;
  given->what_if_reason = "none";
  assert_int_equal(rule(&f), 0);
  bool fired = given->n_findings == 1;
  if (fired)
    assert_non_null(strpbrk(given->findings[0].evidence, "0123456789"));
  assert_int_equal(r->n_findings, before);
  results_free(r);
  cluster_free(c);
  return fired;
}

static void launch_bound(void **state) {
  (void)state;
  struct results r = {.gpu_timeline = {.host_bound_ms = 12, .total_ms = 100},
                      .launch = {.kernels = 1000, .short_kernels = 600}};
  assert_true(fires_on(rule_launch_bound, &r));
  r.gpu_timeline.host_bound_ms = 9;
  assert_false(fires_on(rule_launch_bound, &r));
  r.gpu_timeline.host_bound_ms = 30;
  r.launch.short_kernels = 400; /* long kernels: the host is late for another reason */
  assert_false(fires_on(rule_launch_bound, &r));
  r.gpu_timeline.host_bound_ms = NAN;
  r.launch.short_kernels = 1000;
  assert_false(fires_on(rule_launch_bound, &r));
}

/* Copies and kernels that only copy: 5 % of the GPUs' own work, NCCL's left out. */
static void copy(void **state) {
  (void)state;
  struct kernel_category_result categories[] = {
      {.category = "GEMM", .count = 100, .sum_ms = 78},
      {.category = "memcpy", .count = 40, .sum_ms = 12},
      {.category = "elementwise", .count = 10, .sum_ms = 10},
      {.category = "NCCL", .count = 10, .sum_ms = 900}};
  struct kernel_result kernels[] = {
      {.name = "void at::native::elementwise_kernel<direct_copy_kernel_cuda>(int)",
       .category = "elementwise",
       .count = 10,
       .sum_ms = 10},
      {.name = "gemm", .category = "GEMM", .count = 100, .sum_ms = 78}};
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
  kernels[0].category = "dtype conversion"; /* which has a finding of its own */
  assert_false(fires_on(rule_copy, &r));
}

/* Two whose worths are within each other's uncertainty: the first is told as not stable. */
static void a_close_second_is_told(void **state) {
  (void)state;
  for (u32 close = 0; close < 2; close++) {
    struct scenario s = well();
    s.options.slow[3] = 0.4;
    s.options.exposed_copy = close ? 110 * MS : 30 * MS;
    struct cluster *c = cluster_new(&s.options);
    struct results *r = cluster_analyse(c, &s.given);
    assert_true(r->n_findings >= 2);
    double ratio = r->findings[1].worth_s / r->findings[0].worth_s;
    assert_int_equal(r->findings[0].close_second != NULL, ratio >= 0.9);
    if (r->findings[0].close_second)
      assert_non_null(strstr(r->findings[0].close_second, r->findings[1].id));
    assert_null(r->findings[1].close_second);
    print_message("%s %.2f s, %s %.2f s\n", r->findings[0].id, r->findings[0].worth_s,
                  r->findings[1].id, r->findings[1].worth_s);
    results_free(r);
    cluster_free(c);
  }
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
  line.idle_ms = 4; /* the GPU has enough to do: the wait costs little */
  assert_false(fires_on(rule_host_sync, &r));
  line.idle_ms = NAN; /* what the GPU did is not known */
  assert_false(fires_on(rule_host_sync, &r));
}

static void fills(void **state) {
  (void)state;
  struct kernel_category_result categories[] = {
      {"NCCL", 10, 900, 0.9}, {"GEMM", 10, 94, 0.094}, {"memset", 50, 6, 0.006}};
  struct results r = {.kernel_categories = categories,
                      .n_kernel_categories = 3,
                      .launch = {.fill_count = NAN, .fill_ms = NAN}};
  assert_true(fires_on(rule_fill, &r)); /* of 100 ms that are not communication */
  categories[2].sum_ms = 4;
  assert_false(fires_on(rule_fill, &r));
  struct kernel_result kernel = {.name = "vectorized<FillFunctor<float>>", .count = 5, .sum_ms = 2};
  r.kernels = &kernel;
  r.n_kernels = 1;
  assert_true(fires_on(rule_fill, &r));
}

static void dtype_conversion(void **state) {
  (void)state;
  struct kernel_category_result categories[] = {{"GEMM", 10, 94, 0.94},
                                                {"dtype conversion", 50, 6, 0.06}};
  struct results r = {.kernel_categories = categories, .n_kernel_categories = 2};
  assert_true(fires_on(rule_dtype_conversion, &r));
  categories[1].sum_ms = 4;
  assert_false(fires_on(rule_dtype_conversion, &r));
}

static void set_version(struct cluster *c) {
  for (u32 i = 0; i < c->model.n_ranks; i++)
    c->model.ranks[i].info[TSCOPE_INFO_TORCH] = "2.11.0";
}
static void set_versions(struct cluster *c) {
  set_version(c);
  c->model.ranks[4].info[TSCOPE_INFO_TORCH] = "2.10.1";
}

static void drift(void **state) {
  (void)state;
  struct scenario s = well();
  s.spoil = set_versions;
  assert_true(fires(&s, "REPRO.DRIFT"));
  s.spoil = set_version; /* all alike; and nobody tells the others */
  assert_false(fires(&s, "REPRO.DRIFT"));
}

/* Each id has a section that gives its cause, evidence and fix, with the table's own words. */
static void document_agrees_with_table(void **state) {
  (void)state;
  static const char *const rows[][3] = {
#define F(id, rule, cause, fix) {id, cause, fix},
      TSCOPE_FINDINGS(F) TSCOPE_DIFF_FINDINGS(F)
#undef F
  };
  const char *path = getenv("FINDINGS_MD");
  assert_non_null(path);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  static char text[1 << 16];
  size_t length = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[length] = 0;
  for (char *at = text; *at; at++) /* words may be wrapped; headings stand between empty lines */
    if (*at == '\n' && at[1] != '\n' && at[1] != '#' && at > text && at[-1] != '\n')
      *at = ' ';
  u32 sections = 0;
  for (const char *at = text; (at = strstr(at, "\n## ")); at++)
    sections++;
  assert_int_equal(sections, sizeof(rows) / sizeof(rows[0]));
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char heading[64];
    snprintf(heading, sizeof(heading), "\n## %s\n", rows[i][0]);
    char *section = strstr(text, heading);
    if (!section)
      fail_msg("docs/findings.md has no section '## %s'", rows[i][0]);
    char *next = strstr(section + 1, "\n## ");
    char end = 0;
    if (next) {
      end = *next;
      *next = 0;
    }
    for (u32 k = 1; k < 3; k++)
      if (!strstr(section, rows[i][k]))
        fail_msg("section %s lacks the table's words: %s", rows[i][0], rows[i][k]);
    assert_non_null(strstr(section, "**Cause.**"));
    assert_non_null(strstr(section, "**Evidence.**"));
    assert_non_null(strstr(section, "**Fix.**"));
    if (next)
      *next = end;
  }
}

static void ends(struct cluster *c, i32 status_of_2, u32 signal_of_others) {
  i64 over = 0;
  for (u32 i = 0; i < c->model.n_ranks; i++)
    over = c->model.ranks[i].end > over ? c->model.ranks[i].end : over;
  for (u32 i = 0; i < c->model.n_ranks; i++) {
    struct rank_end *end = &c->model.ranks[i].ending;
    *end = (struct rank_end){.told = true,
                             .alive = over,
                             .end = over,
                             .reaped = NS_UNKNOWN,
                             .exception_at = NS_UNKNOWN,
                             .failed_at = NS_UNKNOWN,
                             .kind = TSCOPE_END_EXIT};
    if (i == 2)
      end->status = status_of_2;
    if (i == 2 || !signal_of_others)
      continue;
    end->kind = TSCOPE_END_UNSEEN;
    end->end = NS_UNKNOWN;
    end->signal = signal_of_others;
    end->reaped = over + 200 * MS;
    end->alive = over + 190 * MS;
  }
}
static void end_early(struct cluster *c) {
  ends(c, 3, 15);
}
static void end_in_order(struct cluster *c) {
  ends(c, 0, 0);
}
static void end_alike(struct cluster *c) {
  ends(c, 0, 0);
  for (u32 i = 0; i < c->model.n_ranks; i++) { /* nobody saw: it may still be running */
    c->model.ranks[i].ending.kind = TSCOPE_END_UNSEEN;
    c->model.ranks[i].ending.end = NS_UNKNOWN;
  }
}

static void run_ended_early(void **state) {
  (void)state;
  struct scenario s = well();
  s.spoil = end_early;
  assert_true(fires(&s, "RUN.ENDED_EARLY"));
  s.spoil = end_in_order;
  assert_false(fires(&s, "RUN.ENDED_EARLY"));
  s.spoil = end_alike;
  assert_false(fires(&s, "RUN.ENDED_EARLY"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(healthy_run_has_none),
                                     cmocka_unit_test(run_ended_early),
                                     cmocka_unit_test(straggler),
                                     cmocka_unit_test(load_imbalance),
                                     cmocka_unit_test(late_in_few_steps),
                                     cmocka_unit_test(comm_bound),
                                     cmocka_unit_test(exposed_comm),
                                     cmocka_unit_test(slow_link),
                                     cmocka_unit_test(dataloader_bound),
                                     cmocka_unit_test(fail_slow),
                                     cmocka_unit_test(fail_slow_of_everybody),
                                     cmocka_unit_test(backward_heavy),
                                     cmocka_unit_test(optimizer_heavy),
                                     cmocka_unit_test(jitter),
                                     cmocka_unit_test(low_mfu),
                                     cmocka_unit_test(precision),
                                     cmocka_unit_test(copy),
                                     cmocka_unit_test(a_close_second_is_told),
                                     cmocka_unit_test(oversubscribed),
                                     cmocka_unit_test(others_stand_under_it),
                                     cmocka_unit_test(something_else_has_the_cores),
                                     cmocka_unit_test(recoverable),
                                     cmocka_unit_test(launch_bound),
                                     cmocka_unit_test(host_sync),
                                     cmocka_unit_test(fills),
                                     cmocka_unit_test(dtype_conversion),
                                     cmocka_unit_test(drift),
                                     cmocka_unit_test(partial_data),
                                     cmocka_unit_test(missing_times_are_said_loudly),
                                     cmocka_unit_test(document_agrees_with_table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
