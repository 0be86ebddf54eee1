/* SPDX-License-Identifier: MIT
 *
 * Findings about cores that a host's threads lack, and what that explains of other findings. For
 * each: a run in which it is so, and one in which it is nearly so.
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
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  too_few_cores(c);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].info[TSCOPE_INFO_CLOCK] = r < 4 ? "boot a" : "boot b";
  struct results *r = cluster_analyse(c, NULL);
  assert_non_null(
      strstr(finding_of(r, "HOST.OVERSUBSCRIBED")->evidence, "4 ranks with 36 threads"));
  cluster_end(r, c);
}

/* The quota of a control group counts like a number of cores that all its processes share. */
static void a_quota_counts_as_cores(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  in_one_group(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "8 ranks share 3 cores"));
  assert_non_null(strstr(finding->evidence, "control group /slice/job allows 3"));
  cluster_end(r, c);
  c = cluster_new(&o);
  in_wide_groups(c);
  r = cluster_analyse(c, NULL);
  finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "that could run had no core"));
  cluster_end(r, c);
}

/* If other threads than those of the training wait, the step may not be slower. */
static void only_other_threads_wait(struct cluster *c) {
  too_few_cores(c);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].scheduling.training_wait_s = 1;
}
static void waiting_of_other_threads_is_not_critical(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  for (u32 beside = 0; beside < 2; beside++) {
    struct cluster *c = cluster_new(&o);
    if (beside)
      only_other_threads_wait(c);
    else
      too_few_cores(c);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
    assert_non_null(finding);
    assert_int_equal(finding->severity, beside ? SEVERITY_WARNING : SEVERITY_CRITICAL);
    cluster_end(r, c);
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
  struct cluster_options o = healthy_gpu();
  o.slow[3] = 0.2;
  for (u32 shared = 0; shared < 2; shared++) {
    struct cluster *c = cluster_new(&o);
    if (shared)
      too_few_cores(c);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(straggler);
    assert_int_equal(strstr(straggler->evidence, "HOST.OVERSUBSCRIBED") != NULL, shared);
    if (shared) {
      assert_int_equal(r->findings[0].id, FINDING_HOST_OVERSUBSCRIBED);
      assert_non_null(strstr(r->findings[0].title, "8 ranks share 4 cores"));
      assert_int_equal(r->findings[0].n_ranks, 0); /* all */
      assert_null(strstr(r->findings[0].evidence, "This may follow from"));
    }
    cluster_end(r, c);
  }
}

/* Threads that would soon sleep again are runnable for long where others have the cores. */
static void starved(struct cluster *c) {
  share_cores(c, 4, 0.5, 30);
}
static void who_has_few_of_its_cores_is_not_to_blame(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  starved(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "that could run had no core"));
  assert_int_equal(finding->severity, SEVERITY_WARNING);
  cluster_end(r, c);
}

/* One rank of eight has its own cores and does not fill them: another process does. */
static void another_process_has_the_cores(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  pinned_apart(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *finding = finding_of(r, "HOST.OVERSUBSCRIBED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "that could run had no core"));
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 5);
  cluster_end(r, c);
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
  for (u32 i = 0; i < LENGTH_OF(cases); i++) {
    struct cluster_options o = cases[i].on_gpu ? healthy_gpu() : healthy_cpu();
    o.slow[3] = 0.2;
    struct cluster *c = cluster_new(&o);
    wait_for_others(c, cases[i].own, cases[i].peers);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_int_equal(finding_of(r, "HOST.OVERSUBSCRIBED")->severity, SEVERITY_WARNING);
    assert_non_null(straggler);
    assert_true(straggler->saving_s > 0.3 && straggler->saving_s < 80);
    assert_int_equal(straggler->severity == SEVERITY_INFO, cases[i].explained);
    assert_int_equal(strstr(straggler->evidence, "Only a note") != NULL, cases[i].explained);
    /* what explains it comes first, though its saving is not known */
    assert_int_equal(straggler > finding_of(r, "HOST.OVERSUBSCRIBED"), cases[i].explained);
    assert_int_equal(strstr(straggler->evidence, "work on the GPU") != NULL, cases[i].on_gpu);
    cluster_end(r, c);
  }
}

/* A run in which rank 3 is longer in these steps at a line of its own, where samples show it with a
 * core or without one, and its threads waited for cores for so long. */
static struct cluster *at_a_line(struct cluster_options *o, const i64 *longer, bool without_core,
                                 double own, double peers) {
  struct cluster *c = cluster_new(o);
  cluster_sample(c, longer, 0, 10 * MS, 1);
  wait_for_others(c, own, peers);
  const struct call_sites *sites = c->timelines[3].call_sites;
  for (u32 i = 0; i < sites->n_samples && without_core; i++)
    sites->samples[i].activity = TSCOPE_ACTIVITY_NO_CORE;
  return c;
}

/* Where samples show a straggler at a line of its own, only what it is without a core there is
 * explained by the lack of cores, however long its threads waited for them. Nothing is said of that
 * where it is without a core but its threads waited for less than it costs. */
static void a_line_that_needs_no_core_is_no_note(void **state) {
  (void)state;
  for (u32 run = 0; run < 3; run++) {
    bool without_core = run > 0, note = run == 1;
    i64 late[50 * CLUSTER_RANKS] = {0};
    struct cluster_options o = healthy_cpu();
    o.late_forward[3] = 80 * MS;
    for (u32 step = 0; step < 50; step++)
      late[step * o.ranks + 3] = 80 * MS;
    struct cluster *c = at_a_line(&o, late, without_core, run == 2 ? 3 : 90, run == 2 ? 2.9 : 2);
    struct results *r = cluster_analyse(c, NULL);
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
  (void)state;
  for (u32 without_core = 0; without_core < 2; without_core++) {
    i64 late[50 * CLUSTER_RANKS] = {0};
    struct cluster_options o = healthy_cpu();
    for (u32 step = 9; step < 50; step += 10)
      late[step * o.ranks + 3] = 400 * MS;
    o.late_input = late;
    struct cluster *c = at_a_line(&o, late, without_core, 90, 2);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *work = finding_of(r, "TIMING.JITTER");
    assert_non_null(work);
    assert_non_null(strstr(work->title, "train.py:20 of rank 3"));
    assert_int_equal(work->severity == SEVERITY_INFO, without_core);
    cluster_end(r, c);
  }
}

/* The same of a rank since which the run is slower. */
static void a_later_line_that_needs_no_core_is_no_note(void **state) {
  (void)state;
  for (u32 without_core = 0; without_core < 2; without_core++) {
    i64 late[50 * CLUSTER_RANKS] = {0};
    struct cluster_options o = healthy_cpu();
    for (u32 step = 20; step < 50; step++)
      late[step * o.ranks + 3] = 80 * MS;
    o.late_backward = late;
    struct cluster *c = at_a_line(&o, late, without_core, 90, 2);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *slower = finding_of(r, "DIST.FAIL_SLOW");
    assert_non_null(slower);
    assert_int_equal(slower->n_ranks, 1);
    assert_int_equal(slower->severity == SEVERITY_INFO, without_core);
    assert_int_equal(strstr(slower->evidence, "needed none, for 100 %") != NULL, !without_core);
    cluster_end(r, c);
  }
}

/* Every second look at a rank is one at a data loader worker, which is at work at a line of its
 * own. */
static void sample_workers(struct cluster *c, u8 activity) {
  static const i64 none[50 * CLUSTER_RANKS] = {0};
  static const struct call_frame worker[] = {
      {.file = "/home/me/data.py", .function = "load", .line = 7},
      {.file = "/usr/lib/python3/worker.py", .function = "_worker_loop", .line = 300}};
  static const u32 numbers[] = {4, 5};
  static struct call_frame frames[6];
  static struct call_stack stacks[5];
  cluster_sample(c, none, 0, 20 * MS, 1);
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    *sites = *c->timelines[r].call_sites;
    memcpy(frames, sites->frames, 4 * sizeof(*frames));
    memcpy(frames + 4, worker, sizeof(worker));
    memcpy(stacks, sites->stacks, 4 * sizeof(*stacks));
    stacks[4] = (struct call_stack){numbers, 2, 0};
    sites->frames = frames;
    sites->n_frames = 6;
    sites->stacks = stacks;
    sites->n_stacks = 5;
    for (u32 i = 0; i < sites->n_samples; i += 2) {
      sites->samples[i].child = true;
      sites->samples[i].stack = 4;
      sites->samples[i].activity = activity;
    }
    c->timelines[r].call_sites = sites;
  }
}

/* Input that workers compute takes longer where they lack cores as the threads that train do,
 * though those wait for less than the input costs. Workers that sleep need no core. */
static void workers_lack_cores_too(void **state) {
  (void)state;
  for (u32 sleep = 0; sleep < 2; sleep++) {
    struct cluster_options o = healthy_cpu();
    o.input = 300 * MS;
    struct cluster *c = cluster_new(&o);
    sample_workers(c, sleep ? TSCOPE_ACTIVITY_SLEEP : TSCOPE_ACTIVITY_RUNNING);
    wait_for_others(c, 5, 5);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *input = finding_of(r, "TIMING.DATALOADER_BOUND");
    assert_non_null(input);
    assert_true(input->saving_s > 10);
    assert_int_equal(input->severity == SEVERITY_INFO, !sleep);
    assert_int_equal(strstr(input->evidence, "its data loader workers") != NULL, !sleep);
    cluster_end(r, c);
  }
}

/* Nothing is known of what workers do that no look saw: while training waits for another process,
 * that may be without a core. Training that sleeps in its own loader waits for none. */
static void workers_that_no_look_saw_may_lack_cores(void **state) {
  (void)state;
  for (u32 sleep = 0; sleep < 2; sleep++) {
    static const i64 none[50 * CLUSTER_RANKS] = {0};
    struct cluster_options o = healthy_cpu();
    o.input = 300 * MS;
    struct cluster *c = cluster_new(&o);
    cluster_sample(c, none, 0, 20 * MS, 1);
    for (u32 r = 0; r < c->model.n_ranks; r++) {
      const struct call_sites *sites = c->timelines[r].call_sites;
      for (u32 i = 0; i < sites->n_samples; i++)
        sites->samples[i].activity = sleep ? TSCOPE_ACTIVITY_SLEEP : TSCOPE_ACTIVITY_EVENTS;
    }
    wait_for_others(c, 5, 5);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *input = finding_of(r, "TIMING.DATALOADER_BOUND");
    assert_non_null(input);
    assert_int_equal(input->severity == SEVERITY_INFO, !sleep);
    cluster_end(r, c);
  }
}

/* What it waited longer need not be all that it costs: both are known only roughly. */
static void most_of_a_saving_is_explained(void **state) {
  (void)state;
  double saving = 0;
  for (u32 i = 0; i < 3; i++) {
    struct cluster_options o = healthy_cpu();
    o.slow[3] = 0.2;
    struct cluster *c = cluster_new(&o);
    wait_for_others(c, 4 + (i == 1 ? 0.85 : 0.65) * saving, 4);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(straggler);
    assert_int_equal(straggler->severity == SEVERITY_INFO, i == 1);
    saving = straggler->saving_s;
    cluster_end(r, c);
  }
}

/* A rank waited for cores while the program was loaded, or in the steps that are analysed. */
static void only_waits_in_the_steps_explain_them(void **state) {
  (void)state;
  for (u32 in_steps = 0; in_steps < 2; in_steps++) {
    struct cluster_options o = healthy_cpu();
    o.slow[3] = 0.2;
    struct cluster *c = cluster_new(&o);
    wait_for_others(c, 90, 2);
    const struct steps *steps = &c->model.steps;
    const u64 before = in_steps ? 0 : 90000000000u;
    const struct rank_look looks[] = {
        {steps->begin[0] - 1000000000, 0, 0},
        {steps->begin[0], before, before},
        {steps->end[(size_t)steps->n * c->model.n_ranks - 1], 90000000000u, 90000000000u}};
    c->model.ranks[3].looks = looks;
    c->model.ranks[3].n_looks = 3;
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(straggler);
    assert_int_equal(straggler->severity == SEVERITY_INFO, in_steps);
    cluster_end(r, c);
  }
}

/* A rank that becomes slow: its own waits may explain it, those of its peers do not. */
static void waits_of_peers_make_no_rank_slow(void **state) {
  (void)state;
  for (u32 own = 0; own < 2; own++) {
    struct cluster_options o = healthy_cpu();
    o.slow[3] = 0.5;
    o.slow_from = o.steps / 2;
    struct cluster *c = cluster_new(&o);
    wait_for_others(c, own ? 90 : 0, own ? 1 : 90);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *slower = finding_of(r, "DIST.FAIL_SLOW");
    assert_non_null(slower);
    assert_int_equal(slower->n_ranks, 1);
    assert_int_equal(slower->severity == SEVERITY_INFO, own);
    cluster_end(r, c);
  }
}

/* Forward passes of 100 ms become time in no phase; 110 ms are backward. */
static void leave_forward(struct cluster *c) {
  u32 n = c->model.steps.n * c->model.n_ranks;
  c->model.phases = arena_array(&c->arena, n, sizeof(*c->model.phases));
  for (u32 i = 0; i < n; i++)
    c->model.phases[i] =
        (struct phase_times){.other = 100 * MS, .forward = MS, .backward = 210 * MS};
  for (u32 r = 0; r < c->model.n_ranks; r++)
    for (u32 i = 0; i < c->timelines[r].n_spans; i++) {
      struct span *span = &c->timelines[r].spans[i];
      if (span->kind == SPAN_PHASE && span->category == TSCOPE_PHASE_FORWARD)
        span->category = TSCOPE_PHASE_USER;
    }
}

/* All ranks are asleep outside the phases, or without a core, which is a note. */
static void sleep_outside_the_phases_is_no_note(void **state) {
  static i64 no_longer[100 * CLUSTER_RANKS];
  (void)state;
  for (u32 without_core = 0; without_core < 2; without_core++) {
    struct cluster_options o = healthy_cpu();
    struct cluster *c = cluster_new(&o);
    cluster_sample(c, no_longer, 0, 10 * MS, 1);
    wait_for_others(c, 90, 90);
    leave_forward(c);
    for (u32 r = 0; r < c->model.n_ranks && without_core; r++)
      for (u32 i = 0; i < c->timelines[r].call_sites->n_samples; i++)
        c->timelines[r].call_sites->samples[i].activity = TSCOPE_ACTIVITY_NO_CORE;
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *outside = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_non_null(outside);
    assert_non_null(strstr(outside->title, "train.py:10"));
    assert_int_equal(outside->severity == SEVERITY_INFO, without_core);
    cluster_end(r, c);
  }
}

/* Rank 0 is at line 20 outside the phases while the others are at line 10, perhaps waiting for it:
 * both are told. */
static void another_place_outside_the_phases_is_told(void **state) {
  static i64 longer[100 * CLUSTER_RANKS];
  (void)state;
  for (u32 apart = 0; apart < 2; apart++) {
    struct cluster_options o = healthy_cpu();
    for (u32 step = 0; step < o.steps; step++)
      longer[step * o.ranks] = apart ? 100 * MS : 0;
    struct cluster *c = cluster_new(&o);
    cluster_sample(c, longer, 0, 10 * MS, 1);
    leave_forward(c);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *outside = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_non_null(outside);
    assert_non_null(strstr(outside->evidence, "train.py:10 (train)"));
    assert_int_equal(strstr(outside->evidence, "train.py:20 (log)") != NULL, apart);
    assert_int_equal(strstr(outside->action, "If ranks wait there for another rank") != NULL,
                     apart);
    cluster_end(r, c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(oversubscribed),
                                     cmocka_unit_test(a_quota_counts_as_cores),
                                     cmocka_unit_test(hosts_of_one_name_share_no_cores),
                                     cmocka_unit_test(waiting_of_other_threads_is_not_critical),
                                     cmocka_unit_test(other_findings_are_its_consequences),
                                     cmocka_unit_test(who_has_few_of_its_cores_is_not_to_blame),
                                     cmocka_unit_test(what_others_explain_is_a_note),
                                     cmocka_unit_test(a_line_that_needs_no_core_is_no_note),
                                     cmocka_unit_test(work_that_needs_no_core_is_no_note),
                                     cmocka_unit_test(a_later_line_that_needs_no_core_is_no_note),
                                     cmocka_unit_test(sleep_outside_the_phases_is_no_note),
                                     cmocka_unit_test(another_place_outside_the_phases_is_told),
                                     cmocka_unit_test(workers_lack_cores_too),
                                     cmocka_unit_test(workers_that_no_look_saw_may_lack_cores),
                                     cmocka_unit_test(most_of_a_saving_is_explained),
                                     cmocka_unit_test(only_waits_in_the_steps_explain_them),
                                     cmocka_unit_test(waits_of_peers_make_no_rank_slow),
                                     cmocka_unit_test(another_process_has_the_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
