/* SPDX-License-Identifier: MIT
 *
 * Findings about phases, and about time outside of them: what counts as such, what it is worth, and
 * at which line of which rank it is told.
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

/* Phases as from PyTorch's ranges. */
static double forward_ms, backward_ms, optimizer_ms, optimizer_of_rank_1_ms;
static void name_phases(struct cluster *c) {
  static struct phase_times phases[100 * CLUSTER_RANKS];
  u32 n = c->model.steps.n * c->model.n_ranks;
  assert_true(n <= LENGTH_OF(phases));
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
#define SITE "/usr/lib/python3/site-packages/"
static const struct call_frame in_module = {.file = SITE "torch/nn/modules/module.py",
                                            .function = "Module._call_impl",
                                            .line = 1773,
                                            .others = true};
static const struct call_frame in_deepspeed = {.file = SITE "deepspeed/runtime/engine.py",
                                               .function = "DeepSpeedEngine.step",
                                               .line = 3567,
                                               .others = true};
static const struct call_frame in_schedule = {.file =
                                                  SITE "torch/distributed/pipelining/schedules.py",
                                              .function = "ScheduleGPipe._step_microbatches",
                                              .line = 690,
                                              .others = true};
static const struct call_frame in_checkpoint = {.file = SITE "torch/utils/checkpoint.py",
                                                .function = "checkpoint",
                                                .line = 490,
                                                .others = true};
static const struct call_frame *framework = &in_module;
static i64 looks_apart;
static void do_not_mark_forward(struct cluster *c) {
  static struct call_frame frames[] = {
      {.file = "/home/me/net.py", .function = "Net.forward", .line = 5},
      {0},
      {.file = "/home/me/train.py", .function = "prepare", .line = 20}};
  static const u32 inside[] = {0, 1}, outside[] = {2};
  static struct call_stack stacks[] = {{inside, 2, 0}, {outside, 1, 0}};
  frames[1] = *framework;
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
    sites->samples = arena_array(&c->arena, steps->n * 100u, sizeof(*sites->samples));
    i64 begin = steps->begin[r], end = steps->end[(steps->n - 1) * c->model.n_ranks + r];
    for (i64 at = begin + 5 * MS; at < end && samples_in_modules <= 10; at += looks_apart) {
      i64 k = (at - steps->begin[(u32)model_step_at(&c->model, r, at) * c->model.n_ranks + r]) /
              (10 * MS);
      sites->samples[sites->n_samples++] =
          (struct line_sample){.time = at,
                               .represented_ns = looks_apart,
                               .interval_ns = looks_apart,
                               .stack = k >= samples_in_modules && (k < 12 || k >= 25)};
    }
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
    const struct call_frame *framework;
    i64 looks_apart; /* 0: as the trace says at its end */
  } cases[] = {
      {0, 100, "32 % of each step is outside backward and optimizer"},
      {6, 40, "13 % of each step is outside forward, backward and optimizer"},
      {10, 0, NULL},
      {11, 100, NULL}, /* nothing tells that it is not the forward pass */
      {6, 40, "13 % of each step is outside forward, backward and optimizer", &in_deepspeed},
      {6, 40, "13 % of each step is outside forward, backward and optimizer", &in_schedule},
      {6, 40, "13 % of each step is outside forward, backward and optimizer", &in_checkpoint},
      /* There was not enough CPU time for all looks: each is of its moment. */
      {6, 40, "13 % of each step is outside forward, backward and optimizer", NULL, 110 * MS}};
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct cluster_options o = healthy_cpu();
    struct cluster *c = cluster_new(&o);
    samples_in_modules = cases[i].in_modules;
    framework = cases[i].framework ? cases[i].framework : &in_module;
    looks_apart = cases[i].looks_apart ? cases[i].looks_apart : 10 * MS;
    do_not_mark_forward(c);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_true(fabs(saved_outside(r) - cases[i].saves_ms) < 2);
    assert_int_equal(finding != NULL, cases[i].title != NULL);
    if (finding)
      assert_int_equal(strncmp(finding->title, cases[i].title, strlen(cases[i].title)), 0);
    cluster_end(r, c);
  }
}

/* Whoever waits for another process does no work there that could be done less often. */
static void what_is_waited_for_outside_is_to_be_faster(void **state) {
  (void)state;
  for (u32 waits = 0; waits < 2; waits++) {
    struct cluster_options o = healthy_cpu();
    struct cluster *c = cluster_new(&o);
    samples_in_modules = 6;
    framework = &in_module;
    looks_apart = 10 * MS;
    do_not_mark_forward(c);
    for (u32 r = 0; r < c->model.n_ranks && waits; r++)
      FOR_EACH_CHANGED(c->timelines[r].call_sites->samples, c->timelines[r].call_sites->n_samples,
                       one)
        one->activity = one->stack ? TSCOPE_ACTIVITY_LOCK : 0;
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_int_equal(waits, strstr(finding->evidence, "waiting for a lock") != NULL);
    assert_int_equal(waits, strstr(finding->action, "Look at what rank 0 waits for at") != NULL);
    assert_int_equal(!waits, strstr(finding->action, "Do that work less often") != NULL);
    cluster_end(r, c);
  }
}

/* A job of which `late` is what ranks sleep outside the phases; one rank may mark no phases at all.
 */
static struct cluster *asleep_outside(const struct cluster_options *o, const i64 *late,
                                      u32 without_phases) {
  struct cluster *c = cluster_new(o);
  u32 n = c->model.steps.n * o->ranks;
  c->model.phases = arena_array(&c->arena, n, sizeof(*c->model.phases));
  for (u32 i = 0; i < n; i++)
    c->model.phases[i] =
        i % o->ranks == without_phases
            ? (struct phase_times){NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN}
            : (struct phase_times){
                  .other = late[i], .forward = o->forward, .backward = 2 * o->backward};
  for (u32 rank = 0; rank < o->ranks; rank++) {
    struct timeline *t = &c->timelines[rank];
    t->has_cpu_times = true;
    for (u32 i = 0; i < t->n_spans; i++)
      if (t->spans[i].kind == SPAN_PHASE &&
          (t->spans[i].category == TSCOPE_PHASE_DATA || rank == without_phases))
        t->spans[i].category = TSCOPE_PHASE_USER;
  }
  return c;
}

static double recoverable_asleep(const struct results *r) {
  const struct budget_line *asleep =
      FIND(r->budget, r->n_budget, one, one->part == BUDGET_ASLEEP_OUTSIDE);
  return asleep ? asleep->recoverable / r->training_steps : NAN;
}

/* In each step another of the ranks is late by 120 ms. */
static struct cluster_options late_by_turns(void) {
  static i64 late[100 * CLUSTER_RANKS];
  struct cluster_options o = healthy_cpu();
  o.late_input = late;
  memset(late, 0, sizeof(late));
  for (u32 step = 0; step < o.steps; step++)
    late[step * o.ranks + step % o.ranks] = 120 * MS;
  return o;
}

/* In each step another of eight ranks is outside for 120 ms: of that each has an eighth, and a step
 * takes all of it longer. It is the same where a rank marks no phases. */
static void others_wait_for_who_is_outside_by_turns(void **state) {
  (void)state;
  struct cluster_options o = late_by_turns();
  for (u32 all = 0; all < 2; all++) {
    struct cluster *c = asleep_outside(&o, o.late_input, all ? INDEX_NONE : 3);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *outside = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_non_null(outside);
    assert_true(fabs(outside->saving_s / r->training_steps - 0.120) < 0.002);
    if (all) {
      assert_true(fabs(recoverable_asleep(r) - 0.120) < 0.002);
      assert_non_null(strstr(outside->evidence, "for 120 ms, and the job is as slow as that one"));
    }
    cluster_end(r, c);
  }
}

/* Ranks meet outside the phases, as they do who reduce gradients themselves. */
static struct cluster *meeting_outside(void) {
  struct cluster_options o = late_by_turns();
  o.forward = o.backward = 10 * MS;
  struct cluster *c = asleep_outside(&o, o.late_input, INDEX_NONE);
  const struct steps *steps = &c->model.steps;
  for (u32 i = 0; i < steps->n * o.ranks; i++)
    c->model.phases[i].other = steps->end[i] - steps->begin[i] - o.forward - 2 * o.backward;
  for (u32 rank = 0; rank < o.ranks; rank++)
    for (u32 i = 0; i < c->timelines[rank].n_spans; i++) {
      struct span *span = &c->timelines[rank].spans[i];
      if (span->kind == SPAN_PHASE && span->category == TSCOPE_PHASE_BACKWARD)
        span->end = span->start + 2 * o.backward;
    }
  return c;
}

/* It is the same there: what they wait for one another is no sleep. Where nothing is replayed, what
 * is communication does not go with the time outside. */
static void ranks_wait_for_one_another_outside(void **state) {
  (void)state;
  for (u32 replayed = 0; replayed < 2; replayed++) {
    struct cluster *c = meeting_outside();
    c->model.ranks[0].records = replayed ? c->model.ranks[0].records : 1ull << 50;
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *outside = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_int_equal(r->path_reason == NULL, replayed);
    if (replayed)
      assert_true(fabs(recoverable_asleep(r) - 0.120) < 0.002);
    else
      assert_true(outside->saving_s * 1e3 / r->training_steps <=
                  r->step_mean_ms - r->ov_exposed_ms + 0.1);
    cluster_end(r, c);
  }
}

/* Ranks that wait for nobody drift apart. Each is outside for so many ms of all of its steps. */
static struct cluster *drifting(const i64 *outside_ms, u32 ranks, u32 without_phases) {
  static i64 late[100 * CLUSTER_RANKS];
  struct cluster_options o = healthy_cpu();
  o.ranks = ranks;
  o.meets_every = 1000;
  o.late_input = late;
  for (u32 i = 0; i < o.steps * ranks; i++)
    late[i] = outside_ms[i % ranks] * MS;
  return asleep_outside(&o, late, without_phases);
}

/* Rank 0 has steps of 300 ms, rank 1 of 900: of the time of the job two thirds go. */
static void of_ranks_that_drift_apart_a_share_is_saved(void **state) {
  static const i64 outside_ms[] = {0, 600};
  (void)state;
  struct cluster *c = drifting(outside_ms, 2, INDEX_NONE);
  struct results *r = cluster_analyse(c, NULL);
  assert_true(fabs(r->step_mean_ms - 600) < 2);
  assert_true(fabs(saved_outside(r) - 400) < 2);
  cluster_end(r, c);
}

/* Rank 1 is outside for longest, so long at a line of its own; ranks are so long at one that they
 * share. */
static struct cluster *longest_on_rank_1(const i64 *outside_ms, i64 own_ms, i64 shared_ms) {
  static i64 slow[100 * CLUSTER_RANKS];
  struct cluster *c = drifting(outside_ms, 2, INDEX_NONE);
  for (u32 step = 0; step < c->options.steps; step++)
    slow[step * 2 + 1] = own_ms * MS;
  cluster_sample(c, slow, shared_ms * MS, 10 * MS, 0);
  return c;
}

static const struct finding *found_outside(const struct results *r) {
  const struct finding *outside = finding_of(r, "TIMING.OUTSIDE_PHASES");
  assert_non_null(outside);
  return outside;
}

/* Rank 1 is at two lines in turn; rank 0 is longer at one line. What is told is where rank 1 is. */
static void who_is_outside_alone_is_told_with_its_own_line(void **state) {
  static const i64 outside_ms[] = {300, 600};
  (void)state;
  struct cluster *c = longest_on_rank_1(outside_ms, 580, 290);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *outside = found_outside(r);
  assert_non_null(strstr(outside->title, "what rank 1 does outside"));
  assert_null(strstr(outside->title, "train.py:10"));
  assert_non_null(strstr(outside->evidence, "Rank 1 is then at me/train.py:20"));
  cluster_end(r, c);
}

/* A call by which the host communicates itself is no work there, whatever line makes it. */
static void a_call_of_communication_is_not_outside(void **state) {
  static const i64 outside_ms[] = {0, 600};
  (void)state;
  for (u32 calls = 0; calls < 2; calls++) {
    struct cluster *c = longest_on_rank_1(outside_ms, 600, 0);
    FOR_EACH_CHANGED(c->timelines[1].spans, calls ? c->timelines[1].n_spans : 0, span)
      if (span->kind == SPAN_PHASE && span->category == TSCOPE_PHASE_USER)
        *span = (struct span){.kind = SPAN_COLL_CALL,
                              .link = INDEX_NONE,
                              .launch = INDEX_NONE,
                              SAME(span, start, end, name, lane)};
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(calls, r->ranks[1].outside_line == NULL);
    assert_int_equal(calls, finding_of(r, "TIMING.OUTSIDE_PHASES") == NULL);
    cluster_end(r, c);
  }
}

/* Who calls the line is told, and the function if the line is one of several of it. */
static void the_callers_of_a_line_outside_are_told(void **state) {
  static const i64 outside_ms[] = {0, 600};
  (void)state;
  struct cluster *c = longest_on_rank_1(outside_ms, 600, 0);
  cluster_call_function(c, "inner", "outer");
  struct results *r = cluster_analyse(c, NULL);
  const char *evidence = found_outside(r)->evidence;
  assert_non_null(strstr(evidence, "in inner() (me/train.py:20"));
  assert_non_null(strstr(evidence, "(inner, called at me/train.py:10 > me/train.py:100)"));
  cluster_end(r, c);
}

/* What the thread does that rank 1 waits for is told. */
static void who_is_waited_for_outside_is_told(void **state) {
  static const i64 outside_ms[] = {0, 600};
  (void)state;
  struct cluster *c = longest_on_rank_1(outside_ms, 600, 0);
  cluster_hold_gil(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *outside = found_outside(r);
  assert_non_null(strstr(outside->title, "train.py:20, waiting for another thread"));
  assert_non_null(strstr(outside->evidence, "at me/train.py:40 (check), with the GIL"));
  assert_non_null(strstr(outside->action, "another thread does at me/train.py:40 (check)"));
  cluster_end(r, c);
}

/* Rank 2 marks no phases, and its steps are the longest. */
static void who_marks_no_phases_may_be_outside_for_longest(void **state) {
  static const i64 outside_ms[] = {0, 600, 900};
  (void)state;
  for (u32 marked = 0; marked < 2; marked++) {
    struct cluster *c = drifting(outside_ms, 3, marked ? INDEX_NONE : 2);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *outside = finding_of(r, "TIMING.OUTSIDE_PHASES");
    assert_non_null(outside);
    assert_int_equal(marked, strstr(outside->title, "what rank 2 does outside") != NULL);
    assert_int_equal(!marked, strstr(outside->title, "what one rank or another does") != NULL);
    cluster_end(r, c);
  }
}

/* One that generates what the others train on has no phases: it is always outside. */
static void a_rank_without_phases_is_asleep_outside(void **state) {
  static i64 late[100 * CLUSTER_RANKS];
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.forward = o.backward = 10 * MS;
  o.late_input = late;
  for (u32 step = 0; step < o.steps; step++)
    late[step * o.ranks + 3] = 120 * MS;
  struct cluster *c = asleep_outside(&o, late, 3);
  struct results *r = cluster_analyse(c, NULL);
  /* The 30 ms that it computes are taken to be spread over its step, also before the last wait. */
  assert_true(recoverable_asleep(r) > 0.110 && recoverable_asleep(r) < 0.121);
  cluster_end(r, c);
}

/* Where forward passes have no mark, what is in no phase may be one. */
static void a_gpu_idles_outside_the_phases_only_if_they_are_known(void **state) {
  (void)state;
  for (u32 marked = 0; marked < 2; marked++) {
    struct cluster_options o = healthy_gpu();
    o.late_launch[2] = 150 * MS;
    struct cluster *c = cluster_new(&o);
    samples_in_modules = 11;
    framework = &in_module;
    do_not_mark_forward(c);
    for (u32 i = 0; marked && i < c->model.steps.n * c->model.n_ranks; i++)
      c->model.phases[i].forward = 10 * MS;
    struct results *r = cluster_analyse(c, NULL);
    bool outside = false;
    for (u32 i = 0; i < r->n_budget; i++)
      outside |= r->budget[i].part == BUDGET_OUTSIDE_PHASES;
    assert_int_equal(outside, marked);
    cluster_end(r, c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(backward_heavy),
      cmocka_unit_test(optimizer_heavy),
      cmocka_unit_test(unmarked_training_is_not_outside),
      cmocka_unit_test(what_is_waited_for_outside_is_to_be_faster),
      cmocka_unit_test(of_ranks_that_drift_apart_a_share_is_saved),
      cmocka_unit_test(who_is_outside_alone_is_told_with_its_own_line),
      cmocka_unit_test(a_call_of_communication_is_not_outside),
      cmocka_unit_test(the_callers_of_a_line_outside_are_told),
      cmocka_unit_test(who_is_waited_for_outside_is_told),
      cmocka_unit_test(who_marks_no_phases_may_be_outside_for_longest),
      cmocka_unit_test(a_rank_without_phases_is_asleep_outside),
      cmocka_unit_test(others_wait_for_who_is_outside_by_turns),
      cmocka_unit_test(ranks_wait_for_one_another_outside),
      cmocka_unit_test(a_gpu_idles_outside_the_phases_only_if_they_are_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
