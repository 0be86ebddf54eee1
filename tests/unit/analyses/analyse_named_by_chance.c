/* SPDX-License-Identifier: MIT
 *
 * How often somebody is named where nobody is slow and cores are scarce, and how often who is slow
 * is found there.
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scarce_cores_name_nobody),
                                     cmocka_unit_test(who_is_slow_is_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
