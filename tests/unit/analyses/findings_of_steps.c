/* SPDX-License-Identifier: MIT
 *
 * Findings about phases, steps and hosts. For each finding: a run in which it fires, and one in
 * which it nearly fires but must not.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "model/span_call_sites.h"
#include "sampled_cluster.h"
#include "scenario.h"

static void dataloader_bound(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.input = 30 * MS;
  assert_true(fires(&s, "TIMING.DATALOADER_BOUND"));
  s.options.input = 14 * MS; /* 4.3 % */
  assert_false(fires(&s, "TIMING.DATALOADER_BOUND"));
  s = healthy_scenario();
  s.options.extra_input[5] = 50 * MS; /* of one rank alone: this is to mend, and it is named */
  assert_false(fires(&s, "TIMING.DATALOADER_BOUND"));
  assert_true(fires(&s, "DIST.STRAGGLER"));
  s = healthy_scenario();
  s.options.on_gpu = false;
  s.options.input = 30 * MS;
  assert_true(fires(&s, "TIMING.DATALOADER_BOUND"));
}

/* Phases as from PyTorch's ranges. */
static double forward_ms, backward_ms, optimizer_ms, optimizer_of_rank_1_ms;
static void name_phases(struct cluster *c) {
  static struct phase_times phases[100 * CLUSTER_RANKS];
  u32 n = c->model.steps.n * c->model.n_ranks;
  assert_true(n <= sizeof(phases) / sizeof(phases[0]));
  for (u32 i = 0; i < n; i++)
    phases[i] = (struct phase_times){.forward = (i64)(forward_ms * (double)MS),
                                     .backward = (i64)(backward_ms * (double)MS),
                                     .optimizer = (i64)(optimizer_ms * (double)MS)};
  for (u32 i = 1; i < n; i += c->model.n_ranks)
    phases[i].optimizer += (i64)(optimizer_of_rank_1_ms * (double)MS);
  c->model.phases = phases;
}

static void backward_heavy(void **state) {
  (void)state;
  struct scenario s = {.options = healthy_cpu(), .given = no_options(), .spoil = name_phases};
  forward_ms = 50;
  backward_ms = 230; /* of 310, of which 10 are exposed communication */
  assert_true(fires(&s, "TIMING.BACKWARD_HEAVY"));
  backward_ms = 190;
  assert_false(fires(&s, "TIMING.BACKWARD_HEAVY"));
  backward_ms = 230;
  s.options = healthy_gpu(); /* on a GPU the phases of the host are not those of the work */
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
  optimizer_of_rank_1_ms = 100; /* of one rank alone: it waits there */
  assert_false(fires(&s, "TIMING.OPTIMIZER_HEAVY"));
  optimizer_of_rank_1_ms = 0;
}

/* A job that does not mark its forward passes: 100 ms of a step of 310 are in no phase. Samples of
 * these are inside a call of a module, or of a framework's own step, or not. */
static u32 samples_in_modules; /* of 10; above 10: no samples */
static bool in_deepspeed;
static void do_not_mark_forward(struct cluster *c) {
  static struct call_frame frames[] = {
      {.file = "/home/me/net.py", .function = "Net.forward", .line = 5},
      {.file = "/usr/lib/python3/site-packages/torch/nn/modules/module.py",
       .function = "Module._call_impl",
       .line = 1773,
       .others = true},
      {.file = "/home/me/train.py", .function = "prepare", .line = 20}};
  static const u32 inside[] = {0, 1}, outside[] = {2};
  static struct call_stack stacks[] = {{inside, 2, 0}, {outside, 1, 0}};
  if (in_deepspeed)
    frames[1] =
        (struct call_frame){.file = "/usr/lib/python3/site-packages/deepspeed/runtime/engine.py",
                            .function = "DeepSpeedEngine.step",
                            .line = 3567,
                            .others = true};
  const struct steps *steps = &c->model.steps;
  forward_ms = 100;
  backward_ms = 210;
  optimizer_ms = 0;
  name_phases(c);
  for (u32 i = 0; i < steps->n * c->model.n_ranks; i++) {
    c->model.phases[i].other = c->model.phases[i].forward;
    c->model.phases[i].forward = NS_UNKNOWN;
  }
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    *sites = (struct call_sites){.frames = frames,
                                 .n_frames = 3,
                                 .stacks = stacks,
                                 .n_stacks = 2,
                                 .n_sites = 1,
                                 .sample_ns = 10 * MS};
    for (u32 i = 0; i < t->n_spans; i++)
      if (t->spans[i].kind == SPAN_PHASE && t->spans[i].category == TSCOPE_PHASE_FORWARD)
        t->spans[i].category = TSCOPE_PHASE_USER;
    sites->of_span = arena_array(&c->arena, t->n_spans + 1u, sizeof(u32));
    memset(sites->of_span, 0xff, t->n_spans * sizeof(u32));
    sites->samples = arena_array(&c->arena, steps->n * 10u, sizeof(*sites->samples));
    for (u32 k = 0; k < steps->n * 10u && samples_in_modules <= 10; k++)
      sites->samples[sites->n_samples++] = (struct line_sample){
          .time = steps->begin[k / 10 * c->model.n_ranks + r] + (5 + k % 10 * 10) * MS,
          .represented_ns = 10 * MS,
          .stack = k % 10 >= samples_in_modules};
    t->call_sites = sites;
  }
}

static double saved_outside(const struct results *r) {
  for (u32 i = 0; i < r->n_what_if; i++)
    if (r->what_if[i].kind == WHAT_IF_OUTSIDE)
      return r->what_if[i].saving.ms;
  return NAN;
}

static void unmarked_training_is_not_outside(void **state) {
  static const struct {
    u32 in_modules;
    double saves_ms;
    const char *title;
    bool in_deepspeed;
  } cases[] = {{0, 100, "32 % of each step is outside backward and optimizer"},
               {6, 40, "13 % of each step is outside forward, backward and optimizer"},
               {10, 0, NULL},
               {11, 100, NULL}, /* nothing tells that it is not the forward pass */
               {6, 40, "13 % of each step is outside forward, backward and optimizer", true}};
  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct scenario s = {.options = healthy_cpu(), .given = no_options()};
    struct cluster *c = cluster_new(&s.options);
    samples_in_modules = cases[i].in_modules;
    in_deepspeed = cases[i].in_deepspeed;
    do_not_mark_forward(c);
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *finding = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_true(fabs(saved_outside(r) - cases[i].saves_ms) < 2);
    assert_int_equal(finding != NULL, cases[i].title != NULL);
    if (finding)
      assert_int_equal(strncmp(finding->title, cases[i].title, strlen(cases[i].title)), 0);
    results_free(r);
    cluster_free(c);
  }
}

/* Where forward passes have no mark, what is in no phase may be one. */
static void a_gpu_idles_outside_the_phases_only_if_they_are_known(void **state) {
  (void)state;
  for (u32 marked = 0; marked < 2; marked++) {
    struct scenario s = {.options = healthy_gpu(), .given = no_options()};
    s.options.late_launch[2] = 150 * MS;
    struct cluster *c = cluster_new(&s.options);
    samples_in_modules = 11;
    in_deepspeed = false;
    do_not_mark_forward(c);
    for (u32 i = 0; marked && i < c->model.steps.n * c->model.n_ranks; i++)
      c->model.phases[i].forward = 10 * MS;
    struct results *r = cluster_analyse(c, &s.given);
    bool outside = false;
    for (u32 i = 0; i < r->n_budget; i++)
      outside |= r->budget[i].part == BUDGET_OUTSIDE_PHASES;
    assert_int_equal(outside, marked);
    results_free(r);
    cluster_free(c);
  }
}

static void jitter(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.slow_step = 200 * MS;
  assert_true(fires(&s, "TIMING.JITTER"));
  s.options.steps = 20; /* 18 are analysed */
  assert_false(fires(&s, "TIMING.JITTER"));
  s = healthy_scenario();
  s.options.slow_step = 50 * MS; /* 16 % */
  assert_false(fires(&s, "TIMING.JITTER"));
}

/* Where a scaler leaves the optimizer out, a step of the optimizer holds two backward passes: the
 * report says so, and nothing of checkpoints. */
static void a_step_of_two_passes_is_told(void **state) {
  (void)state;
  for (u32 twice = 0; twice < 2; twice++) {
    struct scenario s = healthy_scenario();
    s.options.slow_step = 300 * MS;
    struct cluster *c = cluster_new(&s.options);
    u32 n = c->model.n_ranks;
    c->model.phases = arena_array(&c->arena, c->model.steps.n * n, sizeof(*c->model.phases));
    for (u32 i = 0; i < c->model.steps.n * n; i++)
      c->model.phases[i] = (struct phase_times){
          .forward = MS, .backward = MS, .backwards = twice && i / n % 10 == 9 ? 4 : 2};
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *jitter = finding_of(r, "TIMING.JITTER");
    assert_non_null(jitter);
    assert_int_equal(twice, strstr(jitter->evidence, "5 of them hold the backward passes") != NULL);
    assert_int_equal(twice, strstr(jitter->action, "gradient scaler") != NULL);
    assert_int_equal(!twice, strstr(jitter->action, "checkpoints") != NULL);
    c->model.phases = NULL;
    cluster_end(r, c);
  }
}

/* Eight ranks on one host. Of ten seconds their threads ran for `ran` and waited for a core for
 * `waited`. */
static void share_cores(struct cluster *c, u32 cores, double ran, double waited) {
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    c->model.ranks[r].host = "node0";
    c->model.ranks[r].info[TSCOPE_INFO_CORES] = "0-3";
    c->model.ranks[r].scheduling = (struct rank_scheduling){.seconds = 10,
                                                            .cpu_s = ran,
                                                            .wait_s = waited,
                                                            .training_wait_s = waited / 2,
                                                            .stolen_s = NAN,
                                                            .threads = 9,
                                                            .cores = cores,
                                                            .quota = NAN};
  }
}
static void too_few_cores(struct cluster *c) {
  share_cores(c, 4, 5, 5);
}
static void enough_cores(struct cluster *c) {
  share_cores(c, 64, 5, 0.5); /* waited 9 % */
}
static void mostly_asleep(struct cluster *c) {
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

/* Each rank has two cores of its own, and all are in one control group that allows three cores. */
static void in_one_group(struct cluster *c) {
  static const char *const lists[] = {"0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15"};
  share_cores(c, 2, 3.5, 3);
  for (u32 r = 0; r < 8; r++) {
    c->model.ranks[r].info[TSCOPE_INFO_CORES] = lists[r];
    c->model.ranks[r].info[TSCOPE_INFO_CPU_QUOTA] = "3000 of /slice/job";
    c->model.ranks[r].scheduling.quota = 3;
  }
}
/* The same, but each rank has its own group, which allows more than its cores: the cores are the
 * limit. */
static void in_wide_groups(struct cluster *c) {
  in_one_group(c);
  for (u32 r = 0; r < 8; r++)
    c->model.ranks[r].scheduling.quota = 16;
}

/* Two hosts of one name, four ranks on each: each has the cores for its own. */
static void hosts_of_one_name_share_no_cores(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  struct cluster *c = cluster_new(&s.options);
  too_few_cores(c);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].info[TSCOPE_INFO_CLOCK] = r < 4 ? "boot a" : "boot b";
  struct results *r = cluster_analyse(c, &s.given);
  assert_non_null(
      strstr(finding_of(r, "HOST.OVERSUBSCRIBED")->evidence, "4 ranks with 36 threads"));
  results_free(r);
  cluster_free(c);
}

/* The quota of a control group counts like a number of cores that all its processes share. */
static void a_quota_counts_as_cores(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  struct cluster *c = cluster_new(&s.options);
  in_one_group(c);
  struct results *r = cluster_analyse(c, &s.given);
  const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "8 ranks share 3 cores"));
  assert_non_null(strstr(finding->evidence, "control group /slice/job allows 3"));
  results_free(r);
  cluster_free(c);
  c = cluster_new(&s.options);
  in_wide_groups(c);
  r = cluster_analyse(c, &s.given);
  finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "that could run had no core"));
  results_free(r);
  cluster_free(c);
}

/* If other threads than those of the training wait, the step may not be slower. */
static void only_other_threads_wait(struct cluster *c) {
  too_few_cores(c);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].scheduling.training_wait_s = 1;
}
static void waiting_of_other_threads_is_not_critical(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  for (u32 beside = 0; beside < 2; beside++) {
    struct cluster *c = cluster_new(&s.options);
    if (beside)
      only_other_threads_wait(c);
    else
      too_few_cores(c);
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
    assert_non_null(finding);
    assert_int_equal(finding->severity, beside ? SEVERITY_WARNING : SEVERITY_CRITICAL);
    results_free(r);
    cluster_free(c);
  }
}

static void oversubscribed(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.spoil = too_few_cores;
  assert_true(fires(&s, "HOST.OVERSUBSCRIBED"));
  s.spoil = enough_cores;
  assert_false(fires(&s, "HOST.OVERSUBSCRIBED"));
  s.spoil = mostly_asleep;
  assert_false(fires(&s, "HOST.OVERSUBSCRIBED"));
}

/* The other findings say that they may be its consequences, except those that are not about time.
 */
static void other_findings_are_its_consequences(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
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
      assert_int_equal(r->findings[0].id, FINDING_HOST_OVERSUBSCRIBED);
      assert_non_null(strstr(r->findings[0].title, "8 ranks share 4 cores"));
      assert_int_equal(r->findings[0].n_ranks, 0); /* all */
      assert_null(strstr(r->findings[0].evidence, "This may follow from"));
    }
    results_free(r);
    cluster_free(c);
  }
}

/* Threads that would soon sleep again are runnable for long where others have the cores. */
static void starved(struct cluster *c) {
  share_cores(c, 4, 0.5, 30);
}
static void who_has_few_of_its_cores_is_not_to_blame(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  struct cluster *c = cluster_new(&s.options);
  starved(c);
  struct results *r = cluster_analyse(c, &s.given);
  const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "that could run had no core"));
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  results_free(r);
  cluster_free(c);
}

/* One rank of eight has its own cores and does not fill them: another process does. */
static void another_process_has_the_cores(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  struct cluster *c = cluster_new(&s.options);
  pinned_apart(c);
  struct results *r = cluster_analyse(c, &s.given);
  const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "that could run had no core"));
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 5);
  results_free(r);
  cluster_free(c);
}

/* Another process has the cores of all ranks; rank 3 waits for so much of the time, its peers for
 * so much. */
static void wait_for_others(struct cluster *c, double own, double peers) {
  share_cores(c, 64, 1, 5);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].scheduling.wait_s = c->model.ranks[r].scheduling.training_wait_s =
        r == 3 ? own : peers;
}

/* A rank that is late throughout: what its threads waited longer than its peers' is explained by
 * that, and then a note. What all waited alike does not make one late, nor does it keep a GPU from
 * computing. */
static void what_others_explain_is_a_note(void **state) {
  (void)state;
  static const struct {
    bool on_gpu;
    double own, peers;
    bool explained;
  } cases[] = {
      {false, 90, 2, true}, {false, 3, 2.9, false}, {false, 2, 90, false}, {true, 90, 2, false}};
  for (u32 i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    struct scenario s = healthy_scenario();
    s.options = cases[i].on_gpu ? healthy_gpu() : healthy_cpu();
    s.options.slow[3] = 0.2;
    struct cluster *c = cluster_new(&s.options);
    wait_for_others(c, cases[i].own, cases[i].peers);
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_int_equal(finding_of(r, "HOST.OVERSUBSCRIBED")->severity, SEVERITY_WARNING);
    assert_non_null(straggler);
    assert_true(straggler->saving_s > 0.3 && straggler->saving_s < 80);
    assert_int_equal(straggler->severity == SEVERITY_INFO, cases[i].explained);
    assert_int_equal(strstr(straggler->evidence, "Only a note") != NULL, cases[i].explained);
    /* what explains it comes first, though its saving is not known */
    assert_int_equal(straggler > finding_of(r, "HOST.OVERSUBSCRIBED"), cases[i].explained);
    assert_int_equal(strstr(straggler->evidence, "work on the GPU") != NULL, cases[i].on_gpu);
    results_free(r);
    cluster_free(c);
  }
}

/* Where samples show a straggler at a line of its own, only what it is without a core there is
 * explained by the lack of cores, however long its threads waited for them. Nothing is said of that
 * where it is without a core but its threads waited for less than it costs. */
static void a_line_that_needs_no_core_is_no_note(void **state) {
  static i64 at_line[50 * 8];
  (void)state;
  for (u32 run = 0; run < 3; run++) {
    bool without_core = run > 0, note = run == 1;
    struct scenario s = healthy_scenario();
    s.options = healthy_cpu();
    s.options.late_forward[3] = 80 * MS;
    for (u32 step = 0; step < 50; step++)
      at_line[step * 8 + 3] = 80 * MS;
    struct cluster *c = cluster_new(&s.options);
    cluster_sample(c, at_line, 0, 10 * MS, 1);
    wait_for_others(c, run == 2 ? 3 : 90, run == 2 ? 2.9 : 2);
    const struct call_sites *sites = c->timelines[3].call_sites;
    for (u32 i = 0; i < sites->n_samples && without_core; i++)
      sites->samples[i].activity = TSCOPE_ACTIVITY_NO_CORE;
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(straggler);
    assert_int_equal(straggler->severity == SEVERITY_INFO, note);
    assert_int_equal(strstr(straggler->evidence, "Only a note") != NULL, note);
    assert_int_equal(strstr(straggler->evidence, "needed none, for 100 %") != NULL, !without_core);
    cluster_end(r, c);
  }
}

/* The same of what a rank does alone in every tenth step. */
static void work_that_needs_no_core_is_no_note(void **state) {
  static i64 late[50 * 8];
  (void)state;
  for (u32 without_core = 0; without_core < 2; without_core++) {
    struct scenario s = healthy_scenario();
    s.options = healthy_cpu();
    for (u32 step = 9; step < 50; step += 10)
      late[step * s.options.ranks + 3] = 400 * MS;
    s.options.late_input = late;
    struct cluster *c = cluster_new(&s.options);
    cluster_sample(c, late, 0, 10 * MS, 1);
    wait_for_others(c, 90, 2);
    const struct call_sites *sites = c->timelines[3].call_sites;
    for (u32 i = 0; i < sites->n_samples && without_core; i++)
      sites->samples[i].activity = TSCOPE_ACTIVITY_NO_CORE;
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *work = finding_of(r, "TIMING.JITTER");
    assert_non_null(work);
    assert_non_null(strstr(work->title, "train.py:20 of rank 3"));
    assert_int_equal(work->severity == SEVERITY_INFO, without_core);
    cluster_end(r, c);
  }
}

/* The same of a rank since which the run is slower. */
static void a_later_line_that_needs_no_core_is_no_note(void **state) {
  static i64 late[50 * 8];
  (void)state;
  for (u32 without_core = 0; without_core < 2; without_core++) {
    struct scenario s = healthy_scenario();
    s.options = healthy_cpu();
    for (u32 step = 20; step < 50; step++)
      late[step * s.options.ranks + 3] = 80 * MS;
    s.options.late_backward = late;
    struct cluster *c = cluster_new(&s.options);
    cluster_sample(c, late, 0, 10 * MS, 1);
    wait_for_others(c, 90, 2);
    const struct call_sites *sites = c->timelines[3].call_sites;
    for (u32 i = 0; i < sites->n_samples && without_core; i++)
      sites->samples[i].activity = TSCOPE_ACTIVITY_NO_CORE;
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *slower = finding_of(r, "DIST.FAIL_SLOW");
    assert_non_null(slower);
    assert_int_equal(slower->n_ranks, 1);
    assert_int_equal(slower->severity == SEVERITY_INFO, without_core);
    assert_int_equal(strstr(slower->evidence, "needed none, for 100 %") != NULL, !without_core);
    cluster_end(r, c);
  }
}

/* What it waited longer need not be all that it costs: both are known only roughly. */
static void most_of_a_saving_is_explained(void **state) {
  (void)state;
  double saving = 0;
  for (u32 i = 0; i < 3; i++) {
    struct scenario s = healthy_scenario();
    s.options = healthy_cpu();
    s.options.slow[3] = 0.2;
    struct cluster *c = cluster_new(&s.options);
    wait_for_others(c, 4 + (i == 1 ? 0.85 : 0.65) * saving, 4);
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(straggler);
    assert_int_equal(straggler->severity == SEVERITY_INFO, i == 1);
    saving = straggler->saving_s;
    results_free(r);
    cluster_free(c);
  }
}

/* A rank waited for cores while the program was loaded, or in the steps that are analysed. */
static void only_waits_in_the_steps_explain_them(void **state) {
  (void)state;
  for (u32 in_steps = 0; in_steps < 2; in_steps++) {
    struct scenario s = healthy_scenario();
    s.options = healthy_cpu();
    s.options.slow[3] = 0.2;
    struct cluster *c = cluster_new(&s.options);
    wait_for_others(c, 90, 2);
    const struct steps *steps = &c->model.steps;
    const u64 before = in_steps ? 0 : 90000000000u;
    const struct rank_look looks[] = {
        {steps->begin[0] - 1000000000, 0, 0},
        {steps->begin[0], before, before},
        {steps->end[(size_t)steps->n * c->model.n_ranks - 1], 90000000000u, 90000000000u}};
    c->model.ranks[3].looks = looks;
    c->model.ranks[3].n_looks = 3;
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(straggler);
    assert_int_equal(straggler->severity == SEVERITY_INFO, in_steps);
    results_free(r);
    cluster_free(c);
  }
}

/* A rank that becomes slow: its own waits may explain it, those of its peers do not. */
static void waits_of_peers_make_no_rank_slow(void **state) {
  (void)state;
  for (u32 own = 0; own < 2; own++) {
    struct scenario s = healthy_scenario();
    s.options = healthy_cpu();
    s.options.slow[3] = 0.5;
    s.options.slow_from = s.options.steps / 2;
    struct cluster *c = cluster_new(&s.options);
    wait_for_others(c, own ? 90 : 0, own ? 1 : 90);
    struct results *r = cluster_analyse(c, &s.given);
    const struct finding *slower = finding_of(r, "DIST.FAIL_SLOW");
    assert_non_null(slower);
    assert_int_equal(slower->n_ranks, 1);
    assert_int_equal(slower->severity == SEVERITY_INFO, own);
    results_free(r);
    cluster_free(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dataloader_bound),
      cmocka_unit_test(backward_heavy),
      cmocka_unit_test(optimizer_heavy),
      cmocka_unit_test(unmarked_training_is_not_outside),
      cmocka_unit_test(a_gpu_idles_outside_the_phases_only_if_they_are_known),
      cmocka_unit_test(jitter),
      cmocka_unit_test(a_step_of_two_passes_is_told),
      cmocka_unit_test(oversubscribed),
      cmocka_unit_test(a_quota_counts_as_cores),
      cmocka_unit_test(hosts_of_one_name_share_no_cores),
      cmocka_unit_test(waiting_of_other_threads_is_not_critical),
      cmocka_unit_test(other_findings_are_its_consequences),
      cmocka_unit_test(who_has_few_of_its_cores_is_not_to_blame),
      cmocka_unit_test(what_others_explain_is_a_note),
      cmocka_unit_test(a_line_that_needs_no_core_is_no_note),
      cmocka_unit_test(work_that_needs_no_core_is_no_note),
      cmocka_unit_test(a_later_line_that_needs_no_core_is_no_note),
      cmocka_unit_test(most_of_a_saving_is_explained),
      cmocka_unit_test(only_waits_in_the_steps_explain_them),
      cmocka_unit_test(waits_of_peers_make_no_rank_slow),
      cmocka_unit_test(another_process_has_the_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
