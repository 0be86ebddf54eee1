/* SPDX-License-Identifier: MIT
 *
 * Findings about ranks and their communication. For each finding: a run in which it fires, and one
 * in which it nearly fires but must not.
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

#include "analyses/findings/findings.h"
#include "model/building.h"
#include "scenario.h"

static void straggler(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.slow[3] = 0.2;
  assert_true(fires(&s, "DIST.STRAGGLER"));
  s.options.slow[3] = 0.03; /* 3 % of the step */
  assert_false(fires(&s, "DIST.STRAGGLER"));
}

static void load_imbalance(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.noise = 0.3;
  assert_true(fires(&s, "DIST.LOAD_IMBALANCE"));
  assert_false(fires(&s, "DIST.STRAGGLER"));
  s.options.noise = 0.03;
  assert_false(fires(&s, "DIST.LOAD_IMBALANCE"));
  s.options.noise = 0;
  s.options.slow[2] = 0.5; /* one rank is the whole cause */
  assert_false(fires(&s, "DIST.LOAD_IMBALANCE"));
}

/* Two steps are too few to call a rank a straggler; the report still says that it was late, and how
 * many more steps would tell. So many do. */
static void late_in_few_steps(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.slow[3] = 0.2;
  s.options.steps = 4;
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  assert_null(finding_of(r, "DIST.STRAGGLER"));
  const struct finding *finding = finding_of(r, "DIST.LOAD_IMBALANCE");
  assert_non_null(finding);
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 3);
  const char *about = strstr(finding->evidence, "chance");
  u32 more = 0;
  assert_non_null(about);
  assert_int_equal(sscanf(strstr(about, "about "), "about %u more such steps would tell", &more),
                   1);
  cluster_end(r, c);
  s.options.steps += more - 1;
  assert_false(fires(&s, "DIST.STRAGGLER"));
  s.options.steps += 1;
  assert_true(fires(&s, "DIST.STRAGGLER"));
}

static void comm_bound(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.transfer = 200 * MS; /* 400 against 300 of compute */
  assert_true(fires(&s, "DIST.COMM_BOUND"));
  assert_false(fires(&s, "DIST.EXPOSED_COMM"));
  s.options.transfer = 140 * MS; /* 280 */
  assert_false(fires(&s, "DIST.COMM_BOUND"));
}

static void exposed_comm(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.transfer = 40 * MS;
  s.options.no_overlap = true;
  assert_true(fires(&s, "DIST.EXPOSED_COMM"));
  s = healthy_scenario();
  s.options.transfer = 14 * MS; /* 4.5 % exposed */
  assert_false(fires(&s, "DIST.EXPOSED_COMM"));
}

/* What is advised where calls take the time: nobody can send less than nothing. */
static void calls_without_many_bytes_are_to_be_fewer(void **state) {
  static const struct {
    i64 transfer;
    bool no_overlap;
    const char *id;
  } findings[] = {{200 * MS, false, "DIST.COMM_BOUND"}, {40 * MS, true, "DIST.EXPOSED_COMM"}};
  static const struct {
    u8 op;
    u64 bytes;
    const char *action;
  } cases[] = {{TSCOPE_OP_BARRIER, 0, "Leave out the barriers"},
               {TSCOPE_OP_ALLREDUCE, 24, "Call all_reduce less often"},
               {TSCOPE_OP_ALLREDUCE, 1000000, NULL}};
  (void)state;
  for (u32 i = 0; i < LENGTH_OF(findings) * LENGTH_OF(cases); i++) {
    u32 one = i / LENGTH_OF(cases), as = i % LENGTH_OF(cases);
    struct cluster_options o = healthy_gpu();
    o.transfer = findings[one].transfer;
    o.no_overlap = findings[one].no_overlap;
    struct cluster *c = cluster_new(&o);
    for (u32 k = 0; k < c->model.n_collectives; k++) {
      c->model.collectives[k].op = cases[as].op;
      c->model.collectives[k].bytes = cases[as].bytes;
    }
    for (u32 k = 0; k < c->model.n_arrivals; k++)
      c->model.arrivals[k].op = cases[as].op;
    struct results *r = cluster_analyse(c, NULL);
    const char *action = finding_of(r, findings[one].id)->action;
    bool of_calls = strstr(action, "less often, or once") || strstr(action, "Leave out");
    if (of_calls != (cases[as].action != NULL) || (of_calls && !strstr(action, cases[as].action)))
      fail_msg("%s", action);
    cluster_end(r, c);
  }
}

/* Where it is late is told with the size of the collective; none where that is not known. */
static void sizes_are_told_in_their_units(void **state) {
  static const struct {
    u64 bytes;
    const char *text;
  } cases[] = {
      {16900, "all_reduce of 16.9 kB on"}, {0, "all_reduce on"}, {4000000, "of 4.00 MB on"}};
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct cluster_options o = healthy_gpu();
    o.slow[2] = 0.5;
    struct cluster *c = cluster_new(&o);
    for (u32 k = 0; k < c->model.n_collectives; k++)
      c->model.collectives[k].bytes = cases[i].bytes;
    struct results *r = cluster_analyse(c, NULL);
    if (!strstr(finding_of(r, "DIST.STRAGGLER")->evidence, cases[i].text))
      fail_msg("%s: not %s", finding_of(r, "DIST.STRAGGLER")->evidence, cases[i].text);
    cluster_end(r, c);
  }
}

/* Which calls belong together is not known; a rank more may be missing. */
static u32 ranks_missing;
static void forget_peers(struct cluster *c) {
  c->model.world_size += ranks_missing;
  c->model.n_collectives = 0;
  for (u32 i = 0; i < c->model.n_arrivals; i++)
    c->model.arrivals[i].collective = INDEX_NONE;
}

/* The traces of all ranks are asked for only where some are missing. */
static void traces_that_are_there_are_not_asked_for(void **state) {
  (void)state;
  for (ranks_missing = 0; ranks_missing < 2; ranks_missing++) {
    struct cluster_options o = healthy_gpu();
    o.transfer = 100 * MS; /* of 500 */
    o.no_overlap = true;
    struct cluster *c = cluster_new(&o);
    forget_peers(c);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *exposed = finding_of(r, "DIST.EXPOSED_COMM");
    assert_non_null(exposed);
    assert_non_null(strstr(exposed->title, "40 % of each step is exposed communication, waiting"));
    assert_int_equal(exposed->severity, SEVERITY_WARNING);
    assert_int_equal(strstr(exposed->action, "traces of all ranks") != NULL, ranks_missing);
    cluster_end(r, c);
  }
}

/* In each step each rank broadcasts its part of what the ranks share, rank 2 so much. */
static void share_parts(struct cluster *c, u64 bytes_of_rank_2) {
  struct model *m = &c->model;
  u32 n = m->n_collectives, parts = m->steps.n * m->n_ranks;
  struct collective *all = arena_array(&c->arena, n + parts, sizeof(*all));
  memcpy(all, m->collectives, n * sizeof(*all));
  for (u32 i = 0; i < parts; i++) {
    u32 root = i % m->n_ranks;
    all[n + i] = (struct collective){.seq = n + i,
                                     .bytes = root == 2 ? bytes_of_rank_2 : 1000000,
                                     .root = (i32)root,
                                     .step = (i32)(i / m->n_ranks),
                                     .op = TSCOPE_OP_BROADCAST,
                                     .last_start = NS_UNKNOWN};
  }
  m->collectives = all;
  m->n_collectives = n + parts;
}

/* A slow rank that holds twice as much of what is shared as its peers: dividing that is the cure.
 */
static void a_larger_part_is_told(void **state) {
  (void)state;
  for (u32 larger = 0; larger < 2; larger++) {
    struct cluster_options o = healthy_gpu();
    o.slow[2] = 0.5;
    struct cluster *c = cluster_new(&o);
    share_parts(c, larger ? 2000000 : 1900000);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *found = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(found);
    assert_int_equal(larger, strstr(found->evidence, "2.00 MB") != NULL);
    assert_int_equal(larger, strstr(found->action, "Divide what the ranks share by size") != NULL);
    cluster_end(r, c);
  }
}

/* The same kernels that take longer are a slow device; kernels that others do not run are work. */
static void more_work_is_no_slow_device(void **state) {
  (void)state;
  for (u32 own = 0; own < 2; own++) {
    struct cluster_options o = healthy_gpu();
    o.slow[6] = 0.2;
    struct cluster *c = cluster_new(&o);
    struct timeline *t = &c->timelines[6];
    for (u32 i = 0, kernels = 0; i < t->n_spans && own; i++)
      if (t->spans[i].kind == SPAN_KERNEL && ++kernels % 3 == 0)
        t->spans[i].name = 5; /* its last kernel of a step is "copy", which no other rank runs */
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "DIST.STRAGGLER");
    assert_non_null(finding);
    assert_int_equal(strstr(finding->title, "more work") != NULL, own);
    assert_int_equal(strstr(finding->evidence, "most in copy (50 times, its peers 0)") != NULL,
                     own);
    assert_int_equal(strstr(finding->evidence, "It has the same work") != NULL, !own);
    assert_int_equal(strstr(finding->action, "clocks") != NULL, !own);
    cluster_end(r, c);
  }
}

static void fail_slow(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.slow[6] = 0.2;
  s.options.slow_from = 30;
  struct cluster *c = cluster_new(&s.options);
  struct results *r = cluster_analyse(c, &s.given);
  const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
  assert_non_null(finding);
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 6);
  assert_non_null(strstr(finding->title, "step 30"));
  assert_non_null(strstr(finding->title, "the median step"));
  assert_null(strstr(finding->title, "every step"));
  assert_non_null(strstr(finding->action, "replace the device"));
  cluster_end(r, c);
  s.options.slow[6] = 0.08; /* the step grows by 7.7 % */
  assert_false(fires(&s, "DIST.FAIL_SLOW"));
  s.options.slow[6] = 0.2;
  s.options.slow_from = 0; /* slow from the beginning: a straggler, but nothing changed */
  assert_false(fires(&s, "DIST.FAIL_SLOW"));
  s.options.slow_from = 47; /* three steps are an event */
  assert_false(fires(&s, "DIST.FAIL_SLOW"));
}

/* A neighbour takes the cores: nothing is wrong with the host. A GPU computes without a core. */
static void fail_slow_without_cores(void **state) {
  (void)state;
  for (u32 on_gpu = 0; on_gpu < 2; on_gpu++) {
    struct cluster_options o = on_gpu ? healthy_gpu() : healthy_cpu();
    o.slow[2] = 0.2;
    o.slow_from = 30;
    struct cluster *c = cluster_new(&o);
    c->model.ranks[2].scheduling = (struct rank_scheduling){.seconds = 10, .training_wait_s = 2};
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
    assert_non_null(finding);
    assert_int_equal(strstr(finding->action, "replace the device") != NULL, on_gpu);
    assert_int_equal(strstr(finding->action, "wait for a core") != NULL, !on_gpu);
    cluster_end(r, c);
  }
}

/* Of what steps take longer, 65 ms, input, compute and waiting for one rank or another have a third
 * each: where ranks are on one host, that is looked at, and no network. */
static void fail_slow_of_no_one_part(void **state) {
  static i64 input[8 * 50], work[8 * 50];
  (void)state;
  for (u32 hosts = 1; hosts <= 2; hosts++) {
    struct cluster_options o = healthy_cpu();
    o.ranks = 8;
    o.late_input = input;
    o.late_first = work;
    for (u32 i = 30 * 8; i < 50 * 8; i++) {
      input[i] = 25 * MS;
      work[i] = i % 8 == i / 8 % 8 ? 40 * MS : 15 * MS;
    }
    struct cluster *c = cluster_new(&o);
    if (hosts > 1)
      c->model.ranks[7].host = "host1";
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
    assert_non_null(finding);
    assert_int_equal(finding->n_ranks, 0);
    assert_int_equal(strstr(finding->action, "network") != NULL, hosts > 1);
    assert_int_equal(strstr(finding->action, "what else runs on that host") != NULL, hosts == 1);
    cluster_end(r, c);
  }
}

/* All ranks wait longer for their input since a step, together 1.6 s: what grew is named, and no
 * network; and no cores, unless threads waited for them about as long, and, where looks tell, not
 * as long before. */
static void fail_slow_names_what_grew_if(double waited_s, bool evenly, const char *action) {
  static i64 late[8 * 50];
  struct cluster_options o = healthy_gpu();
  for (u32 i = 30 * 8; i < 50 * 8; i++)
    late[i] = 80 * MS;
  o.late_input = late;
  struct cluster *c = cluster_new(&o);
  for (u32 rank = 0; rank < 8; rank++)
    c->model.ranks[rank].scheduling =
        (struct rank_scheduling){.seconds = 10, .training_wait_s = waited_s};
  for (u32 rank = 0; rank < 8 && evenly; rank++) {
    struct rank_look *looks = arena_array(&c->arena, 2, sizeof(*looks));
    looks[0].time = c->model.steps.begin[rank];
    looks[1].time = c->model.steps.end[(c->model.steps.n - 1) * 8 + rank];
    looks[1].wait_ns = looks[1].training_wait_ns = (u64)(waited_s * 1e9);
    c->model.ranks[rank].looks = looks;
    c->model.ranks[rank].n_looks = 2;
  }
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
  assert_non_null(finding);
  assert_non_null(
      strstr(finding->evidence, "What grew is fetching input: from 1.00 ms to 81.0 ms"));
  assert_non_null(strstr(finding->action, action));
  assert_null(strstr(finding->action, "network"));
  cluster_end(r, c);
}

static void fail_slow_names_what_grew(void **state) {
  (void)state;
  fail_slow_names_what_grew_if(0, false, "Look at the data loader");
  fail_slow_names_what_grew_if(0.5, false, "Look at the data loader");
  fail_slow_names_what_grew_if(1.5, false, "wait for a core");
  fail_slow_names_what_grew_if(1.5, true, "Look at the data loader");
}

/* What a rank does more since a step is not compute: it is named by how late it comes since then.
 * Also where that is so early that it is late over the whole run, as when what its loader had
 * prepared is used up. */
static void fail_slow_of_a_late_rank(void **state) {
  (void)state;
  for (u32 from = 8; from <= 30; from += 22) {
    i64 late[8 * 50] = {0};
    struct cluster_options o = healthy_gpu();
    for (u32 i = from; i < 50; i++)
      late[i * 8 + 6] = 80 * MS;
    o.late_input = late;
    struct cluster *c = cluster_new(&o);
    for (u32 rank = 0; rank < 8; rank++)
      c->model.ranks[rank].scheduling =
          (struct rank_scheduling){.seconds = 10, .training_wait_s = 2};
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(r->ranks[6].n_late, from == 30);
    const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
    assert_non_null(finding);
    assert_int_equal(finding->n_ranks, 1);
    assert_int_equal(finding->ranks[0], 6);
    assert_non_null(strstr(finding->action, "what rank 6 does"));
    cluster_end(r, c);
  }
}

/* All ranks become slow, or no rank by its compute: the change is reported, and no rank is named.
 */
static void fail_slow_of_all_ranks(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  for (u32 i = 0; i < o.ranks; i++)
    o.slow[i] = 0.3;
  o.slow_from = 25;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *finding = finding_of(r, "DIST.FAIL_SLOW");
  assert_non_null(finding);
  assert_int_equal(finding->n_ranks, 0);
  assert_non_null(strstr(finding->evidence, "all ranks"));
  cluster_end(r, c);
}

/* Rank 2 waits for something that is not recorded before each collective, so that it comes last; as
 * fast as its peers it would come as late. */
static void who_is_refuted_is_told(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.on_gpu = false;
  o.waits[2] = 60 * MS;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_true(r->ranks[2].refuted && !r->ranks[2].straggler);
  const struct finding *imbalance = finding_of(r, "DIST.LOAD_IMBALANCE");
  assert_non_null(imbalance);
  assert_non_null(strstr(imbalance->evidence, "rank 2 comes last in"));
  assert_non_null(strstr(imbalance->evidence, "steps would hardly be shorter (replay)"));
  cluster_end(r, c);
}

/* The title of a hang that ranks 0 and `other` hold up, on hosts of which two are called alike. */
static void expect_hang_on(u32 other, const char *where, bool clocks_known) {
  SCOPED_ARENA struct arena arena = {0};
  struct rank ranks[] = {{.rank = 0, .host = "trainer"},
                         {.rank = 1, .host = "trainer"},
                         {.rank = 2, .host = "trainer"},
                         {.rank = 3, .host = "pod"}};
  for (u32 r = 0; clocks_known && r < LENGTH_OF(ranks); r++)
    ranks[r].info[TSCOPE_INFO_CLOCK] = r < 2 ? "x" : "y";
  struct model model = {.n_ranks = LENGTH_OF(ranks), .ranks = ranks};
  model_number_hosts(&model);
  u32 held[] = {0, other};
  struct check_suspect suspect = {.rank = 0, .reason = SUSPECT_ABSENT, .evidence = ""};
  struct results r = {
      .check = {.hang_ranks = held, .n_hang_ranks = 2, .suspects = &suspect, .n_suspects = 1}};
  struct analysis a = {.model = &model, .results = &r, .arena = &arena};
  struct findings f = {.a = &a, .arena = &arena, .r = &r, .steps = 1, .step_ms = 1};
  rule_hang(&f);
  assert_int_equal(r.n_findings, 1);
  const char *told = strstr(r.findings[0].title, ", on ");
  assert_string_equal(told ? told : "", where);
}

static void hosts_of_one_name_are_not_one_that_hangs(void **state) {
  (void)state;
  expect_hang_on(1, ", on trainer", true);
  expect_hang_on(2, "", true);
  expect_hang_on(2, ", on trainer", false);
  expect_hang_on(3, "", true);
  expect_hang_on(9, "", true); /* it left no record: where it ran is not known */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(straggler),
                                     cmocka_unit_test(load_imbalance),
                                     cmocka_unit_test(who_is_refuted_is_told),
                                     cmocka_unit_test(late_in_few_steps),
                                     cmocka_unit_test(comm_bound),
                                     cmocka_unit_test(calls_without_many_bytes_are_to_be_fewer),
                                     cmocka_unit_test(exposed_comm),
                                     cmocka_unit_test(traces_that_are_there_are_not_asked_for),
                                     cmocka_unit_test(sizes_are_told_in_their_units),
                                     cmocka_unit_test(a_larger_part_is_told),
                                     cmocka_unit_test(more_work_is_no_slow_device),
                                     cmocka_unit_test(fail_slow),
                                     cmocka_unit_test(fail_slow_without_cores),
                                     cmocka_unit_test(fail_slow_of_no_one_part),
                                     cmocka_unit_test(fail_slow_names_what_grew),
                                     cmocka_unit_test(fail_slow_of_a_late_rank),
                                     cmocka_unit_test(fail_slow_of_all_ranks),
                                     cmocka_unit_test(hosts_of_one_name_are_not_one_that_hangs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
