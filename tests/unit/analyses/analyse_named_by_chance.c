/* SPDX-License-Identifier: MIT
 *
 * How often somebody is named where nobody is slow and cores are scarce, or lateness lasts from
 * step to step, and how often who is slow is found there.
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

/* How late ranks are, in parts of a mean of `late_ms`: exponentially distributed, as waits for a
 * core are; `follows` of it is that of the step before, `shared` of it is that of the host. */
struct job {
  u32 ranks, a_host, steps;
  double late_ms, follows, shared;
  bool own_clocks; /* of hosts, not known well enough to say who came last */
};

static double exponential(u32 *random) {
  return -log(uniform_share(random));
}

static void draw(const struct job *job, u32 seed, i64 *late) {
  double of_host[CLUSTER_RANKS] = {0}, of_rank[CLUSTER_RANKS] = {0};
  u32 random = seed * 7919 + 1;
  for (u32 k = 0; k < 8; k++)
    uniform_share(&random);
  for (u32 s = 0; s < job->steps; s++) {
    for (u32 h = 0; h * job->a_host < job->ranks; h++)
      if (s == 0 || uniform_share(&random) >= job->follows)
        of_host[h] = exponential(&random);
    for (u32 r = 0; r < job->ranks; r++) {
      if (s == 0 || uniform_share(&random) >= job->follows)
        of_rank[r] = exponential(&random);
      double all = job->shared * of_host[r / job->a_host] + (1 - job->shared) * of_rank[r];
      late[s * job->ranks + r] = (i64)(all * job->late_ms * MS);
    }
  }
}

struct counts {
  u32 others,
      found; /* runs in which an innocent is named; in which all slow ranks are, and nobody else */
};

/* `slow_ranks` from rank 2 on are later by so much in each step, of 330 ms. */
static struct counts count_runs(const struct job *job, u32 runs, u32 slow_ranks, double slow_ms) {
  static i64 late[CLUSTER_RANKS * 400];
  static char hosts[CLUSTER_RANKS][16];
  struct counts counts = {0};
  for (u32 seed = 0; seed < runs; seed++) {
    struct cluster_options o = healthy_cpu();
    draw(job, seed, late);
    o.ranks = job->ranks;
    o.steps = job->steps;
    o.seed = seed;
    o.noise = 0.01;
    o.late_input = late;
    o.no_overlap = true;
    for (u32 r = 2; r < 2 + slow_ranks; r++)
      o.extra_input[r] = (i64)(slow_ms * MS);
    struct cluster *c = cluster_new(&o);
    for (u32 r = 0; r < job->ranks; r++) {
      u32 host = r / job->a_host;
      snprintf(hosts[host], sizeof(hosts[host]), "node%u", host);
      c->model.ranks[r].clock.domain = host;
      c->model.ranks[r].clock.error_us = job->own_clocks && host ? 100e3 : 0;
      c->model.ranks[r].host = hosts[host];
    }
    struct results *r = cluster_analyse(c, NULL);
    u32 n = stragglers_in(r), right = 0;
    for (u32 i = 2; i < 2 + slow_ranks; i++)
      right += r->ranks[i].straggler;
    counts.others += n > right;
    counts.found += right == slow_ranks && n == right;
    cluster_end(r, c);
  }
  return counts;
}

/* By itself, with its host, following the step before. The chance of any name is one in a hundred:
 * of 480 runs, 10 are named by chance in one series of fifty. */
static void scarce_cores_name_nobody(void **state) {
  static const u32 sizes[][2] = {{3, 3}, {4, 2}, {6, 2}, {8, 2}};
  (void)state;
  u32 others = 0;
  for (u32 k = 0; k < LENGTH_OF(sizes); k++)
    for (u32 steps = 20; steps <= 80; steps += 60)
      for (u32 v = 0; v < 8; v++) {
        struct job job = {sizes[k][0],     sizes[k][1],     steps, 60,
                          v & 1 ? 0.5 : 0, v & 2 ? 0.5 : 0, v & 4};
        others += count_runs(&job, 15, 0, 0).others;
      }
  assert_true(others < 10);
}

/* One rank or all of a host, a tenth or a fifth of the step late. */
static void who_is_slow_is_found(void **state) {
  static const struct {
    struct job job;
    u32 slow_ranks, least;
    double slow_ms;
  } jobs[] = {
      {{4, 2, 60, 10, 0, 0.5, false}, 1, 18, 33},  {{4, 2, 60, 10, 0.5, 0.5, true}, 1, 18, 33},
      {{6, 2, 60, 10, 0.5, 0.5, true}, 2, 18, 33}, {{6, 2, 60, 20, 0, 0.5, true}, 2, 18, 66},
      {{8, 2, 80, 20, 0.5, 0.5, true}, 2, 18, 66}, {{4, 1, 60, 20, 0, 0, true}, 1, 18, 66}};
  (void)state;
  for (u32 i = 0; i < LENGTH_OF(jobs); i++) {
    struct counts n = count_runs(&jobs[i].job, 20, jobs[i].slow_ranks, jobs[i].slow_ms);
    if (n.found < jobs[i].least || n.others)
      fail_msg("job %u: %u of 20 found, others in %u", i, n.found, n.others);
  }
}

static double normal(u32 *seed) {
  double size = sqrt(-2 * log(uniform_share(seed)));
  return size * cos(2 * M_PI * uniform_share(seed));
}

/* How late each rank is in each step, in a job in which none is slower than its peers: `follows` of
 * a step's lateness is that of the step before; or, if `stretch`, ranks lose their cores for
 * stretches of so many steps on average, a fifth of the time. */
struct chance_job {
  u32 ranks, steps, stretch;
  double follows;
  double factor; /* if given, work takes longer or shorter by a factor: its logarithm's deviation */
  double slower; /* then rank 1's work is so many times its peers' */
};

static void draw_lateness(const struct chance_job *job, u32 seed, i64 *late) {
  for (u32 r = 0; r < job->ranks; r++) {
    u32 random = seed * 7919 + r * 104729 + 1;
    for (u32 k = 0; k < 8; k++)
      uniform_share(&random);
    double state = normal(&random);
    bool off = uniform_share(&random) < 0.2;
    for (u32 s = 0; s < job->steps; s++) {
      double lateness = state;
      if (job->stretch)
        lateness = 4 * off + 0.3 * normal(&random);
      double work = r == 1 && job->slower ? job->slower : 1;
      late[s * job->ranks + r] = job->factor ? (i64)(work * exp(job->factor * state) * 100 * MS)
                                             : (i64)((10 + lateness) * 100 * MS);
      state = job->follows * state + sqrt(1 - job->follows * job->follows) * normal(&random);
      off = uniform_share(&random) <
            (off ? 1 - 1.0 / fmax(job->stretch, 1) : 0.25 / fmax(job->stretch, 1));
    }
  }
}

/* In how many runs somebody is named; or, if rank 1 really is slower, or `slow_ns` later in each
 * step, that rank alone. */
static u32 count_named(const struct chance_job *job, u32 runs, i64 slow_ns) {
  static i64 late[64 * 400];
  u32 n = 0;
  for (u32 seed = 0; seed < runs; seed++) {
    struct cluster_options o = healthy_cpu();
    draw_lateness(job, seed, late);
    o.ranks = job->ranks;
    o.steps = job->steps;
    o.warmup = job->factor > 0;
    o.late_input = late;
    o.extra_input[1] = slow_ns;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    n += slow_ns || job->slower ? stragglers_in(r) == 1 && r->ranks[1].straggler
                                : stragglers_in(r) > 0;
    cluster_end(r, c);
  }
  return n;
}

/* A rank that is late in one step is late in the next too, because something has its core: that is
 * no more trials than there were such times. No more alarms than the level says, in all such jobs
 * together, and hardly more in any one. Taken as independent, such steps gave alarms in up to half
 * of the runs. */
static void lateness_that_lasts_names_nobody(void **state) {
  static const struct chance_job jobs[] = {
      {2, 8, 0, 0},     {2, 8, 0, 0.3},   {2, 8, 0, 0.6},   {4, 8, 0, 0.6},   {64, 8, 0, 0.6},
      {2, 16, 0, 0.6},  {4, 16, 0, 0.8},  {8, 16, 0, 0.8},  {2, 40, 0, 0.8},  {8, 40, 0, 0.8},
      {2, 100, 0, 0.8}, {4, 100, 0, 0.9}, {2, 400, 0, 0.9}, {4, 400, 0, 0.9}, {2, 8, 2, 0},
      {8, 8, 2, 0},     {2, 40, 3, 0},    {4, 40, 3, 0},    {2, 100, 4, 0},   {8, 100, 4, 0}};
  enum { RUNS = 30, JOBS = LENGTH_OF(jobs) };
  (void)state;
  u32 all = 0;
  for (u32 i = 0; i < JOBS; i++) {
    u32 alarms = count_named(&jobs[i], RUNS, 0);
    all += alarms;
    if (alarms > 2)
      fail_msg("%u alarms of %u: %u ranks, %u steps, stretches of %u, %g", alarms, RUNS,
               jobs[i].ranks, jobs[i].steps, jobs[i].stretch, jobs[i].follows);
  }
  assert_true(all <= 0.01 * RUNS * JOBS);
}

/* A rank that really is later, by so many standard deviations, keeps its name. */
static void lateness_that_stays_is_named(void **state) {
  static const struct {
    struct chance_job job;
    i64 deviations;
  } jobs[] = {{{2, 8, 0, 0}, 20},   {{4, 8, 0, 0}, 8},    {{2, 16, 0, 0}, 6},
              {{8, 16, 0, 0.3}, 5}, {{2, 40, 0, 0.3}, 5}, {{8, 40, 0, 0.6}, 5}};
  (void)state;
  for (u32 i = 0; i < LENGTH_OF(jobs); i++) {
    u32 n = count_named(&jobs[i].job, 20, jobs[i].deviations * 100 * MS);
    if (n < 18)
      fail_msg("%u of 20: %u ranks, %u steps", n, jobs[i].job.ranks, jobs[i].job.steps);
  }
}

/* Few steps on cores that others take as well: in each, work takes longer or shorter by a factor.
 * The rank with eight times its peers' work is last in all of them and keeps its name; where no
 * rank has more, nobody gets one. */
static void few_steps_on_busy_cores(void **state) {
  static const struct chance_job jobs[] = {
      {2, 8, 0, 0, 0.3, 8}, {3, 8, 0, 0, 0.3, 8}, {3, 8, 0, 0.3, 0.3, 8}, {8, 8, 0, 0, 0.3, 8}};
  (void)state;
  u32 alarms = 0;
  for (u32 i = 0; i < LENGTH_OF(jobs); i++) {
    struct chance_job alike = jobs[i];
    alike.slower = 0;
    u32 n = count_named(&jobs[i], 40, 0);
    alarms += count_named(&alike, 40, 0);
    if (n < 36)
      fail_msg("%u of 40: %u ranks, %g", n, jobs[i].ranks, jobs[i].follows);
  }
  assert_true(alarms <= 2);
}

/* Where each step's lateness is in part that of the step before: a stretch in which one is
 * later than any of them ever is outside of it is no chance. */
static void late_in_a_stretch_beyond_all_others(void **state) {
  static const struct chance_job job = {3, 60, 0, 0.4, 0, 0};
  static i64 late[3 * 60];
  (void)state;
  u32 named = 0;
  for (u32 seed = 0; seed < 20; seed++) {
    struct cluster_options o = healthy_cpu();
    draw_lateness(&job, seed, late);
    for (u32 s = 0; s < 20; s++)
      late[s * job.ranks + 1] += 600 * MS;
    o.ranks = job.ranks;
    o.steps = job.steps;
    o.warmup = 0;
    o.late_input = late;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    named += stragglers_in(r) == 1 && r->ranks[1].straggler && r->ranks[1].n_late == 1;
    cluster_end(r, c);
  }
  assert_true(named >= 18);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scarce_cores_name_nobody),
                                     cmocka_unit_test(who_is_slow_is_found),
                                     cmocka_unit_test(lateness_that_lasts_names_nobody),
                                     cmocka_unit_test(lateness_that_stays_is_named),
                                     cmocka_unit_test(few_steps_on_busy_cores),
                                     cmocka_unit_test(late_in_a_stretch_beyond_all_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
