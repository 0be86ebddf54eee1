/* SPDX-License-Identifier: MIT
 *
 * Which steps and ranks a timeline shows, and with which contents, on the hand-built cluster.
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
#include "report/timeline/shown.h"

/* Shows that the model has timelines; the cluster's own are found through the results. */
static const struct timeline_source some_source;

struct fixture {
  struct cluster *cluster;
  struct results *results;
  struct shown_scope scope;
};

static struct fixture show(const struct cluster_options *options,
                           const struct shown_request *request) {
  struct fixture f = {.cluster = cluster_new(options)};
  f.cluster->model.timelines = &some_source;
  f.results = cluster_analyse(f.cluster, NULL);
  shown_choose(f.results, request, &f.scope);
  assert_int_equal(f.scope.source, SHOWN_TIMELINES);
  return f;
}

static void done(struct fixture *f) {
  shown_release(&f->scope);
  cluster_end(f->results, f->cluster);
}

static bool shows_rank(const struct shown_scope *scope, u32 rank) {
  for (u32 i = 0; i < scope->n_ranks; i++)
    if (scope->ranks[i] == rank)
      return true;
  return false;
}

static const char *why_of(const struct shown_scope *scope, u32 step) {
  for (u32 i = 0; i < scope->n_steps; i++)
    if (scope->steps[i].step == step)
      return shown_reason_words[scope->steps[i].why];
  return NULL;
}

static const struct shown_request plain = {.most_ranks = 64, .most_events = INFINITY, .threads = 2};

static void a_run_that_became_slower_shows_when(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[3] = 0.5;
  o.slow_from = 30;
  o.noise = 0.001;
  struct fixture f = show(&o, &plain);
  assert_string_equal(why_of(&f.scope, 30), "first after the run became slower");
  assert_true(f.scope.n_steps >= 2 && f.scope.n_steps <= 3);
  assert_int_equal(f.scope.n_ranks, o.ranks);
  done(&f);
}

static void the_slowest_step_is_shown(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow_step = 50 * MS; /* every tenth */
  struct fixture f = show(&o, &plain);
  u32 slowest = 0;
  for (u32 i = 0; i < f.scope.n_steps; i++)
    if (f.scope.steps[i].why == SHOWN_SLOWEST)
      slowest = f.scope.steps[i].step;
  double most = 0;
  for (u32 i = (u32)f.results->warmup_excluded; i < f.results->n_step_ms; i++)
    most = fmax(most, f.results->step_ms[i]);
  assert_true(slowest > 0 && f.results->step_ms[slowest] == most);
  done(&f);
}

static void the_straggler_is_always_shown(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.ranks = 64;
  o.steps = 30;
  o.slow[37] = 0.5;
  struct shown_request few = plain;
  few.most_ranks = 8;
  struct fixture f = show(&o, &few);
  assert_int_equal(f.scope.n_ranks, 8);
  assert_true(shows_rank(&f.scope, 37));
  for (u32 i = 1; i < f.scope.n_ranks; i++)
    assert_true(f.scope.ranks[i - 1] < f.scope.ranks[i]);
  bool said = false;
  for (u32 i = 0; i < f.scope.n_left_out; i++)
    said = said || strstr(f.scope.left_out[i], "Of 64 ranks, 8 are shown");
  assert_true(said);
  done(&f);
}

/* The end of the previous span, and counts of what was seen. */
struct seen {
  struct fixture *f;
  u32 ranks, paths, spans;
  i64 path_ns;
};

static int take_rank(void *user, const struct shown_rank *rank) {
  struct seen *seen = user;
  assert_int_equal(rank->rank, seen->f->scope.ranks[seen->ranks++]);
  for (u32 i = 0; i < rank->n_spans; i++) {
    const struct shown_span *span = &rank->spans[i];
    assert_true(span->lane < rank->n_lanes && span->name < rank->n_names && span->category);
    assert_true(span->row < rank->lanes[span->lane].rows && span->start <= span->end);
    if (span->launch == INDEX_NONE)
      continue;
    assert_true(span->launch < rank->n_spans);
    assert_true(rank->spans[span->launch].start <= span->start);
  }
  seen->spans += rank->n_spans;
  return 0;
}

static int take_path(void *user, const struct shown_path *path) {
  struct seen *seen = user;
  seen->paths++;
  for (u32 i = 0; i < path->n; i++) {
    seen->path_ns += path->stretches[i].end - path->stretches[i].start;
    if (i > 0)
      assert_true(path->stretches[i].start == path->stretches[i - 1].end);
  }
  return 0;
}

static void ranks_come_in_order_and_paths_cover_their_steps(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[3] = 0.5;
  struct fixture f = show(&o, &plain);
  struct seen seen = {.f = &f};
  struct shown_visitor visitor = {.rank = take_rank, .path = take_path, .user = &seen};
  assert_int_equal(shown_walk(&f.scope, &visitor), 0);
  assert_int_equal(seen.ranks, o.ranks);
  assert_int_equal(seen.paths, f.scope.n_steps);
  /* Forward, two backward kernels, two all-reduces, five launches, a wait, and at least one phase.
   */
  assert_true(seen.spans >= 11 * o.ranks * f.scope.n_steps);
  double step = 1 + 0.008 + 450 + 10 + 0.010; /* as in analyse_path.c */
  assert_true(fabs((double)seen.path_ns / 1e6 - step * f.scope.n_steps) < 1e-3);
  done(&f);
}

static int refuse(void *user, const struct shown_rank *rank) {
  (void)rank;
  return ++*(u32 *)user == 3 ? -28 : 0;
}

static void an_error_of_the_visitor_ends_the_walk(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct fixture f = show(&o, &plain);
  u32 calls = 0;
  struct shown_visitor visitor = {.rank = refuse, .user = &calls};
  assert_int_equal(shown_walk(&f.scope, &visitor), -28);
  assert_int_equal(calls, 3);
  done(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_that_became_slower_shows_when),
      cmocka_unit_test(the_slowest_step_is_shown),
      cmocka_unit_test(the_straggler_is_always_shown),
      cmocka_unit_test(ranks_come_in_order_and_paths_cover_their_steps),
      cmocka_unit_test(an_error_of_the_visitor_ends_the_walk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
