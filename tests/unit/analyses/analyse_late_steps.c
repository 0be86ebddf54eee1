/* SPDX-License-Identifier: MIT
 *
 * Stragglers that are late in some steps only: when, and who is none.
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
#include "model/span_call_sites.h"

static struct results *run(struct cluster_options o, struct cluster **c) {
  *c = cluster_new(&o);
  return cluster_analyse(*c, NULL);
}

/* Slow in steps 12 to 31 of 50, in the first 20 and in the last: named, with these steps. What the
 * others wait is spread over the run. */
static void late_in_a_stretch(void **state) {
  static const u32 stretches[][2] = {{12, 32}, {0, 20}, {30, 0}};
  (void)state;
  for (u32 seed = 0; seed < 12; seed++) {
    struct cluster_options o = seed % 2 ? healthy_gpu() : healthy_cpu();
    const u32 *stretch = stretches[seed % 3];
    u32 last = stretch[1] ? stretch[1] : o.steps;
    struct cluster *c;
    o.noise = 0.2;
    o.seed = seed;
    o.slow[2] = 0.4;
    o.slow_from = stretch[0];
    o.slow_until = stretch[1];
    struct results *r = run(o, &c);
    const struct rank_result *rank = &r->ranks[2];
    assert_int_equal(stragglers_in(r), 1);
    assert_true(rank->straggler);
    assert_int_equal(rank->n_late, 1);
    assert_true(fabs(rank->late_from[0] - fmax(stretch[0], o.warmup)) <= 1);
    assert_true(fabs(rank->late_to[0] - (last - 1)) <= 1);
    assert_true(rank->slowest_count <= last - stretch[0] + 1);
    double share = (double)(last - stretch[0]) / o.steps;
    assert_true(fabs(rank->imposed_wait_ms / rank->lateness_ms - share) < 0.1);
    cluster_end(r, c);
  }
}

/* In which steps rank 2, and rank 3 of its host, are late: every so many, or so large a share at no
 * distance. */
struct late_at_times {
  u32 every, steps;
  double share;
  bool host;
  const char *title; /* NULL: nobody is named */
};

static void delay_at_times(const struct late_at_times *job, u32 ranks, u32 seed, i64 *late) {
  u32 random = seed * 7919 + 1;
  for (u32 s = 0; s < job->steps; s++) {
    bool is_late =
        job->every ? s % job->every == 3 % job->every : uniform_share(&random) < job->share;
    for (u32 r = 0; r < ranks; r++)
      late[s * ranks + r] = is_late && (r == 2 || (job->host && r == 3)) ? 100 * MS : 0;
  }
}

static void put_on_hosts(struct cluster *c, u32 ranks_each) {
  static const char *const hosts[] = {"node0", "node1", "node2", "node3"};
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    c->model.ranks[r].clock.domain = r / ranks_each;
    c->model.ranks[r].host = hosts[r / ranks_each];
  }
}

/* A rank, or a host, that is late in some steps only is named, with when: at a fixed distance or
 * not. One that is so in every twentieth step, as for a checkpoint, is not. */
static void late_in_some_steps(void **state) {
  enum { RANKS = 8, MOST_STEPS = 1000 };
  static i64 late[MOST_STEPS * RANKS];
  static const struct late_at_times jobs[] = {{2, 60, 0, false, "in every 2nd step"},
                                              {3, 60, 0, false, "in every 3rd step"},
                                              {4, 80, 0, false, "in every 4th step"},
                                              {4, 80, 0, true, "in every 4th step"},
                                              {10, 100, 0, false, "in every 10th step"},
                                              {10, 100, 0, true, "in every 10th step"},
                                              {0, 80, 0.3, false, " steps: "},
                                              {0, 80, 0.3, true, " steps"},
                                              {0, 80, 0.35, true, " steps"},
                                              {7, 1000, 0, true, "in every 7th step"},
                                              {20, 100, 0, false, NULL}};
  (void)state;
  for (u32 seed = 0; seed < 4 * LENGTH_OF(jobs); seed++) {
    const struct late_at_times *job = &jobs[seed / 4];
    struct cluster_options o = healthy_cpu();
    o.ranks = RANKS;
    o.steps = job->steps;
    o.noise = 0.05;
    o.seed = seed;
    o.late_input = late;
    delay_at_times(job, RANKS, seed, late);
    struct cluster *c = cluster_new(&o);
    put_on_hosts(c, 2);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *found = finding_of(r, "DIST.STRAGGLER");
    assert_int_equal(stragglers_in(r), !job->title ? 0 : job->host ? 2 : 1);
    assert_true((found != NULL) == (job->title != NULL));
    if (found) {
      assert_non_null(strstr(found->title, "node1"));
      if (!strstr(found->title, job->title))
        fail_msg("%s: not %s", found->title, job->title);
      assert_true(r->ranks[2].straggler && r->ranks[3].straggler == job->host);
      assert_true(isnan(r->ranks[2].late_every) ? !job->every
                                                : r->ranks[2].late_every == job->every);
      if (!(fabs(r->ranks[2].late_a_step_ms - 100) < 15))
        fail_msg("%s: %g ms", found->title, r->ranks[2].late_a_step_ms);
      double share = job->every ? 1.0 / job->every : job->share;
      assert_true(fabs(found->saving_s / r->training_steps - 0.1 * share) <
                  0.3 * share * 0.1 + 0.003);
    }
    cluster_end(r, c);
  }
}

/* Of few steps some are late, each tenth on one host of three, by little more than the cores let
 * others be: which steps these are tells their distance, and then who is last in them is no chance.
 */
static void late_host_in_few_steps(void **state) {
  enum { RANKS = 6, STEPS = 80, EVERY = 10 };
  static i64 late[STEPS * RANKS];
  (void)state;
  for (u32 seed = 0; seed < 40; seed++) {
    bool same_host = seed < 20; /* else it is another host each time */
    u32 random = seed * 7919 + 1;
    for (u32 s = 0; s < STEPS; s++)
      for (u32 r = 0; r < RANKS; r++) {
        u32 slow = same_host ? 1 : (s / EVERY + seed) % 3;
        late[s * RANKS + r] = (i64)(uniform_share(&random) * 60 * MS) +
                              (s % EVERY == 9 && r / 2 == slow ? 96 * MS : 0);
      }
    struct cluster_options o = healthy_cpu();
    o.ranks = RANKS;
    o.steps = STEPS;
    o.seed = seed;
    o.late_input = late;
    struct cluster *c = cluster_new(&o);
    put_on_hosts(c, 2);
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(stragglers_in(r), same_host ? 2 : 0);
    if (same_host)
      assert_non_null(strstr(finding_of(r, "DIST.STRAGGLER")->title, "in every 10th step"));
    cluster_end(r, c);
  }
}

/* Forward and backward are as long as the options say; all else, also all-reduces, is in no phase.
 */
static void mark_phases(struct cluster *c) {
  struct model *m = &c->model;
  u32 n = m->steps.n * m->n_ranks;
  m->phases = arena_array(&c->arena, n, sizeof(*m->phases));
  for (u32 i = 0; i < n; i++) {
    i64 forward = c->options.forward, backward = 2 * c->options.backward;
    m->phases[i] =
        (struct phase_times){.data = NS_UNKNOWN,
                             .forward = forward,
                             .backward = backward,
                             .other = m->steps.end[i] - m->steps.begin[i] - forward - backward};
  }
}

/* As in local SGD, ranks meet in every eighth step only. Rank 2 takes 100 ms longer for each step,
 * so it comes 800 ms late to each meeting: that is no work of its own in every eighth step. */
static void late_at_each_meeting(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.ranks = 4;
  o.steps = 160;
  o.meets_every = 8;
  o.transfer = 300 * MS; /* which takes longer on all */
  o.extra_input[2] = 100 * MS;
  struct cluster *c = cluster_new(&o);
  mark_phases(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "DIST.STRAGGLER");
  const struct rank_result *late = &r->ranks[2];
  assert_int_equal(stragglers_in(r), 1);
  assert_true(late->straggler && !late->late_at_times && isnan(late->late_every));
  assert_true(fabs(late->lateness_ms - 800) < 1 && fabs(late->late_a_step_ms - 100) < 1);
  assert_true(fabs(late->imposed_wait_ms - 100) < 1);
  assert_non_null(strstr(found->title, "keeps its peers waiting: "));
  assert_true(fabs(found->saving_s / r->training_steps - 0.1) < 0.002);
  /* What the meetings take longer is the transfer: the wait is the rank's. */
  const struct finding *longer = finding_of(r, "TIMING.JITTER");
  assert_true(fabs(longer->saving_s - 20 * 0.3) < 0.6);
  assert_non_null(strstr(longer->evidence, "20 of them come every 8 steps, from step 7 on; they "
                                           "hold more collectives than most steps."));
  cluster_end(r, c);
}

/* Ranks meet once, after 60 steps: what they wait there for one is told by step, too. */
static void late_at_the_only_meeting(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.ranks = 4;
  o.steps = o.meets_every = 60;
  o.noise = 0.02;
  o.extra_input[2] = 100 * MS;
  struct cluster *c = cluster_new(&o);
  mark_phases(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "DIST.STRAGGLER");
  assert_int_equal(stragglers_in(r), 1);
  assert_true(r->ranks[2].straggler);
  assert_true(fabs(r->ranks[2].imposed_wait_ms - 100) < 5);
  assert_true(fabs(found->saving_s / r->training_steps - 0.1) < 0.005);
  cluster_end(r, c);
}

/* Each rank is late in a fifth of the steps, for a reason that has nothing to do with it. */
static void lateness_of_all_names_nobody(void **state) {
  enum { MOST_RANKS = 8, STEPS = 80 };
  static i64 late[STEPS * MOST_RANKS];
  (void)state;
  u32 alarms = 0;
  for (u32 seed = 0; seed < 100; seed++) {
    struct cluster_options o = healthy_cpu();
    u32 random = seed * 7919 + 1;
    o.ranks = seed % 2 ? 8 : 3;
    o.steps = STEPS;
    o.seed = seed;
    o.noise = 0.1;
    o.late_input = late;
    for (u32 i = 0; i < STEPS * o.ranks; i++)
      late[i] = uniform_share(&random) < 0.2 ? (i64)(-100 * MS * log(uniform_share(&random))) : 0;
    struct cluster *c;
    struct results *r = run(o, &c);
    alarms += stragglers_in(r) > 0;
    cluster_end(r, c);
  }
  assert_true(alarms <= 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(late_in_a_stretch),        cmocka_unit_test(late_in_some_steps),
      cmocka_unit_test(late_host_in_few_steps),   cmocka_unit_test(late_at_each_meeting),
      cmocka_unit_test(late_at_the_only_meeting), cmocka_unit_test(lateness_of_all_names_nobody)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
