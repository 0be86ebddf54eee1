/* SPDX-License-Identifier: MIT
 *
 * Which ranks are named as stragglers, and which are not.
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

static void slow_compute_is_named_alone(void **state) {
  (void)state;
  for (u32 seed = 0; seed < 20; seed++) {
    struct cluster_options o = seed % 2 ? healthy_gpu() : healthy_cpu();
    struct cluster *c;
    o.noise = 0.3;
    o.seed = seed;
    o.slow[2] = 0.4;
    struct results *r = run(o, &c);
    assert_int_equal(stragglers_in(r), 1);
    assert_true(r->ranks[2].straggler);
    assert_int_equal(r->ranks[2].reason, STRAGGLER_SLOW_COMPUTE);
    assert_true(r->ranks[2].p_value < 1e-6 && r->ranks[2].z > 5);
    assert_true(fabs(r->ranks[2].rel_slowdown - 0.4) < 0.1);
    cluster_end(r, c);
  }
}

/* No rank is slow, but the times are noisy: at most one false alarm in 40 such runs. */
static void noise_names_nobody(void **state) {
  (void)state;
  u32 alarms = 0;
  for (u32 seed = 0; seed < 40; seed++) {
    struct cluster_options o = seed % 2 ? healthy_gpu() : healthy_cpu();
    struct cluster *c;
    o.noise = 0.5;
    o.seed = 100 + seed;
    struct results *r = run(o, &c);
    alarms += stragglers_in(r) > 0;
    cluster_end(r, c);
  }
  assert_true(alarms <= 1);
}

static void several_are_named(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c;
  o.noise = 0.05;
  o.slow[1] = 0.5;
  o.slow[6] = 0.3;
  struct results *r = run(o, &c);
  assert_int_equal(stragglers_in(r), 2);
  assert_true(r->ranks[1].straggler && r->ranks[6].straggler);
  assert_true(r->ranks[1].imposed_wait_ms > r->ranks[6].imposed_wait_ms);
  cluster_end(r, c);
}

/* Rank 3 comes last in every step for what it waits for: with its work as fast as its peers' the
 * step is as long. In another job rank 2 does more, and is named. */
static void who_waits_itself_is_not_named(void **state) {
  (void)state;
  u32 told = 0;
  for (u32 i = 0; i < 4; i++) {
    struct cluster_options o = i % 2 ? healthy_gpu() : healthy_cpu();
    struct cluster *c;
    o.noise = 0.02;
    o.seed = i;
    o.waits[3] = i < 2 ? 60 * MS : 0;
    o.slow[2] = i < 2 ? 0 : 0.2;
    struct results *r = run(o, &c);
    const struct rank_result *late = &r->ranks[i < 2 ? 3 : 2];
    assert_true(late->slowest_fraction > 0.9 && late->p_value < 1e-6);
    assert_int_equal(stragglers_in(r), i < 2 ? 0 : 1);
    assert_true((late->no_straggler != NULL) == (i < 2));
    const struct finding *uneven = finding_of(r, "DIST.LOAD_IMBALANCE");
    assert_true(i >= 2 || !uneven || strstr(uneven->evidence, "rank 3 comes last in "));
    told += i < 2 && uneven;
    for (u32 k = 0; k < r->n_findings; k++)
      assert_true(r->findings[k].n_ranks == 0 || i >= 2);
    cluster_end(r, c);
  }
  assert_true(told > 0);
}

static void too_little_to_matter(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c;
  o.slow[5] = 0.02; /* last in every step, by 6 ms of 316 */
  struct results *r = run(o, &c);
  assert_int_equal(stragglers_in(r), 0);
  assert_true(r->ranks[5].slowest_fraction == 1);
  cluster_end(r, c);
}

static void within_the_clock_error(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[5] = 0.1; /* 30 ms */
  struct cluster *c = cluster_new(&o);
  for (u32 r = 0; r < o.ranks; r++)
    c->model.ranks[r].clock.reading_us = 50000;
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(stragglers_in(r), 0);
  cluster_end(r, c);
}

/* The clocks of two hosts are known to 50 ms against each other, and are 40 ms apart. Each rank's
 * own clock still shows which of them takes longer, here by 30 ms, and that no other does. */
static void within_the_error_between_hosts(void **state) {
  (void)state;
  for (u32 slow = 0; slow <= 1; slow++) {
    struct cluster_options o = healthy_gpu();
    o.slow[5] = 0.1 * slow;
    struct cluster *c = cluster_new(&o);
    for (u32 r = 0; r < o.ranks; r++) {
      c->model.ranks[r].clock.domain = r % 2;
      c->model.ranks[r].clock.error_us = r % 2 ? 50000 : 0;
    }
    for (u32 i = 0; i < c->model.n_arrivals; i++)
      if (c->model.arrivals[i].rank % 2 == 0) {
        c->model.arrivals[i].start += 40 * MS;
        c->model.arrivals[i].end += 40 * MS;
      }
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(stragglers_in(r), slow);
    assert_int_equal(r->ranks[5].straggler, slow);
    cluster_end(r, c);
  }
}

/* The two ranks of one host are slow by turns: neither comes last in most steps, but their host
 * does. */
static void ranks_of_a_slow_host(void **state) {
  (void)state;
  for (u32 seed = 0; seed < 10; seed++) {
    struct cluster_options o = healthy_gpu();
    o.noise = 0.3;
    o.seed = seed;
    o.slow[4] = o.slow[5] = 0.3;
    struct cluster *c = cluster_new(&o);
    for (u32 r = 0; r < o.ranks; r++) {
      c->model.ranks[r].clock.domain = r / 2;
      c->model.ranks[r].clock.error_us = 1;
    }
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(stragglers_in(r), 2);
    assert_true(r->ranks[4].straggler && r->ranks[5].straggler);
    cluster_end(r, c);
  }
}

/* Two of three hosts are slow alike: each saves nothing without the other, and says so. */
static void two_slow_hosts(void **state) {
  static const char *const hosts[] = {"node0", "node1", "node2"};
  (void)state;
  for (u32 seed = 0; seed < 12; seed++) {
    struct cluster_options o = seed % 2 ? healthy_gpu() : healthy_cpu();
    bool slow = seed < 8;
    o.ranks = 6;
    o.noise = 0.1;
    o.seed = seed;
    for (u32 rank = 0; rank < 4; rank++)
      o.slow[rank] = slow ? 0.5 : 0;
    struct cluster *c = cluster_new(&o);
    for (u32 r = 0; r < o.ranks; r++) {
      c->model.ranks[r].clock.domain = r / 2;
      c->model.ranks[r].clock.error_us = 1;
      c->model.ranks[r].host = hosts[r / 2];
    }
    struct results *r = cluster_analyse(c, NULL);
    for (u32 rank = 0; rank < o.ranks; rank++)
      assert_int_equal(r->ranks[rank].straggler, slow && rank < 4);
    const struct finding *found = finding_of(r, "DIST.STRAGGLER");
    assert_true((found != NULL) == slow);
    if (slow) {
      assert_true(fabs(found->saving_s / r->training_steps - 0.150) < 0.02);
      assert_string_equal(found->together, "ranks 0-3");
      assert_int_equal(found->severity, SEVERITY_CRITICAL);
    }
    cluster_end(r, c);
  }
}

/* Two ranks of three, or of six on hosts of their own, are slow alike and come last by turns: both
 * are named, each with how late it is after those that are not slow. Where none is slow, none is.
 */
static void two_slow_alike(void **state) {
  (void)state;
  for (u32 seed = 0; seed < 20; seed++) {
    struct cluster_options o = healthy_cpu();
    o.ranks = seed % 2 ? 3 : 6;
    o.noise = 0.1;
    o.seed = seed;
    bool slow = seed < 16;
    if (slow)
      o.slow[1] = o.slow[2] = 0.5;
    struct cluster *c;
    struct results *r = run(o, &c);
    assert_int_equal(stragglers_in(r), slow ? 2 : 0);
    for (u32 rank = 0; rank < o.ranks; rank++)
      assert_int_equal(r->ranks[rank].straggler, slow && (rank == 1 || rank == 2));
    double late[] = {r->ranks[1].lateness_ms, r->ranks[2].lateness_ms};
    assert_true(!slow || fabs(late[0] / late[1] - 1) < 0.1);
    cluster_end(r, c);
  }
}

/* Threads that wait for a core now and then make the longest wait of a step, at its second
 * collective, on any rank. Rank 1 is late at the first, by less, in every step, and its peers go on
 * only after it: it alone is named, with that delay. */
static void lateness_that_repeats_beside_longer_waits(void **state) {
  enum { RANKS = 3, STEPS = 60 };
  static i64 late[RANKS * STEPS];
  (void)state;
  for (u32 seed = 0; seed < 40; seed++) {
    struct cluster_options o = healthy_cpu();
    u32 random = seed * 7919 + 1;
    bool slow = seed < 20;
    for (u32 i = 0; i < RANKS * STEPS; i++)
      late[i] = (i64)(-40 * MS * log(uniform_share(&random)));
    o.waits_for_first = true;
    o.ranks = RANKS;
    o.steps = STEPS;
    o.warmup = 0;
    o.seed = seed;
    o.noise = 0.02;
    o.late_backward = late;
    o.slow[1] = slow ? 0.15 : 0; /* 30 ms before the first */
    struct cluster *c;
    struct results *r = run(o, &c);
    assert_int_equal(stragglers_in(r), slow);
    assert_true(r->ranks[1].straggler == slow);
    assert_true(!slow || fabs(r->ranks[1].lateness_ms - 30) < 3);
    cluster_end(r, c);
  }
}

/* A gloo call takes part when it is made. Its worker may begin later, as that of rank 2 does here
 * with all second calls: rank 1, which called last, is who the others wait for. */
static void who_calls_last_is_last(void **state) {
  enum { RANKS = 4, STEPS = 20, LAST = 1, BUSY = 2 };
  static i64 late[RANKS * STEPS];
  (void)state;
  for (u32 i = 0; i < RANKS * STEPS; i++)
    late[i] = i % RANKS == LAST ? 30 * MS : 0;
  struct cluster_options o = healthy_cpu();
  o.ranks = RANKS;
  o.steps = STEPS;
  o.warmup = 0;
  o.late_backward = late;
  struct cluster *c = cluster_new(&o);
  for (u32 i = 0; i < c->model.n_collectives; i++) {
    struct collective *second = &c->model.collectives[i];
    struct arrival *busy = &c->model.arrivals[second->first_arrival + BUSY];
    if (second->seq % 2 == 0)
      continue;
    busy->start = second->last_start + MS;
    second->last_start = busy->start;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(r->ranks[BUSY].last_collectives, 0);
  assert_int_equal(r->ranks[LAST].last_collectives, STEPS);
  assert_true(fabs(r->ranks[LAST].last_wait_ms - 30) < 0.1);
  cluster_end(r, c);
}

static void reasons(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c;
  o.extra_input[3] = 80 * MS;
  struct results *r = run(o, &c);
  assert_true(r->ranks[3].straggler);
  assert_int_equal(r->ranks[3].reason, STRAGGLER_SLOW_INPUT);
  cluster_end(r, c);
  o = healthy_gpu();
  o.late_launch[4] = 200 * MS; /* 100 of them hidden behind F */
  r = run(o, &c);
  assert_int_equal(stragglers_in(r), 1);
  assert_int_equal(r->ranks[4].reason, STRAGGLER_LATE_LAUNCH);
  cluster_end(r, c);
}

/* One barrier, for which rank 0 was seconds late, costs more than everything else. The evidence
 * names the place where the straggler itself was last. */
static void evidence_names_where_it_is_late(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[2] = 0.4;
  struct cluster *c = cluster_new(&o);
  struct collective *checkpoint = &c->model.collectives[2 * 30 + 1];
  checkpoint->op = TSCOPE_OP_BARRIER;
  checkpoint->bytes = 4;
  for (u32 i = 0; i < checkpoint->n_arrivals; i++) {
    struct arrival *arrival = &c->model.arrivals[checkpoint->first_arrival + i];
    if (arrival->rank == 0)
      arrival->start += 5000 * MS;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_true(r->ranks[2].straggler);
  assert_non_null(strstr(r->ranks[2].collective, "all_reduce"));
  cluster_end(r, c);
}

/* Ranks 0,1 and 2,3 meet in pairs, then 0,2 and 1,3. Rank 0 is slow: 1 is late to meet 3 only
 * because it waited for 0, and must not be named. */
static void victims_are_not_named(void **state) {
  enum { RANKS = 4, STEPS = 40, PERIOD = 100 };
  (void)state;
  static struct collective collectives[STEPS * 4];
  static struct arrival arrivals[STEPS * 8];
  static struct span spans[RANKS][STEPS * 2];
  static struct interval compute[RANKS][STEPS], comm[RANKS][STEPS];
  static i64 begins[STEPS * RANKS], ends[STEPS * RANKS];
  static struct rank ranks[RANKS];
  static u32 members[4][2] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}};
  struct comm comms[4];
  struct cluster c = {0};
  struct timeline timelines[RANKS];
  struct lane lane = {true, 0, "0"};
  memset(timelines, 0, sizeof(timelines));
  for (u32 i = 0; i < 4; i++)
    comms[i] = (struct comm){.size = 2, .members = members[i], .backend = TSCOPE_BACKEND_NCCL};
  for (u32 r = 0; r < RANKS; r++) {
    ranks[r] = (struct rank){.rank = r, .closed = true, .collective_calls = 1};
    timelines[r] = (struct timeline){.rank = r,
                                     .spans = spans[r],
                                     .n_spans = STEPS * 2,
                                     .lanes = &lane,
                                     .n_lanes = 1,
                                     .compute = {compute[r], STEPS},
                                     .comm = {comm[r], STEPS},
                                     .has_compute = true,
                                     .has_comm = true,
                                     .on_gpu = true,
                                     .ring_begin = NS_UNKNOWN};
  }
  u32 noise = 1;
  for (u32 s = 0; s < STEPS; s++) {
    i64 ready[RANKS], t0 = s * PERIOD * MS;
    for (u32 r = 0; r < RANKS; r++) {
      ready[r] = t0 + (r == 0 ? 50 : 20) * MS + random_below(&noise, 1000);
      compute[r][s] = (struct interval){t0, ready[r]};
      comm[r][s].start = ready[r];
      begins[s * RANKS + r] = t0;
      ends[s * RANKS + r] = t0 + PERIOD * MS;
    }
    for (u32 k = 0; k < 4; k++) {
      i64 last = INT64_MIN, end_at;
      u32 index = s * 4 + k;
      for (u32 i = 0; i < 2; i++)
        last = MAX(ready[members[k][i]], last);
      end_at = last + MS;
      for (u32 i = 0; i < 2; i++) {
        u32 r = members[k][i];
        arrivals[index * 2 + i] = (struct arrival){.start = ready[r],
                                                   .end = end_at,
                                                   .rank = r,
                                                   .collective = index,
                                                   .step = (i32)s,
                                                   .op = TSCOPE_OP_ALLREDUCE};
        spans[r][s * 2 + k / 2] = (struct span){.start = ready[r],
                                                .end = end_at,
                                                .link = index * 2 + i,
                                                .launch = INDEX_NONE,
                                                .kind = SPAN_COLLECTIVE};
        ready[r] = end_at + random_below(&noise, 1000);
        comm[r][s].end = end_at;
      }
      collectives[index] = (struct collective){.comm = k,
                                               .bytes = 8,
                                               .first_arrival = index * 2,
                                               .n_arrivals = 2,
                                               .last_start = last,
                                               .step = (i32)s,
                                               .op = TSCOPE_OP_ALLREDUCE,
                                               .complete = true};
    }
  }
  c.timelines = timelines;
  c.model = (struct model){.world_size = RANKS,
                           .n_ranks = RANKS,
                           .n_comms = 4,
                           .n_collectives = STEPS * 4,
                           .n_arrivals = STEPS * 8,
                           .ranks = ranks,
                           .comms = comms,
                           .collectives = collectives,
                           .arrivals = arrivals,
                           .steps = {.n = STEPS, .begin = begins, .end = ends},
                           .clock_aligned = true,
                           .clock_residual_us = 1};
  struct results *r = cluster_analyse(&c, NULL);
  assert_true(r->ranks[0].straggler);
  assert_int_equal(stragglers_in(r), 1);
  results_free(r);
}

static void nothing_is_named_without_steps(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c;
  o.slow[3] = 0.5;
  o.no_steps = true;
  struct results *r = run(o, &c);
  assert_int_equal(stragglers_in(r), 0);
  assert_true(isnan(r->dist_steps) && isnan(r->step_median_ms) && r->whole_run);
  assert_true(r->ov_exposed_ms > 0); /* over the whole run */
  cluster_end(r, c);
}

/* In most steps a device does nothing, in others it does the work of several: its median means
 * nothing. */
static void bunched_compute_is_compared_with_nobody(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  c->timelines[0].compute.n /= 3;
  struct results *r = cluster_analyse(c, NULL);
  assert_true(r->ranks[0].mean_compute_ms > 0 && r->ranks[0].median_compute_ms == 0);
  assert_true(isnan(r->ranks[0].rel_slowdown));
  assert_true(fabs(r->ranks[1].rel_slowdown) < 1e-9);
  cluster_end(r, c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slow_compute_is_named_alone),
                                     cmocka_unit_test(noise_names_nobody),
                                     cmocka_unit_test(several_are_named),
                                     cmocka_unit_test(who_waits_itself_is_not_named),
                                     cmocka_unit_test(too_little_to_matter),
                                     cmocka_unit_test(within_the_clock_error),
                                     cmocka_unit_test(within_the_error_between_hosts),
                                     cmocka_unit_test(ranks_of_a_slow_host),
                                     cmocka_unit_test(two_slow_alike),
                                     cmocka_unit_test(two_slow_hosts),
                                     cmocka_unit_test(lateness_that_repeats_beside_longer_waits),
                                     cmocka_unit_test(reasons),
                                     cmocka_unit_test(who_calls_last_is_last),
                                     cmocka_unit_test(evidence_names_where_it_is_late),
                                     cmocka_unit_test(victims_are_not_named),
                                     cmocka_unit_test(nothing_is_named_without_steps),
                                     cmocka_unit_test(bunched_compute_is_compared_with_nobody)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
