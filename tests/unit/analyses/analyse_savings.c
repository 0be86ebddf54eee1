/* SPDX-License-Identifier: MIT
 *
 * The combined saving of findings, and what the report says about communication when ranks are
 * missing.
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
#include "analyses/analyses.h"

static void add_up_to_less_than_the_run(const struct results *r) {
  double sum = 0;
  for (u32 i = 0; i < r->n_findings; i++) {
    const struct finding *finding = &r->findings[i];
    if (isnan(finding->saving_s))
      continue;
    assert_true(finding->saving_added_s >= 0 && finding->saving_added_s <= finding->saving_s);
    sum += finding->saving_added_s;
  }
  assert_true(!(sum > r->analysed_s * (1 + 1e-9)));
}

/* Runs with many findings, with and without GPUs. */
static void savings_add_up_to_less_than_the_run(void **state) {
  (void)state;
  for (u32 i = 0; i < 8; i++) {
    struct cluster_options o = i & 1 ? healthy_gpu() : healthy_cpu();
    o.noise = 0.3;
    o.slow[3] = i & 2 ? 0.5 : 0;
    o.input = 100 * MS;
    o.transfer = i & 4 ? 400 * MS : o.transfer;
    o.exposed_memcpy = 50 * MS;
    o.late_launch[2] = 150 * MS;
    o.slow_step = 400 * MS;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    assert_true(r->n_findings > 1);
    add_up_to_less_than_the_run(r);
    cluster_end(r, c);
  }
}

/* A rank loads for 600 ms: as straggler and as input it is worth more than the run has. Where
 * clocks are not on one axis nothing is replayed: it is not known whether the two share that. */
static void nothing_is_shared_without_a_replay(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.input = 0;
  o.extra_input[2] = 600 * MS;
  o.unaligned = true;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *second = &r->findings[1];
  assert_true(r->n_findings > 1 && second->saving_added_s < 0.6 * second->saving_s);
  assert_int_equal(second->n_overlaps, 0);
  cluster_end(r, c);
}

/* All load for 50 ms, and rank 3 for 150 ms more: it keeps them waiting, and all wait for input.
 * Its input as fast as theirs saves these 150 ms, all input 200 ms, and both together no more. */
static void time_that_two_findings_would_save_counts_once(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.input = 50 * MS;
  o.extra_input[3] = 150 * MS;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
  const struct finding *input = finding_of(r, "TIMING.DATALOADER_BOUND");
  assert_non_null(straggler);
  assert_non_null(input);
  double steps = r->training_steps;
  assert_true(fabs(straggler->saving_s - 0.150 * steps) < 0.001 * steps);
  assert_true(fabs(input->saving_s - 0.200 * steps) < 0.001 * steps);
  const struct finding *second = MAX(straggler, input);
  const struct finding *first = MIN(straggler, input);
  assert_true(first->saving_added_s == first->saving_s && !first->n_overlaps);
  assert_true(second->saving_added_s < 0.0011 * steps);
  assert_int_equal(second->n_overlaps, 1);
  assert_string_equal(second->overlaps[0], finding_id_words[first->id]);
  assert_true(first->saving_low_s <= first->saving_s && first->saving_s <= first->saving_high_s);
  add_up_to_less_than_the_run(r);
  cluster_end(r, c);
}

/* Rank 3 loads 150 ms longer: it is the one to mend. That saves nothing where the others compute
 * 180 ms longer. */
static void what_saves_nothing_is_a_note(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.extra_input[3] = 150 * MS;
  for (u32 slower = 0; slower < 2; slower++) {
    for (u32 i = 0; i < o.ranks; i++)
      o.slow[i] = slower && i != 3 ? 0.6 : 0;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *input = finding_of(r, "TIMING.DATALOADER_BOUND");
    assert_int_equal(finding_of(r, "DIST.STRAGGLER") != NULL, !slower);
    assert_int_equal(input != NULL, slower);
    if (input) {
      assert_int_equal(input->severity, SEVERITY_INFO);
      assert_non_null(strstr(input->title, "saves next to nothing"));
      assert_non_null(strstr(input->action, "holds up the step"));
    }
    cluster_end(r, c);
  }
}

/* Transfers and loading that other ranks or other work hide cost the step less than they take: the
 * share of the step in a title is that of the saving. */
static void titles_give_the_share_that_is_saved(void **state) {
  static const char *const ids[] = {"DIST.COMM_BOUND", "TIMING.DATALOADER_BOUND"};
  (void)state;
  for (u32 i = 0; i < 2; i++) {
    struct cluster_options o = healthy_gpu();
    o.transfer = i == 0 ? 400 * MS : o.transfer;
    o.input = i == 1 ? 150 * MS : o.input;
    o.slow[3] = 0.3;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, ids[i]);
    assert_non_null(finding);
    const char *share = strstr(finding->title, ": ");
    assert_non_null(share);
    assert_true(fabs(atof(share + 2) - 100 * finding->saving_s / r->analysed_s) < 1);
    cluster_end(r, c);
  }
}

/* Rank 3 does 30 ms more before the first collective, for which its peers wait; and these do as
 * much more after it, for which rank 3 waits. Without what rank 3 has more the step is 30 ms
 * shorter, though it works no longer than they do. */
static void work_after_a_wait_does_not_make_up_for_it(void **state) {
  static i64 late[8 * 50];
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.waits_for_first = true;
  o.late_forward[3] = 30 * MS;
  for (u32 i = 0; i < 8 * 50; i++)
    late[i] = i % 8 == 3 ? 0 : 30 * MS;
  o.late_backward = late;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "DIST.STRAGGLER");
  assert_int_equal(stragglers_in(r), 1);
  assert_non_null(found);
  assert_int_equal(found->ranks[0], 3);
  assert_true(fabs(found->saving_s / r->training_steps - 0.030) < 0.001);
  cluster_end(r, c);
}

/* The others may be waiting for the rank that was not found. */
static void missing_ranks_make_communication_findings_less_severe(void **state) {
  static const char *const ids[] = {"DIST.STRAGGLER", "DIST.COMM_BOUND"};
  (void)state;
  for (size_t i = 0; i < 2; i++)
    for (u32 missing = 0; missing < 2; missing++) {
      struct cluster_options o = healthy_gpu();
      o.slow[3] = i == 0 ? 0.5 : 0;
      o.transfer = i == 1 ? 400 * MS : o.transfer;
      struct cluster *c = cluster_new(&o);
      c->model.world_size += missing;
      struct results *r = cluster_analyse(c, NULL);
      const struct finding *finding = finding_of(r, ids[i]);
      assert_non_null(finding);
      assert_int_equal(finding->severity, missing ? SEVERITY_WARNING : SEVERITY_CRITICAL);
      assert_true(isnan(finding->saving_s) == (missing == 1));
      assert_true((strstr(finding->evidence, "1 of 9 ranks was not found") != NULL) == missing);
      assert_true((strstr(finding->title, "bottleneck") != NULL) == (i == 1 && !missing));
      cluster_end(r, c);
    }
}

/* Nor is there a record of what a rank does in any collective: the others may wait for it. */
static void a_member_that_is_missing_in_all_collectives(void **state) {
  (void)state;
  for (u32 missing = 0; missing < 2; missing++) {
    struct cluster_options o = healthy_gpu();
    o.transfer = 400 * MS;
    struct cluster *c = cluster_new(&o);
    for (u32 i = 0; i < c->model.n_collectives; i++)
      c->model.collectives[i].n_arrivals -= missing;
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "DIST.COMM_BOUND");
    assert_non_null(finding);
    assert_int_equal(isnan(finding->saving_s), missing);
    assert_int_equal(strstr(finding->evidence, "ranks of which less was recorded") != NULL,
                     missing);
    cluster_end(r, c);
  }
}

static void move_intervals(struct intervals *set, i64 ns) {
  for (u32 i = 0; i < set->n; i++) {
    set->at[i].start += ns;
    set->at[i].end += ns;
  }
}

static void move_timeline(struct timeline *t, i64 ns) {
  for (u32 i = 0; i < t->n_spans; i++) {
    t->spans[i].start += ns;
    t->spans[i].end += ns;
  }
  move_intervals(&t->compute, ns);
  move_intervals(&t->comm, ns);
  move_intervals(&t->memcpy, ns);
}

/* The last two ranks are on a host of their own, whose clock is believed to be `ns` earlier than it
 * is, and known to `error_ns`. */
static void place_second_host(struct cluster *c, i64 ns, i64 error_ns) {
  struct model *m = &c->model;
  u32 first = m->n_ranks - 2;
  for (u32 r = first; r < m->n_ranks; r++) {
    m->ranks[r].host = "host1";
    m->ranks[r].clock.domain = 1;
    m->ranks[r].clock.error_us = (double)error_ns / 1e3;
    move_timeline(&c->timelines[r], -ns);
    for (u32 step = 0; step < m->steps.n; step++) {
      m->steps.begin[step * m->n_ranks + r] -= ns;
      m->steps.end[step * m->n_ranks + r] -= ns;
    }
  }
  for (u32 i = 0; i < m->n_arrivals; i++) {
    struct arrival *arrival = &m->arrivals[i];
    struct collective *of = &m->collectives[arrival->collective];
    i64 moved = arrival->rank >= first ? ns : 0;
    arrival->call_start -= moved;
    arrival->call_end -= moved;
    arrival->start -= moved;
    arrival->end -= moved;
    bool later = i % m->n_ranks == 0 || arrival->start > of->last_start;
    of->last_start = later ? arrival->start : of->last_start;
  }
}

/* A host whose ranks take 120 ms more of each step, over a link so slow that clocks are known to
 * 250 ms only, and are off by less than that in either direction: it is named, with what the step
 * would save. */
static void a_clock_that_is_off_hides_no_slow_host(void **state) {
  static const i64 off[] = {0, 60 * MS, 180 * MS, -180 * MS};
  (void)state;
  for (u32 gpu = 0; gpu < 2; gpu++)
    for (u32 i = 0; i < 4; i++) {
      struct cluster_options o = gpu ? healthy_gpu() : healthy_cpu();
      o.slow[o.ranks - 1] = o.slow[o.ranks - 2] = 0.4;
      o.transfer = 200 * MS;
      o.no_overlap = o.waits_for_first = !gpu;
      struct cluster *c = cluster_new(&o);
      place_second_host(c, off[i], 250 * MS);
      struct results *r = cluster_analyse(c, NULL);
      const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
      assert_int_equal(stragglers_in(r), 2);
      assert_true(r->ranks[o.ranks - 1].straggler && r->ranks[o.ranks - 2].straggler);
      assert_non_null(straggler);
      /* on GPUs the second transfer begins 80 ms sooner, when the first has ended */
      double saves_s = gpu ? 0.080 : 0.120;
      assert_true(fabs(straggler->saving_s - saves_s * r->training_steps) <
                  0.01 * saves_s * r->training_steps);
      cluster_end(r, c);
    }
}

/* Ranks 0 and 1 are on one host, 2 and 3 on another; 0 and 2 are a stage of a pipeline, 1 and 3 the
 * next. Of three stragglers two share a stage and two a host: each is in one group. */
static void a_straggler_is_in_one_group(void **state) {
  (void)state;
  static u32 first_stage[] = {0, 2}, second_stage[] = {1, 3};
  struct rank_result of_ranks[4] = {0};
  struct pipeline_stage stages[] = {{.stage = 0, .ranks = first_stage, .n_ranks = 2},
                                    {.stage = 1, .ranks = second_stage, .n_ranks = 2}};
  struct rank ranks[4] = {0};
  struct arena arena = {0};
  struct model model = {.ranks = ranks, .n_ranks = 4};
  struct results r = {
      .ranks = of_ranks, .n_ranks = 4, .pipeline_stage = stages, .n_pipeline_stage = 2};
  struct analysis a = {.model = &model, .results = &r, .arena = &arena};
  for (u32 i = 0; i < 4; i++) {
    ranks[i].rank = of_ranks[i].rank = i;
    ranks[i].host = i < 2 ? "host0" : "host1";
    of_ranks[i].straggler = i > 0;
    of_ranks[i].imposed_wait_ms = 10.0 / (i + 1);
  }
  judged_stragglers_analyse(&a);
  assert_int_equal(r.n_straggler_groups, 2);
  const struct straggler_group *stage = &r.straggler_groups[0], *alone = &r.straggler_groups[1];
  assert_true(stage->n == 2 && stage->ranks[1] && stage->ranks[3]);
  assert_true(alone->n == 1 && alone->ranks[2] && !alone->ranks[3]);
  arena_release(&arena);
}

/* 40 ranks on 20 hosts: of 12 hosts both are late, the first by a third as long as the others and
 * for another reason. */
static void stragglers_alike_on_many_hosts_are_one_group(void **state) {
  (void)state;
  enum { RANKS = 40, LATE = 24 };
  struct rank_result of_ranks[RANKS] = {0};
  struct rank ranks[RANKS] = {0};
  char hosts[RANKS][8];
  struct arena arena = {0};
  struct model model = {.ranks = ranks, .n_ranks = RANKS};
  struct results r = {.ranks = of_ranks, .n_ranks = RANKS};
  struct analysis a = {.model = &model, .results = &r, .arena = &arena};
  for (u32 i = 0; i < RANKS; i++) {
    snprintf(hosts[i], sizeof(hosts[i]), "host%u", i / 2);
    ranks[i].rank = of_ranks[i].rank = i;
    ranks[i].host = hosts[i];
    of_ranks[i].straggler = i < LATE;
    of_ranks[i].reason = i < 2 ? STRAGGLER_SLOW_INPUT : STRAGGLER_SLOW_COMPUTE;
    of_ranks[i].imposed_wait_ms = of_ranks[i].late_a_step_ms = i < 2 ? 3 : 10 - 0.1 * i;
    of_ranks[i].late_every = NAN;
  }
  judged_stragglers_analyse(&a);
  assert_int_equal(r.n_straggler_groups, 2);
  const struct straggler_group *most = &r.straggler_groups[0], *others = &r.straggler_groups[1];
  assert_true(most->n == LATE - 2 && most->worst == 2 && most->first == 2);
  assert_true(others->n == 2 && others->ranks[0] && others->ranks[1]);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_shared_without_a_replay),
      cmocka_unit_test(savings_add_up_to_less_than_the_run),
      cmocka_unit_test(time_that_two_findings_would_save_counts_once),
      cmocka_unit_test(what_saves_nothing_is_a_note),
      cmocka_unit_test(titles_give_the_share_that_is_saved),
      cmocka_unit_test(work_after_a_wait_does_not_make_up_for_it),
      cmocka_unit_test(a_member_that_is_missing_in_all_collectives),
      cmocka_unit_test(missing_ranks_make_communication_findings_less_severe),
      cmocka_unit_test(a_clock_that_is_off_hides_no_slow_host),
      cmocka_unit_test(a_straggler_is_in_one_group),
      cmocka_unit_test(stragglers_alike_on_many_hosts_are_one_group),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
