/* SPDX-License-Identifier: MIT
 *
 * What is at a line in some steps only: named, with when and for how long, and who is not.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse_cluster.h"
#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "model/span_call_sites.h"
#include "sampled_cluster.h"

enum { RANKS = 8, STEPS = 98 };

/* Rank 2 is at train.py:20 for `ms` in every n-th of the steps, and the next rank too if `both`.
 * How long the others' work takes varies by more. */
struct lone {
  u32 from, until, every;
  i64 ms;
  bool both, without_core, of_half; /* `of_half`: half of the ranks have a communicator besides */
  const char *when;                 /* NULL: it is not named */
};

static void delay_lone(const struct lone *job, i64 *late) {
  memset(late, 0, STEPS * RANKS * sizeof(*late));
  for (u32 s = job->from; s < job->until; s++)
    if (s % job->every == job->every - 1)
      late[s * RANKS + 2] = late[s * RANKS + 3] = job->ms * MS;
  for (u32 s = 0; s < STEPS && !job->both; s++)
    late[s * RANKS + 3] = 0;
}

static void take_cores(struct cluster *c) {
  for (u32 r = 0; r < RANKS; r++) {
    const struct call_sites *sites = c->timelines[r].call_sites;
    for (u32 i = 0; i < sites->n_samples; i++)
      if (sites->samples[i].stack == 1)
        sites->samples[i].activity = TSCOPE_ACTIVITY_NO_CORE;
  }
}

static void add_communicator(struct cluster *c) {
  struct model *m = &c->model;
  struct comm *comms = arena_array(&c->arena, 2, sizeof(*comms));
  comms[0] = comms[1] = m->comms[0];
  comms[1].identity++;
  comms[1].size = RANKS / 2;
  m->comms = comms;
  m->n_comms = 2;
}

static struct results *run_lone(const struct lone *job, u32 seed, struct cluster **c) {
  static i64 late[STEPS * RANKS];
  struct cluster_options o = healthy_cpu();
  delay_lone(job, late);
  o.ranks = RANKS;
  o.steps = STEPS;
  o.noise = 0.5;
  o.seed = seed;
  if (job->every > 1 || job->from > 0)
    o.late_input = late;
  else /* in all steps: not in the data phase, where it is told as input */
    for (u32 r = 0; r < RANKS; r++)
      o.late_forward[r] = late[r];
  *c = cluster_new(&o);
  cluster_sample(*c, late, 0, 10 * MS, seed);
  if (job->without_core)
    take_cores(*c);
  if (job->of_half)
    add_communicator(*c);
  return cluster_analyse(*c, NULL);
}

static void check_lone(const struct lone *job, const struct finding *found) {
  char chance[32];
  double ms;
  if (!found)
    fail_msg("not named: %s", job->when);
  assert_true(found->n_ranks == 1 && found->ranks[0] == 2);
  assert_non_null(strstr(found->title, "train.py:20"));
  if (!strstr(found->title, job->when))
    fail_msg("%s: not %s", found->title, job->when);
  assert_int_equal(
      sscanf(strstr(found->evidence, "(by chance: p"), "(by chance: p%31[^:]: %lf", chance, &ms),
      2);
  if (fabs(ms - (double)job->ms) > 4)
    fail_msg("%s: %g ms", job->when, ms);
}

/* Its arrivals do not show what a rank does alone, as those of all vary by more: the line is named,
 * with the steps. Not what takes a twentieth of the step, or less than a hundredth of all steps;
 * nor what another rank does too; nor, but for a period, where the rank has no core, or where ranks
 * have different parts in the job. */
static void line_of_one_rank_is_named(void **state) {
  static const struct lone jobs[] = {
      {0, STEPS, 7, 40, .when = "in every 7th step"},
      {0, STEPS, 5, 40, .when = "in every 5th step"},
      {0, STEPS, 10, 60, .when = "in every 10th step"},
      {0, STEPS, 10, 60, .without_core = true, .when = "in every 10th step"},
      {0, STEPS, 10, 60, .of_half = true, .when = "in every 10th step"},
      {20, 45, 1, 40, .when = "in steps 20 to 44"},
      {0, STEPS, 1, 30, .when = "in 96 of 96 steps"},
      {0, STEPS, 7, 10},
      {0, STEPS, 16, 40},
      {0, STEPS, 7, 40, .both = true},
      {20, 28, 1, 100},
      {20, 45, 1, 40, .without_core = true},
      {20, 45, 1, 40, .of_half = true},
      {0, STEPS, 1, 30, .both = true},
      {0, STEPS, 1, 30, .without_core = true},
      {0, STEPS, 1, 30, .of_half = true}};
  u32 named = 0;
  (void)state;
  for (u32 seed = 1; seed <= 10; seed++)
    for (u32 i = 0; i < LENGTH_OF(jobs); i++) {
      struct cluster *c;
      struct results *r = run_lone(&jobs[i], seed, &c);
      const struct finding *found = finding_of(r, "DIST.LONE_LINE");
      if (!jobs[i].when && found)
        fail_msg("case %u: %s", i, found->title);
      if (jobs[i].when && !r->ranks[2].straggler)
        check_lone(&jobs[i], found);
      named += jobs[i].when && found;
      cluster_end(r, c);
    }
  assert_true(named > 35);
}

/* Is one of them told? */
static bool tells_lone_line(u32 ranks, const i64 *late, u32 seed) {
  struct cluster *c = cluster_late(STEPS, ranks, 0.5, late, late, seed);
  struct results *r = cluster_analyse(c, NULL);
  bool told = finding_of(r, "DIST.LONE_LINE");
  cluster_end(r, c);
  return told;
}

/* What the first rank of each host does, two of 32, is of no rank alone, though most ranks do not;
 * what one of them does is. */
static void a_line_of_the_first_of_each_host_is_of_no_rank(void **state) {
  enum { MANY = 32 };
  static i64 late[STEPS * MANY];
  (void)state;
  for (u32 i = 6 * MANY; i < STEPS * MANY; i += 7 * MANY)
    late[i] = late[i + MANY / 2] = 40 * MS;
  assert_false(tells_lone_line(MANY, late, 1));
  for (u32 i = 6 * MANY; i < STEPS * MANY; i += 7 * MANY)
    late[i] = 0;
  assert_true(tells_lone_line(MANY, late, 1));
}

/* The few checkpoints of one of two ranks: each may as well have been the other's, but not all of
 * them at a fixed distance. At random they are told of nobody. */
static void few_stays_of_one_of_two_ranks_are_named_at_a_distance(void **state) {
  static i64 late[STEPS * 2], at_random[STEPS * 2];
  u32 told = 0, chance = 0, draw = 5;
  (void)state;
  for (u32 seed = 1; seed <= 20; seed++) {
    memset(late, 0, sizeof(late));
    memset(at_random, 0, sizeof(at_random));
    for (u32 s = 15; s < STEPS; s += 16) {
      late[2 * s] = 120 * MS;
      at_random[2 * (u32)(uniform_share(&draw) * STEPS)] = 120 * MS;
    }
    told += tells_lone_line(2, late, seed);
    chance += tells_lone_line(2, at_random, seed);
  }
  assert_in_range(told, 17, 20); /* the others are told as what long steps hold */
  assert_int_equal(chance, 0);
}

/* Each rank is at line 20 in some steps of its own, at no distance: no rank alone is. */
static void lines_at_random_are_of_no_rank(void **state) {
  static i64 late[STEPS * RANKS];
  (void)state;
  for (u32 run = 0; run < 40; run++) {
    u32 seed = run * 7919 + 1;
    for (u32 i = 0; i < STEPS * RANKS; i++) {
      bool alone = run % 2 && i % RANKS != 2; /* in every second run only rank 2 is ever there */
      late[i] = !alone && uniform_share(&seed) < 0.15 ? 40 * MS : 0;
    }
    assert_false(tells_lone_line(RANKS, late, run + 1));
  }
}

/* All wait as long for each second that they have a core. */
static void wait_alike_for_cores(struct cluster *c) {
  const struct steps *steps = &c->model.steps;
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct rank_look *looks = arena_array(&c->arena, 2, sizeof(*looks));
    looks[0].time = steps->begin[r];
    looks[1].time = steps->end[(steps->n - 1) * c->model.n_ranks + r];
    looks[1].cpu_ns = looks[1].wait_ns = looks[1].training_wait_ns = 20000000000u;
    c->model.ranks[r].looks = looks;
    c->model.ranks[r].n_looks = 2;
  }
}

/* Rank 1 is at line 20 for 16 ms in each step, where nobody else is, and loses its core by that: at
 * line 10 it then is for 24 ms longer than its peers. On a machine where it has its core, it is the
 * line with the 24 ms that tells more. */
static void what_loses_the_core_comes_before_what_then_waits_for_one(void **state) {
  enum { MANY = 400, SLOW = 1, RUNS = 2 };
  static i64 late[MANY * RANKS];
  (void)state;
  for (u32 s = 0; s < MANY; s++)
    late[s * RANKS + SLOW] = 40 * MS;
  for (u32 busy = 0; busy < RUNS; busy++) {
    struct cluster_options o = healthy_cpu();
    o.ranks = RANKS;
    o.steps = MANY;
    o.late_backward = late;
    struct cluster *c = cluster_new(&o);
    cluster_sample(c, late, 24 * MS, 10 * MS, 1);
    wait_alike_for_cores(c);
    const struct call_sites *sites = c->timelines[SLOW].call_sites;
    FOR_EACH_CHANGED(sites->samples, sites->n_samples, one) {
      one->stack = one->stack == 3 ? 0 : one->stack;
      if (busy && one->stack == 0)
        one->activity = TSCOPE_ACTIVITY_NO_CORE;
    }
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *found = finding_of(r, "DIST.STRAGGLER");
    const char *line = busy ? "train.py:20" : "train.py:10";
    assert_non_null(found);
    if (!strstr(found->title, line))
      fail_msg("%s: %s", found->title, found->evidence);
    bool waits = strstr(found->evidence, "train.py:10 (train), mostly without a core.");
    assert_int_equal(waits, busy);
    cluster_end(r, c);
  }
}

/* Long steps with and without it are told together: it is most of what the line takes more. */
static void what_a_line_takes_more_is_compiling(void **state) {
  static const struct {
    double ms, usual_ms, share;
    bool compiles;
  } cases[] = {{15, 4, 0.43, true},
               {15, 4, 0.3, false},
               {15, 12, 0.2, false},
               {15, 15, 0.6, true},
               {0, 0, 0, false}};
  SCOPED_ARENA struct arena arena = {0};
  struct analysis a = {.arena = &arena};
  struct findings f = {.a = &a, .arena = &arena};
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct sampled_line line = {.place = "train.py:20",
                                .ms = cases[i].ms,
                                .peers_ms = cases[i].usual_ms,
                                .compiling_share = cases[i].share};
    assert_int_equal(*about_compiling(&f, &line) != 0, cases[i].compiles);
  }
}

/* A rank is late by 30 ms in most steps and by 400 ms in a third of them, at one line: its mean is
 * told, and what half of the steps stay below. */
static void mean_and_median_are_told(void **state) {
  static i64 late[STEPS * RANKS];
  (void)state;
  u32 seed = 5, long_steps = 0;
  for (u32 s = 0; s < STEPS; s++) {
    bool is_long = uniform_share(&seed) < 0.33;
    late[s * RANKS + 2] = is_long ? 400 * MS : 30 * MS;
    long_steps += is_long && s >= 2;
  }
  struct cluster *c = cluster_late(STEPS, RANKS, 0, late, late, 1);
  struct results *r = cluster_analyse(c, NULL);
  const struct rank_result *rank = &r->ranks[2];
  double share = (double)long_steps / (STEPS - 2), mean = 30 + 370 * share;
  assert_true(rank->straggler);
  if (fabs(rank->late_more_ms - mean) > 0.1 * mean)
    fail_msg("%g ms, not %g", rank->late_more_ms, mean);
  assert_non_null(strstr(finding_of(r, "DIST.STRAGGLER")->evidence,
                         " That is the mean over steps: in half of them the rank comes less than "
                         "30.0 ms late."));
  cluster_end(r, c);
}

/* Of a rank that is late in every fourth step the line is told at which its peers wait then. */
static void where_peers_wait_is_told(void **state) {
  (void)state;
  for (u32 every = 1; every <= 4; every += 3) {
    static i64 late[STEPS * RANKS];
    memset(late, 0, sizeof(late));
    for (u32 s = every - 1; s < STEPS; s += every)
      late[s * RANKS + 2] = 100 * MS;
    struct cluster *c = cluster_late(STEPS, RANKS, 0, late, late, 1);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *found = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(found);
    const char *waits = strstr(found->evidence, " Its peers then wait at ");
    assert_int_equal(waits != NULL, every > 1); /* else they wait so in all steps */
    assert_true(!waits || strstr(waits, "train.py:30 (train)."));
    cluster_end(r, c);
  }
}

/* A rank that is late by little in most steps, at no line, and by much in some, at one: both
 * findings name that. */
static void a_straggler_has_the_line_of_its_long_steps(void **state) {
  (void)state;
  static i64 late[STEPS * 2], at_line[STEPS * 2];
  struct cluster_options o = healthy_cpu();
  u32 seed = 3;
  o.ranks = 2;
  o.steps = 45;
  for (u32 s = 0; s < o.steps; s++) {
    at_line[2 * s + 1] = uniform_share(&seed) < 0.15 ? 500 * MS : 0;
    late[2 * s + 1] = at_line[2 * s + 1] + (uniform_share(&seed) < 0.7 ? 21 * MS : 0);
    late[2 * s] = uniform_share(&seed) < 0.3 ? 21 * MS : 0;
  }
  o.late_backward = late;
  struct cluster *c = cluster_new(&o);
  cluster_sample(c, at_line, 0, 30 * MS, 1);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "DIST.STRAGGLER");
  assert_non_null(found);
  assert_non_null(strstr(finding_of(r, "TIMING.JITTER")->title, "at me/train.py:20 of rank 1"));
  assert_non_null(strstr(found->title, "longer steps, at me/train.py:20"));
  assert_non_null(strstr(found->action, "Look at me/train.py:20 first."));
  assert_non_null(strstr(found->evidence, "Reason: its own code."));
  assert_int_equal(r->ranks[1].reason, STRAGGLER_OWN_CODE); /* so do its row and its page */
  assert_string_equal(r->ranks[1].late_at, "me/train.py:20");
  cluster_end(r, c);
}

/* Of what every tenth step does no line takes half, but all of it is called at one line. */
static void line_that_calls_it_all_is_named(void **state) {
  static i64 late[STEPS * RANKS];
  (void)state;
  memset(late, 0, sizeof(late));
  for (u32 s = 9; s < STEPS; s += 10)
    for (u32 r = 0; r < RANKS; r++)
      late[s * RANKS + r] = 300 * MS;
  struct cluster *c = cluster_late(STEPS, RANKS, 0, late, late, 1);
  cluster_call_function(c, "write", "save");
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "TIMING.JITTER");
  assert_non_null(found);
  assert_non_null(strstr(found->title, "me/train.py:100"));
  assert_non_null(
      strstr(found->evidence, "train.py:100 (save), with all that it calls: 300 ms in"));
  assert_non_null(strstr(found->evidence, " ms at me/train.py:20"));
  assert_non_null(strstr(found->evidence, "(write) of rank "));
  cluster_end(r, c);
}

/* So much of a rank's step, at its beginning, belongs to the step before. */
static void move_to_step_before(struct cluster *c, u32 step, u32 rank, i64 ns) {
  const struct steps *steps = &c->model.steps;
  steps->begin[step * RANKS + rank] += ns;
  steps->end[(step - 1) * RANKS + rank] += ns;
}

/* What a rank does behind the last collective of a step makes it late in the next one. */
static void line_in_the_step_before_is_named(void **state) {
  static i64 late[STEPS * RANKS], at_line[STEPS * RANKS];
  (void)state;
  for (u32 every = 2; every <= 5; every++) {
    struct cluster_options o = healthy_cpu();
    memset(late, 0, sizeof(late));
    memset(at_line, 0, sizeof(at_line));
    for (u32 s = every; s < STEPS; s += every)
      late[s * RANKS + 2] = at_line[(s - 1) * RANKS + 2] = 100 * MS;
    o.ranks = RANKS;
    o.steps = STEPS;
    o.late_input = late;
    struct cluster *c = cluster_new(&o);
    for (u32 s = every; s < STEPS; s += every)
      move_to_step_before(c, s, 2, 100 * MS);
    cluster_sample(c, at_line, 0, 10 * MS, every);
    struct results *r = cluster_analyse(c, NULL);
    assert_true(r->ranks[2].straggler && r->ranks[2].late_at_times);
    assert_non_null(r->ranks[2].late_at);
    assert_string_equal(r->ranks[2].late_at, "me/train.py:20");
    cluster_end(r, c);
  }
}

/* In each step one rank, drawn at random, has 60 ms more to do, and one is at line 20 for as long:
 * the same one, or another that is drawn by itself. */
static void at_random(u32 seed, i64 *more) {
  memset(more, 0, STEPS * RANKS * sizeof(*more));
  for (u32 s = 0; s < STEPS; s++)
    more[s * RANKS + (u32)(uniform_share(&seed) * RANKS)] = 60 * MS;
}

/* No rank is slower than its peers; the line of those that are last by turns is named. */
static void what_the_last_of_each_step_runs_is_named(void **state) {
  (void)state;
  static i64 late[STEPS * RANKS], seen[STEPS * RANKS];
  for (u32 seed = 1; seed <= 40; seed++) {
    bool same = seed % 2;
    at_random(seed, late);
    at_random(same ? seed : seed + 100, seen);
    struct cluster *c = cluster_late(STEPS, RANKS, 0.02, late, seen, seed);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *found = finding_of(r, "DIST.LOAD_IMBALANCE");
    assert_non_null(found);
    assert_int_equal(strstr(found->title, "train.py:20") != NULL, same);
    if (same) {
      const char *at = strstr(found->evidence, "train.py:20 (log) for ");
      assert_non_null(at);
      assert_true(fabs(atof(at + strlen("train.py:20 (log) for ")) - 60) < 3);
    }
    cluster_end(r, c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(line_of_one_rank_is_named),
      cmocka_unit_test(a_line_of_the_first_of_each_host_is_of_no_rank),
      cmocka_unit_test(lines_at_random_are_of_no_rank),
      cmocka_unit_test(few_stays_of_one_of_two_ranks_are_named_at_a_distance),
      cmocka_unit_test(what_loses_the_core_comes_before_what_then_waits_for_one),
      cmocka_unit_test(what_a_line_takes_more_is_compiling),
      cmocka_unit_test(mean_and_median_are_told),
      cmocka_unit_test(where_peers_wait_is_told),
      cmocka_unit_test(a_straggler_has_the_line_of_its_long_steps),
      cmocka_unit_test(line_that_calls_it_all_is_named),
      cmocka_unit_test(line_in_the_step_before_is_named),
      cmocka_unit_test(what_the_last_of_each_step_runs_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
