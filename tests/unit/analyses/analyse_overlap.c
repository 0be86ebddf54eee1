/* SPDX-License-Identifier: MIT
 *
 * Compares the overlap with a second, naive count, which looks at each microsecond of random
 * timelines separately.
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
#include "base/intervals.h"

#define TICKS 3000
#define TICK 1000 /* ns */
#define COLLECTIVES 60

static u32 seed = 7;

/* One rank with random compute and copies, collectives on two streams that may run at once, and
 * three steps with time between them. */
struct random_rank {
  struct model model;
  struct timeline timeline;
  struct rank rank;
  struct comm comms[2];
  u32 member;
  struct collective collectives[COLLECTIVES];
  struct arrival arrivals[2 * COLLECTIVES];
  struct span spans[COLLECTIVES];
  struct interval compute[TICKS], comm[TICKS], copy[TICKS];
  i64 begins[3], ends[3];
};

static void random_intervals(struct intervals *set, struct interval *room) {
  *set = (struct intervals){room, 0};
  for (i64 at = random_below(&seed, 40); at < TICKS;) {
    i64 end = at + 1 + random_below(&seed, 60);
    intervals_append(set, at * TICK, MIN(end, TICKS) * TICK);
    at = end + 1 + random_below(&seed, 60);
  }
}

static int by_start(const void *left, const void *right) {
  const struct span *a = left, *b = right;
  return a->start != b->start ? (a->start < b->start ? -1 : 1)
                              : (a->end < b->end) - (a->end > b->end);
}

static void random_collectives(struct random_rank *x) {
  struct model *m = &x->model;
  i64 free_at[2] = {0, 0};
  u32 n = 0;
  while (n < COLLECTIVES) {
    u32 stream = random_below(&seed, 2);
    i64 start = free_at[stream] + random_below(&seed, 50),
        end = start + 1 + random_below(&seed, 80);
    if (end > TICKS)
      break;
    free_at[stream] = end;
    /* the peer arrives at any time that lets both end now; its own duration does not matter */
    i64 peer = start - 20 + random_below(&seed, (u32)(end - start) + 20);
    u8 op = random_below(&seed, 2) ? TSCOPE_OP_ALLREDUCE : TSCOPE_OP_ALLGATHER;
    for (u32 k = 0; k < 2; k++)
      x->arrivals[2 * n + k] = (struct arrival){.start = (k ? peer : start) * TICK,
                                                .end = end * TICK,
                                                .rank = 0,
                                                .collective = n,
                                                .op = op};
    x->collectives[n] = (struct collective){.comm = stream,
                                            .bytes = 1000,
                                            .first_arrival = 2 * n,
                                            .n_arrivals = 2,
                                            .last_start = MAX(peer, start) * TICK,
                                            .step = 0,
                                            .op = op,
                                            .complete = true};
    x->spans[n] = (struct span){.start = start * TICK,
                                .end = end * TICK,
                                .link = 2 * n,
                                .launch = INDEX_NONE,
                                .lane = (u16)stream,
                                .kind = SPAN_COLLECTIVE};
    n++;
  }
  m->n_collectives = n;
  m->n_arrivals = 2 * n;
  x->timeline.n_spans = n;
  qsort(x->spans, n, sizeof(*x->spans), by_start);
}

static struct random_rank *random_rank_new(void) {
  static struct lane lanes[2] = {{true, 0, "a"}, {true, 1, "b"}};
  struct random_rank *x = calloc(1, sizeof(*x));
  x->rank = (struct rank){.closed = true, .collective_calls = 1, .collective_runs = 1};
  for (u32 i = 0; i < 2; i++)
    x->comms[i] = (struct comm){.size = 1, .members = &x->member, .backend = TSCOPE_BACKEND_NCCL};
  i64 cuts[6];
  for (u32 i = 0; i < 6; i++)
    cuts[i] = (i64)(i * (TICKS / 6) + random_below(&seed, TICKS / 6)) * TICK;
  for (u32 i = 0; i < 3; i++) {
    x->begins[i] = cuts[2 * i];
    x->ends[i] = cuts[2 * i + 1];
  }
  x->model = (struct model){.world_size = 1,
                            .n_ranks = 1,
                            .n_comms = 2,
                            .ranks = &x->rank,
                            .comms = x->comms,
                            .collectives = x->collectives,
                            .arrivals = x->arrivals,
                            .steps = {.n = 3, .begin = x->begins, .end = x->ends},
                            .clock_aligned = true,
                            .internal = &x->timeline};
  x->timeline = (struct timeline){.spans = x->spans,
                                  .lanes = lanes,
                                  .n_lanes = 2,
                                  .has_compute = true,
                                  .has_comm = true,
                                  .has_memcpy = true,
                                  .on_gpu = true,
                                  .ring_begin = NS_UNKNOWN};
  random_intervals(&x->timeline.compute, x->compute);
  random_intervals(&x->timeline.memcpy, x->copy);
  random_collectives(x);
  return x;
}

static bool covers(const struct intervals *set, i64 at) {
  for (u32 i = 0; i < set->n; i++)
    if (set->at[i].start <= at && at < set->at[i].end)
      return true;
  return false;
}

struct counts {
  i64 total, compute, comm, exposed, wait, transfer, copy, idle, by_op[OPS];
};

static void count_tick(const struct random_rank *x, i64 at, struct counts *n) {
  const struct timeline *t = &x->timeline;
  const struct span *first = NULL;
  for (u32 i = 0; i < t->n_spans && !first; i++) /* in order of start */
    if (t->spans[i].start <= at && at < t->spans[i].end)
      first = &t->spans[i];
  bool compute = covers(&t->compute, at);
  n->total++;
  n->compute += compute;
  n->comm += first != NULL;
  n->copy += !compute && !first && covers(&t->memcpy, at);
  n->idle += !compute && !first && !covers(&t->memcpy, at);
  if (!first || compute)
    return;
  const struct arrival *arrival = &x->arrivals[first->link];
  bool waiting = at < x->collectives[arrival->collective].last_start;
  n->exposed++;
  n->wait += waiting;
  n->transfer += !waiting;
  n->by_op[arrival->op]++;
}

static int load(const struct model *model, u32 rank, struct timeline *timeline) {
  (void)rank;
  *timeline = *(struct timeline *)model->internal;
  return 0;
}
static void release(struct timeline *timeline) {
  (void)timeline;
}
static const char *no_name(const struct timeline *timeline, u32 name) {
  (void)timeline;
  (void)name;
  return "";
}

static void assert_ms(double ms, i64 ticks) {
  assert_true(fabs(ms - (double)ticks * TICK / 1e6 / 3) < 1e-9); /* per step of three */
}

static void every_instant_counts_once(void **state) {
  static const struct timeline_source source = {load, release, no_name};
  (void)state;
  for (u32 round = 0; round < 100; round++) {
    struct random_rank *x = random_rank_new();
    struct analyse_options options = no_options();
    struct results *r;
    struct counts n = {0};
    for (i64 at = 0; at < TICKS; at++)
      for (u32 step = 0; step < 3; step++)
        if (x->begins[step] <= at * TICK && at * TICK < x->ends[step])
          count_tick(x, at * TICK, &n);
    r = analyse_with(&x->model, &options, &source);
    assert_ms(r->ov_step_ms, n.total);
    assert_ms(r->ov_compute_ms, n.compute);
    assert_ms(r->ov_comm_ms, n.comm);
    assert_ms(r->ov_exposed_ms, n.exposed);
    assert_ms(r->ov_exposed_wait_ms, n.wait);
    assert_ms(r->ov_exposed_transfer_ms, n.transfer);
    assert_ms(r->ov_exposed_memcpy_ms, n.copy);
    assert_ms(r->ov_idle_ms, n.idle);
    /* the sum is exact within the precision of doubles */
    assert_true(fabs(r->ov_step_ms - r->ov_compute_ms - r->ov_exposed_ms - r->ov_exposed_memcpy_ms -
                     r->ov_idle_ms) < 1e-12 * r->ov_step_ms + 1e-12);
    for (u32 i = 0; i < r->n_by_op; i++)
      for (u8 op = 0; op < OPS; op++)
        if (!strcmp(r->by_op[i].op, op_name(op)))
          assert_ms(r->by_op[i].exposed_ms, n.by_op[op]);
    results_free(r);
    free(x);
  }
}

/* Without a common clock the transfer takes as long as the shortest member's call. */
static void wait_without_clocks(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[1] = 0.25;
  struct cluster *aligned = cluster_new(&o);
  o.unaligned = true;
  struct cluster *not = cluster_new(&o);
  struct results *a = cluster_analyse(aligned, NULL), *b = cluster_analyse(not, NULL);
  assert_string_equal(a->wait_method, "aligned starts");
  assert_string_equal(b->wait_method, "shortest member");
  assert_true(fabs(a->ov_exposed_wait_ms - b->ov_exposed_wait_ms) < 1e-9);
  assert_true(a->ov_exposed_wait_ms > 1);
  assert_true(isnan(b->path_length_ms));
  assert_non_null(b->path_reason);
  assert_non_null(finding_of(b, "DIST.STRAGGLER"));
  results_free(a);
  cluster_end(b, aligned);
  cluster_free(not );
}

static void unknown_is_not_zero(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.no_gpu_times = true;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_true(isnan(r->ov_exposed_ms) && isnan(r->ov_comm_ms) && isnan(r->ov_compute_ms));
  assert_non_null(strstr(r->overlap_reason, "no CUPTI here"));
  assert_true(isnan(r->imbalance_cv) && isnan(r->sync_skew_ms));
  assert_true(isnan(r->ranks[0].exposed_ms));
  for (u32 i = 0; i < r->n_collectives; i++)
    assert_true(isnan(r->collectives[i].busbw_gbps) && isnan(r->collectives[i].wait_ms));
  cluster_end(r, c);
}

static void bandwidth_by_the_book(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(r->n_collectives, 2);
  for (u32 i = 0; i < 2; i++) {
    const struct collective_result *of = &r->collectives[i];
    assert_string_equal(of->op, "all_reduce");
    assert_true(of->count == 48); /* without warm-up */
    assert_true(fabs(of->transfer_ms - 10) < 1e-9);
    assert_true(fabs(of->algbw_gbps - of->bytes / 10e6) < 1e-9);
    assert_true(fabs(of->busbw_gbps - of->algbw_gbps * 14 / 8) < 1e-9);
  }
  cluster_end(r, c);
}

/* An all-reduce of the same size in each step, and one whose size differs from step to step: two
 * rows. Of few sizes each is a row. */
static void sizes_that_differ_are_counted_together(void **state) {
  (void)state;
  for (u32 sizes = 5; sizes <= 45; sizes += 40) {
    struct cluster_options o = healthy_cpu();
    struct cluster *c = cluster_new(&o);
    for (u32 i = 0; i < c->model.n_collectives; i++)
      c->model.collectives[i].bytes = i % 2 ? 1000 * (1 + i / 2 % sizes) : 64;
    struct results *r = cluster_analyse(c, NULL);
    u32 together = sizes > 8 ? 1 : sizes;
    assert_int_equal(r->n_collectives, 1 + together);
    for (u32 i = 0; i < r->n_collectives; i++) {
      const struct collective_result *row = &r->collectives[i];
      bool same = row->bytes == 64;
      assert_true(row->sizes == (same ? 1 : sizes / together));
      assert_true(same || together > 1 || fabs(row->bytes - 23e3) < 2e3);
    }
    cluster_end(r, c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_that_differ_are_counted_together),
      cmocka_unit_test(every_instant_counts_once), cmocka_unit_test(wait_without_clocks),
      cmocka_unit_test(unknown_is_not_zero), cmocka_unit_test(bandwidth_by_the_book)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
