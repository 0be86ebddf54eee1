/* SPDX-License-Identifier: MIT
 *
 * Stragglers that are not simply last in most steps: many, at several places, at a broadcast,
 * beside hosts without cores.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse_cluster.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "model/span_call_sites.h"

static struct results *run(struct cluster_options o, struct cluster **c) {
  *c = cluster_new(&o);
  return cluster_analyse(*c, NULL);
}

/* In three of five steps the host of another rank is late by 150 ms, of each in its turn; the
 * device of rank 2, which takes 75 ms longer for a step, then keeps nobody waiting. In the others
 * it is last by these 75 ms: 30 ms a step. If it is the host that takes longer, nothing says that
 * it is no chance. */
static void a_slow_device_beside_hosts_without_cores(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  i64 late[50 * 8] = {0};
  for (u32 step = 0; step < o.steps; step++) {
    u32 turn = step * 3 / 5 % 7;
    if (step * 3 / 5 != (step + 1) * 3 / 5)
      late[step * 8 + (turn < 2 ? turn : turn + 1)] = 150 * MS;
  }
  o.late_input = late;
  for (u32 of_device = 0; of_device < 2; of_device++) {
    struct cluster *c;
    o.slow[2] = of_device ? 0.25 : 0;
    o.extra_input[2] = of_device ? 0 : 75 * MS;
    struct results *r = run(o, &c);
    assert_int_equal(stragglers_in(r), of_device);
    if (of_device) {
      assert_true(r->ranks[2].straggler && r->ranks[2].slowest_fraction < 0.5);
      assert_int_equal(r->ranks[2].reason, STRAGGLER_SLOW_COMPUTE);
      assert_true(r->ranks[2].longer_compute_steps ==
                  r->ranks[2].slowest_count / r->ranks[2].slowest_fraction);
      assert_true(fabs(r->straggler_groups[0].saving.ms - 30) < 2);
    }
    cluster_end(r, c);
  }
}

/* So many of 24 ranks take 75 ms longer for a step, each for itself; together that is what all
 * save. */
static void many_are_named(void **state) {
  (void)state;
  for (u32 many = 7; many <= 11; many++) {
    struct cluster_options o = healthy_gpu();
    struct cluster *c;
    o.ranks = 24;
    for (u32 rank = 0; rank < many; rank++)
      o.slow[2 * rank] = 0.25;
    struct results *r = run(o, &c);
    assert_int_equal(stragglers_in(r), many);
    u32 told = 0;
    for (u32 i = 0; i < r->n_findings; i++) {
      const struct finding *found = &r->findings[i];
      if (strcmp(finding_id_words[found->id], "DIST.STRAGGLER") != 0)
        continue;
      told += found->n_ranks;
      assert_true(fabs(found->saving_s / r->training_steps - 0.075) < 0.002);
    }
    assert_int_equal(told, many);
    cluster_end(r, c);
  }
}

/* Rank 1 is 60 ms late at the first all-reduce of each step, and rank 2 at the second, for which it
 * begins to work after the first: a step gets 60 ms shorter without either. */
static void two_are_late_at_places_of_their_own(void **state) {
  (void)state;
  for (u32 ranks = 4; ranks <= 8; ranks += 2) {
    struct cluster_options o = healthy_cpu();
    i64 late[50 * 8] = {0};
    o.ranks = ranks;
    o.waits_for_first = true;
    o.late_forward[1] = 60 * MS;
    for (u32 step = 0; step < o.steps; step++)
      late[step * ranks + 2] = 60 * MS;
    o.late_backward = late;
    struct cluster *c;
    struct results *r = run(o, &c);
    assert_int_equal(stragglers_in(r), 2);
    assert_true(r->ranks[1].straggler && r->ranks[2].straggler);
    assert_true(fabs(r->straggler_groups[0].saving.ms - 60) < 1);
    assert_true(fabs(r->straggler_groups[1].saving.ms - 60) < 1);
    cluster_end(r, c);
  }
}

/* Rank 2 comes late to broadcasts. If it sends, all others are still there when it comes; if it
 * hands on, those are to whom it does (odd ranks); if it only receives, all have left before. */
static void who_sends_late_is_named(void **state) {
  enum { SENDS, HANDS_ON, RECEIVES };
  (void)state;
  for (u32 part = SENDS; part <= RECEIVES; part++) {
    struct cluster_options o = healthy_cpu();
    o.slow[2] = 0.25;
    struct cluster *c = cluster_new(&o);
    for (u32 i = 0; i < c->model.n_collectives; i++)
      c->model.collectives[i].op = TSCOPE_OP_BROADCAST;
    for (u32 i = 0; i < c->model.n_arrivals; i++) {
      struct arrival *arrival = &c->model.arrivals[i];
      arrival->op = TSCOPE_OP_BROADCAST;
      if (part != SENDS && arrival->rank != 2 && (part == RECEIVES || arrival->rank % 2 == 0))
        arrival->end = arrival->start + MS;
    }
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(stragglers_in(r), part != RECEIVES);
    assert_int_equal(r->ranks[2].straggler, part != RECEIVES);
    assert_false(r->ranks[2].of_path); /* the broadcast shows it */
    cluster_end(r, c);
  }
}

/* The worker of rank 1 takes each call up 4 ms later than its peers' do, for it still runs another:
 * the call itself was made in time, so rank 1 is not late. */
static void a_busy_worker_is_not_late(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  struct cluster *c = cluster_new(&o);
  for (u32 i = 0; i < c->model.n_arrivals; i++) {
    struct arrival *arrival = &c->model.arrivals[i];
    arrival->call_start = arrival->start;
    arrival->start += arrival->rank == 1 ? 4 * MS : 0;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(stragglers_in(r), 0);
  assert_true(r->ranks[1].slowest_fraction < 0.5);
  cluster_end(r, c);
}

static void set_operation(struct cluster *c, u8 op) {
  for (u32 i = 0; i < c->model.n_collectives; i++)
    c->model.collectives[i].op = op;
  for (u32 i = 0; i < c->model.n_arrivals; i++)
    c->model.arrivals[i].op = op;
}

/* All is gathered on rank 0 and scattered from there: no operation says who came last. A slow rank
 * is named by the path of steps, and nobody where compute only varies. */
static void who_delays_a_root_is_named(void **state) {
  (void)state;
  for (u32 seed = 0; seed < 20; seed++) {
    struct cluster_options o = healthy_cpu();
    bool slow = seed % 2;
    o.ranks = 4;
    o.noise = 0.2;
    o.seed = seed;
    o.slow[2] = slow ? 0.3 : 0;
    struct cluster *c = cluster_new(&o);
    set_operation(c, seed % 4 < 2 ? TSCOPE_OP_GATHER : TSCOPE_OP_REDUCE);
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(stragglers_in(r), slow);
    if (slow) {
      assert_true(r->ranks[2].straggler && r->ranks[2].of_path);
      assert_non_null(
          strstr(finding_of(r, "DIST.STRAGGLER")->evidence, "critical path is on rank 2"));
      assert_non_null(strstr(finding_of(r, "DIST.STRAGGLER")->title, "slow compute"));
    }
    cluster_end(r, c);
  }
}

/* Rank 2 is slow only after the first of two collectives, and before it the path is on any: less
 * than half of it is on rank 2. */
static void less_than_half_of_the_path_names_too(void **state) {
  (void)state;
  u32 below_half = 0;
  for (u32 seed = 0; seed < 20; seed++) {
    struct cluster_options o = healthy_cpu();
    bool slow = seed % 2;
    o.ranks = 4;
    o.forward = 300 * MS;
    o.noise = 0.05;
    o.seed = seed;
    o.waits_for_first = true;
    i64 *late = calloc((size_t)o.steps * o.ranks, sizeof(*late));
    for (u32 step = 0; step < o.steps && slow; step++)
      late[step * o.ranks + 2] = 60 * MS;
    o.late_backward = late;
    struct cluster *c = cluster_new(&o);
    set_operation(c, TSCOPE_OP_GATHER);
    struct results *r = cluster_analyse(c, NULL);
    double share = r->path_by_rank[2] / r->path_length_ms;
    below_half += slow && share < 0.5;
    assert_int_equal(stragglers_in(r), slow);
    assert_int_equal(r->ranks[2].of_path, slow);
    cluster_end(r, c);
    free(late);
  }
  assert_true(below_half > 0);
}

/* Ranks 1 and 3 are late in turns: in each step, or if anybody else may be late instead in a third
 * of them, which is no turn. */
static void who_is_late_in_turns_is_named(void **state) {
  enum { STEPS = 80, RANKS = 6 };
  (void)state;
  for (u32 run = 0; run < 12; run++) {
    i64 late[STEPS * RANKS] = {0};
    u32 random = 77 * (run + 1);
    bool always = run % 2;
    for (u32 step = 0; step < STEPS; step++) {
      u32 anybody = (u32)(uniform_share(&random) * RANKS);
      bool turn = uniform_share(&random) >= 0.35 || always;
      late[step * RANKS + (turn ? 1 + step % 2 * 2 : anybody)] = 60 * MS;
    }
    struct cluster_options o = healthy_cpu();
    o.ranks = RANKS;
    o.steps = STEPS;
    o.noise = 0.01;
    o.seed = run;
    o.late_first = late;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(stragglers_in(r), always ? 2 : 0);
    for (u32 rank = 1; rank <= 3 && always; rank += 2)
      assert_true(r->ranks[rank].straggler && r->ranks[rank].late_every == 2);
    cluster_end(r, c);
  }
}

/* In turns ranks 2 and 5 are late by 100 ms, and in between others by 20 ms, which are too little
 * to name any: of many that are late in turns two are not named for all. */
static void two_of_many_that_are_late_in_turns_are_not_named(void **state) {
  enum { STEPS = 162, RANKS = 8 };
  i64 late[STEPS * RANKS] = {0};
  (void)state;
  for (u32 step = 0; step < STEPS; step++) {
    u32 second_half = step >= STEPS / 2;
    const u32 whose[] = {2, 0 + second_half, 5, 3 + second_half};
    late[step * RANKS + whose[step % 4]] = step % 2 ? 20 * MS : 100 * MS;
  }
  struct cluster_options o = healthy_cpu();
  o.ranks = RANKS;
  o.steps = STEPS;
  o.late_input = late;
  struct cluster *c;
  struct results *r = run(o, &c);
  assert_int_equal(stragglers_in(r), 0);
  cluster_end(r, c);
}

/* Ten steps that have nothing to do with each other are enough: all is gathered on rank 0. */
static void few_steps_name_who_delays_a_root(void **state) {
  (void)state;
  for (u32 seed = 0; seed < 10; seed++) {
    struct cluster_options o = healthy_cpu();
    o.ranks = 4;
    o.steps = 10;
    o.noise = 0.05;
    o.seed = seed;
    o.slow[2] = 0.3;
    struct cluster *c = cluster_new(&o);
    set_operation(c, TSCOPE_OP_GATHER);
    struct results *r = cluster_analyse(c, NULL);
    assert_true(stragglers_in(r) == 1 && r->ranks[2].of_path);
    cluster_end(r, c);
  }
}

/* Within what all clocks can be apart from each other, too, as long as it saves more than that. */
static void an_error_that_is_less_than_the_delay_hides_nobody(void **state) {
  (void)state;
  for (u32 apart = 0; apart < 2; apart++) {
    struct cluster_options o = healthy_cpu();
    o.ranks = 4;
    o.slow[2] = 0.3;
    struct cluster *c = cluster_new(&o);
    set_operation(c, TSCOPE_OP_GATHER);
    for (u32 r = 0; r < o.ranks; r++)
      c->model.ranks[r].clock.reading_us = apart ? 120e3 : 60e3;
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(r->ranks[2].of_path, !apart);
    assert_int_equal(stragglers_in(r), !apart);
    cluster_end(r, c);
  }
}

/* Of two ranks on each of two hosts those of one host may be further apart than the hosts. */
static void ranks_of_one_host_may_be_furthest_apart(void **state) {
  (void)state;
  for (u32 rough = 0; rough < 2; rough++) {
    u32 members[] = {0, 1, INDEX_NONE, 2, 3};
    struct rank ranks[4];
    struct comm comm = {.members = members, .size = LENGTH_OF(members)};
    struct model model = {
        .ranks = ranks, .n_ranks = 4, .comms = &comm, .n_comms = 1, .clock_aligned = true};
    struct results results = {.step_median_ms = 4e-3 / WORTH_MENTIONING};
    struct analysis a = {.model = &model, .results = &results};
    for (u32 r = 0; r < 4; r++)
      ranks[r].clock = (struct clock_fit){.aligned = true,
                                          .domain = r / 2,
                                          .error_us = r / 2,
                                          .reading_us = rough && r == 3 ? 8 : 0};
    assert_int_equal(clocks_tell_who_is_late(&a, 0), !rough);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_slow_device_beside_hosts_without_cores),
      cmocka_unit_test(many_are_named),
      cmocka_unit_test(who_is_late_in_turns_is_named),
      cmocka_unit_test(two_of_many_that_are_late_in_turns_are_not_named),
      cmocka_unit_test(few_steps_name_who_delays_a_root),
      cmocka_unit_test(two_are_late_at_places_of_their_own),
      cmocka_unit_test(who_sends_late_is_named),
      cmocka_unit_test(a_busy_worker_is_not_late),
      cmocka_unit_test(an_error_that_is_less_than_the_delay_hides_nobody),
      cmocka_unit_test(ranks_of_one_host_may_be_furthest_apart),
      cmocka_unit_test(who_delays_a_root_is_named),
      cmocka_unit_test(less_than_half_of_the_path_names_too)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
