/* SPDX-License-Identifier: MIT
 *
 * Workers of a loader of which samples tell for which share of the time they are at work, all
 * together: how long each needs for a batch. The truth is the queue that is played here.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include "analyse_cluster.h"
#include "analyses/path/path_graph.h"
#include "base/checked_memory.h"

enum { BATCHES = 60, MOST_WORKERS = 4 };
#define COMPUTES (12 * MS)
#define TAKES (100 * US)

struct played {
  struct sample_graph g;
  struct slice slice;
  struct node nodes[BATCHES + 1];
  u32 base[2];
};

/* The program takes batches in turn, each when its worker has it, and computes with it. Those of
 * the second worker it takes so much later. */
static void play(struct played *p, u32 workers, const i64 *load, i64 late, bool busier) {
  i64 ready[BATCHES], got[BATCHES], now = 0, busy = 0;
  for (u32 i = 0; i < BATCHES; i++) {
    i64 begin = i >= workers ? ready[i - workers] : 0;
    begin = i >= 2 * workers ? MAX(begin, got[i - 2 * workers]) : begin;
    ready[i] = begin + load[i % workers];
    busy += load[i % workers];
    got[i] = MAX(now, ready[i]) + TAKES + (i % workers == 1 ? late : 0);
    p->nodes[i] = (struct node){.start = now,
                                .end = got[i],
                                .kind = NODE_HOST,
                                .phase = TSCOPE_PHASE_DATA,
                                .launch = INDEX_NONE,
                                .is_batch = true,
                                .alone = i == 0};
    now = got[i] + COMPUTES;
  }
  double share = (double)busy / (double)(workers * now);
  p->slice = (struct slice){.end = now,
                            .present = true,
                            .workers = workers,
                            .workers_busy = share,
                            .workers_busy_most = share + 0.08,
                            .one_worker_is_busier = busier,
                            .busiest_worker = 1};
  p->base[1] = BATCHES;
  p->g = (struct sample_graph){
      .nodes = p->nodes, .n = BATCHES, .base = p->base, .slices = &p->slice, .n_ranks = 1};
  sample_graph_find_batches(&p->g);
}

static double mean_load_ms(const struct played *p, u32 worker) {
  double sum = 0;
  u32 n = 0;
  for (u32 i = worker; i < BATCHES; i += p->slice.workers, n++)
    sum += (double)p->g.batches[i].loads / 1e6;
  return sum / n;
}

static void check_late(u32 workers, const i64 *load, i64 late, bool busier) {
  struct played *p = memory_zeroed(1, sizeof(*p));
  play(p, workers, load, late, busier);
  for (u32 w = 0; w < workers; w++)
    assert_float_equal(mean_load_ms(p, w) * 1e6 / (double)load[w], 1, 0.1);
  free(p->g.batches);
  free(p);
}

static void check(u32 workers, const i64 *load) {
  check_late(workers, load, 0, false);
}

/* Whichever it is: half of all batches, or one more. */
static void one_of_two_workers_is_slow(void **state) {
  (void)state;
  check(2, (const i64[]){14 * MS, 86 * MS});
  check(2, (const i64[]){86 * MS, 14 * MS});
}

static void one_of_four_workers_is_slow(void **state) {
  (void)state;
  check(4, (const i64[]){20 * MS, 20 * MS, 150 * MS, 20 * MS});
}

/* All needing equally long would explain the waits, too: samples of each worker tell. */
static void one_of_four_workers_is_a_little_slow(void **state) {
  (void)state;
  check_late(4, (const i64[]){30 * MS, 30 * MS, 52 * MS, 30 * MS}, 0, true);
}

/* Where workers have their batches at the same time, the program takes all of them with the first,
 * and it waits for no worker then. */
static void batches_that_are_taken_together(void **state) {
  (void)state;
  check_late(4, (const i64[]){32 * MS, 32 * MS, 32 * MS, 32 * MS}, 15 * MS, false);
}

static void workers_that_are_ahead(void **state) {
  (void)state;
  check(2, (const i64[]){8 * MS, 8 * MS});
}

static void workers_that_are_equally_slow(void **state) {
  (void)state;
  check(2, (const i64[]){50 * MS, 50 * MS});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_of_two_workers_is_slow),
                                     cmocka_unit_test(one_of_four_workers_is_slow),
                                     cmocka_unit_test(one_of_four_workers_is_a_little_slow),
                                     cmocka_unit_test(batches_that_are_taken_together),
                                     cmocka_unit_test(workers_that_are_ahead),
                                     cmocka_unit_test(workers_that_are_equally_slow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
