/* SPDX-License-Identifier: MIT
 *
 * Finds the stall that a rank is still in when its record ends.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include <signal.h>
#include <string.h>

#include "analyse_cluster.h"
#include "model/span_call_sites.h"
#include "model/stalls.h"
#include "sampled_cluster.h"

enum { STOPPED = 2, STOPPED_PID = 1002 };

/* The state of each rank when the job ended, and the stopped one as its neighbours saw it. */
static struct stalled_thread sleeping = {.tid = 1, .state = 'S', .main = true};
static struct stalled_thread running = {.tid = 1, .state = 'R', .main = true};
static struct stalled_peer stopped = {.pid = STOPPED_PID, .state = 'T'};

/* All ranks stall after their last call. The stopped one wrote a stall only at `looked`, and
 * never wrote that it was over. */
static struct cluster *stalled_cluster(struct rank_stall stalls[], i64 looked) {
  struct cluster_options options = healthy_cpu();
  struct cluster *c = cluster_new(&options);
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct rank *rank = &c->model.ranks[r];
    rank->closed = false;
    rank->pid = 1000 + r;
    rank->host = "node1";
    stalls[r] = (struct rank_stall){.what = TSCOPE_STALL_NOTHING_MOVED,
                                    .begin = c->model.end + 1,
                                    .looked = c->model.end + 3000 * MS,
                                    .end = NS_UNKNOWN,
                                    .threads = &sleeping,
                                    .n_threads = 1,
                                    .peers = &stopped,
                                    .n_peers = 1};
    rank->stalls = &stalls[r];
    rank->n_stalls = 1;
  }
  stalls[STOPPED].begin = looked - 3000 * MS;
  stalls[STOPPED].looked = looked;
  stalls[STOPPED].threads = &running;
  stalls[STOPPED].n_peers = 0;
  return c;
}

/* All ranks are killed in the end; one did not run for ten seconds, and then for so long. */
static const struct run_end *end_after_pause(struct rank_stall *pause, i64 ran, struct cluster *c,
                                             struct results **r) {
  i64 end = c->model.end + 10000 * MS;
  for (u32 i = 0; i < c->model.n_ranks; i++) {
    struct rank *rank = &c->model.ranks[i];
    rank->closed = false;
    rank->ending = (struct rank_end){.known = true,
                                     .end = NS_UNKNOWN,
                                     .alive = end + ran,
                                     .reaped = NS_UNKNOWN,
                                     .exception_at = NS_UNKNOWN,
                                     .failed_at = NS_UNKNOWN};
  }
  *pause = rank_stall_empty();
  pause->what = TSCOPE_STALL_NOT_RUNNING;
  pause->begin = c->model.end;
  pause->end = end;
  c->model.ranks[STOPPED].stalls = pause;
  c->model.ranks[STOPPED].n_stalls = 1;
  c->model.clock_aligned = true;
  struct analyse_options given = no_options();
  *r = cluster_analyse(c, &given);
  return &(*r)->run_end;
}

/* One rank leaves with status 0. The others stand in something that is no call until they are
 * stopped: waiting for data, as for a key of the store; or for what a child writes, or asleep,
 * which say nothing of that one. */
static void who_leaves_while_the_others_wait_for_data_is_named(void **state) {
  (void)state;
  static const struct {
    const char *call, *file;
  } stands[] = {{"recvfrom", "socket:[7]"}, {"read", "pipe:[7]"}, {"clock_nanosleep", NULL}};
  FOR_EACH(stands, LENGTH_OF(stands), in) {
    struct stalled_thread waits = {
        .tid = 1, .state = 'S', .main = true, .call = in->call, .file = in->file};
    struct rank_stall stalls[CLUSTER_RANKS];
    struct cluster *c = stalled_cluster(stalls, 1);
    for (u32 r = 0; r < c->model.n_ranks; r++) {
      struct rank *rank = &c->model.ranks[r];
      bool left = r == STOPPED;
      stalls[r].threads = &waits;
      stalls[r].n_peers = 0;
      rank->n_stalls = !left;
      rank->closed = left;
      rank->ending = (struct rank_end){.known = true,
                                       .kind = left ? TSCOPE_END_EXIT : TSCOPE_END_UNSEEN,
                                       .signal = left ? 0 : SIGTERM,
                                       .end = left ? c->model.end : NS_UNKNOWN,
                                       .alive = c->model.end + (left ? 0 : 9000 * MS),
                                       .reaped = NS_UNKNOWN,
                                       .exception_at = NS_UNKNOWN,
                                       .failed_at = NS_UNKNOWN};
    }
    c->model.clock_aligned = true;
    struct analyse_options given = no_options();
    struct results *r = cluster_analyse(c, &given);
    assert_int_equal(r->run_end.n_culprits, in == stands);
    if (in == stands)
      assert_int_equal(r->run_end.culprits[0], STOPPED);
    cluster_end(r, c);
  }
}

static void who_does_not_run_until_all_are_killed_held_them_up(void **state) {
  (void)state;
  struct cluster_options options = healthy_cpu();
  struct cluster *c = cluster_new(&options);
  struct rank_stall pause;
  struct results *r;
  const struct run_end *end = end_after_pause(&pause, 10 * MS, c, &r);
  assert_int_equal(end->n_culprits, 1);
  assert_int_equal(end->culprits[0], STOPPED);
  assert_int_equal(end->cause, END_STOPPED);
  assert_true(end->held_up);
  assert_non_null(strstr(end->summary, "its process did not run for its last 10.0 s"));
  cluster_end(r, c);
}

/* The last look at it found Python's own finalizers: the program was elsewhere before. */
static void where_it_was_last_is_in_the_program(void **state) {
  static struct call_frame frames[] = {
      {.file = "/home/me/train.py", .function = "train", .line = 10},
      {.file = "/usr/lib/python3.12/weakref.py", .function = "_exitfunc", .line = 666}};
  static const u32 numbers[] = {0, 1};
  static struct call_stack stacks[] = {{numbers, 1, 0}, {numbers + 1, 1, 0}};
  (void)state;
  struct cluster_options options = healthy_cpu();
  struct cluster *c = cluster_new(&options);
  struct rank_stall pause;
  struct results *r;
  i64 *slow = arena_array(&c->arena, c->model.steps.n * c->model.n_ranks, sizeof(*slow));
  cluster_sample(c, slow, 0, 100 * MS, 0);
  for (u32 i = 0; i < c->model.n_ranks; i++) {
    struct call_sites *sites = (struct call_sites *)c->timelines[i].call_sites;
    sites->frames = frames;
    sites->n_frames = sites->n_stacks = 2;
    sites->stacks = stacks;
    for (u32 k = 0; k < sites->n_samples; k++)
      sites->samples[k].stack = k + 1 == sites->n_samples;
  }
  const struct run_end *end = end_after_pause(&pause, 10 * MS, c, &r);
  assert_non_null(strstr(end->summary, "train.py:10"));
  assert_null(strstr(end->summary, "weakref"));
  cluster_end(r, c);
}

static void who_went_on_before_all_were_killed_held_nobody_up(void **state) {
  (void)state;
  struct cluster_options options = healthy_cpu();
  struct cluster *c = cluster_new(&options);
  struct rank_stall pause;
  struct results *r;
  assert_int_equal(end_after_pause(&pause, 500 * MS, c, &r)->n_culprits, 0);
  cluster_end(r, c);
}

static enum stall_doing doing_of(struct cluster *c, u32 global) {
  struct analyse_options given = no_options();
  struct results *r = cluster_analyse(c, &given);
  assert_int_equal(r->stalls.n_ranks, c->model.n_ranks);
  assert_int_equal(r->stalls.ranks[global].rank, global);
  enum stall_doing what = r->stalls.ranks[global].what;
  cluster_end(r, c);
  return what;
}

/* Its start took long enough to count as a stall, and it was stopped before it could write that
 * this was over: where it was then says nothing about now. */
static void a_stall_before_later_calls_is_over(void **state) {
  (void)state;
  struct rank_stall stalls[CLUSTER_RANKS];
  struct cluster *c = stalled_cluster(stalls, 1);
  assert_int_equal(doing_of(c, STOPPED), STALL_STOPPED);
}

/* It continued training, and was stopped for ever before the end of the stall was noticed. */
static void a_stall_whose_end_was_noticed_late_is_over(void **state) {
  (void)state;
  struct rank_stall stalls[CLUSTER_RANKS];
  struct cluster *c = stalled_cluster(stalls, 1);
  stalls[STOPPED].end = c->model.end + 100 * MS;
  assert_int_equal(doing_of(c, STOPPED), STALL_STOPPED);
}

static void a_stall_after_all_calls_goes_on(void **state) {
  (void)state;
  struct rank_stall stalls[CLUSTER_RANKS];
  struct cluster *c = stalled_cluster(stalls, 1);
  stalls[STOPPED].looked = c->model.end + 3000 * MS;
  assert_int_equal(doing_of(c, STOPPED), STALL_RUNS);
}

/* It stalled again during its exit, with no Python frame left: the place where it was before is
 * what held up the job. */
static void ending_does_not_hide_where_it_was(u32 while_ending) {
  static const struct call_frame lock = {"/home/me/train.py", "update", 20, 10};
  const struct call_frame *frames[] = {&lock};
  struct stalled_thread waiting = {
      .tid = 1, .state = 'S', .main = true, .frames = frames, .n_frames = 1};
  struct rank_stall stalls[CLUSTER_RANKS], own[4];
  struct cluster *c = stalled_cluster(stalls, 1);
  struct rank *rank = &c->model.ranks[STOPPED];
  for (u32 i = 0; i <= while_ending; i++) {
    own[i] = stalls[STOPPED - 1];
    own[i].begin = i ? own[i - 1].end + 10 * MS : own[i].begin;
    own[i].looked = own[i].begin + 3000 * MS;
    own[i].end = i < while_ending ? own[i].looked + 1000 * MS : NS_UNKNOWN;
    own[i].threads = i ? &running : &waiting;
  }
  rank->stalls = own;
  rank->n_stalls = while_ending + 1;
  struct analyse_options given = no_options();
  struct results *r = cluster_analyse(c, &given);
  assert_int_equal(r->stalls.n_ranks, c->model.n_ranks);
  assert_string_equal(r->stalls.ranks[STOPPED].function, "update");
  assert_true(r->stalls.ranks[STOPPED].line == 20);
  cluster_end(r, c);
}

static void a_stall_while_ending_does_not_hide_the_one_before(void **state) {
  (void)state;
  ending_does_not_hide_where_it_was(1);
}

static void three_stalls_while_ending_do_not_hide_the_one_before(void **state) {
  (void)state;
  ending_does_not_hide_where_it_was(3);
}

/* Only one rank was still in a stall when its record ended: that says nothing of where the others
 * are. */
static void one_rank_that_stalls_is_not_all(void **state) {
  struct rank_stall stalls[CLUSTER_RANKS];
  (void)state;
  struct cluster *c = stalled_cluster(stalls, 3000 * MS);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].n_stalls = r == STOPPED;
  stalls[STOPPED].begin = c->model.end + 1;
  stalls[STOPPED].looked = c->model.end + 3000 * MS;
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *finding = finding_of(r, "RUN.STALLED");
  assert_non_null(finding);
  assert_non_null(strstr(finding->title, "rank 2 at"));
  assert_non_null(strstr(finding->action, "Look at that line"));
  cluster_end(r, c);
}

static u32 runs_there; /* a rank whose thread runs; 0: none */
static u32 untraced;   /* ranks without a trace */

/* What is said of the stall where ranks are at these lines of the program; 0: not known. */
static void expect_said(const u32 lines[CLUSTER_RANKS], u32 n_named, const char *title,
                        const char *evidence, const char *action) {
  struct rank_stall stalls[CLUSTER_RANKS];
  struct stalled_thread threads[CLUSTER_RANKS];
  struct call_frame at[CLUSTER_RANKS];
  const struct call_frame *frames[CLUSTER_RANKS];
  struct cluster *c = stalled_cluster(stalls, 1);
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    at[r] = (struct call_frame){"/home/me/train.py", "update", lines[r], 10};
    frames[r] = &at[r];
    threads[r] = (struct stalled_thread){
        .tid = 1, .main = true, .frames = &frames[r], .n_frames = lines[r] > 0};
    threads[r].state = r && r == runs_there ? 'R' : 'S';
    stalls[r].looked = c->model.end + 3000 * MS;
    stalls[r].begin = c->model.end + 1;
    stalls[r].folder = "/home/me";
    stalls[r].threads = &threads[r];
    stalls[r].n_peers = 0;
  }
  c->model.world_size = c->model.n_ranks + untraced;
  struct analyse_options given = no_options();
  struct results *r = cluster_analyse(c, &given);
  const struct finding *finding = finding_of(r, "RUN.STALLED");
  assert_non_null(finding);
  if (finding->n_ranks != n_named || !strstr(finding->title, title) ||
      !strstr(finding->evidence, evidence) || !strstr(finding->action, action))
    fail_msg("%u: %s. %s %s", finding->n_ranks, finding->title, finding->evidence, finding->action);
  cluster_end(r, c);
}

static void who_is_elsewhere_is_named(void **state) {
  (void)state;
  expect_said((const u32[CLUSTER_RANKS]){9, 9, 20, 9}, 1, "rank 2 at train.py:20",
              "3 of the others: at train.py:9", "The other ranks probably wait for it");
  expect_said((const u32[CLUSTER_RANKS]){9, 9, 9, 9}, 4, "4 of 4 ranks at train.py:9",
              "4 of 4 ranks: at", "These ranks are at the same place");
}

/* As in init_process_group(), to which two ranks do not come. */
static void ranks_without_a_trace_may_be_what_all_wait_for(void **state) {
  (void)state;
  untraced = 2;
  expect_said((const u32[CLUSTER_RANKS]){9, 9, 9, 9}, 4, "4 of 6 ranks at train.py:9", "",
              "Look at ranks 4, 5 first: they have no trace");
  expect_said((const u32[CLUSTER_RANKS]){9, 9, 20, 9}, 1, "rank 2 at train.py:20", "",
              "Look at that line");
  untraced = 0;
}

/* Ranks whose places are not known need not be at the same place, or elsewhere than others. */
static void unknown_places_are_not_one(void **state) {
  (void)state;
  expect_said((const u32[CLUSTER_RANKS]){0}, 4, "4 of 4 ranks at a place that is not known", "",
              "Look at what each rank does");
  expect_said((const u32[CLUSTER_RANKS]){[2] = 20}, 1, "rank 2 at train.py:20", "",
              "Look at what each rank does");
}

static void nobody_is_odd_where_all_are_elsewhere(void **state) {
  (void)state;
  expect_said((const u32[CLUSTER_RANKS]){1, 2, 3, 4}, 1, "rank 0 at train.py:1", "",
              "Look at what each rank does");
  expect_said((const u32[CLUSTER_RANKS]){9, 9, 20, 20}, 2, "2 of 4 ranks at train.py:9", "",
              "Look at what each rank does");
}

/* The kernel's state of a thread that polls is a matter of chance: the place is the same. */
static void what_one_rank_does_is_not_said_of_all(void **state) {
  (void)state;
  runs_there = 1;
  expect_said((const u32[CLUSTER_RANKS]){9, 9, 9, 9}, 4, "4 of 4 ranks at train.py:9",
              "4 of 4 ranks, such as rank 0: at", "These ranks are at the same place");
  runs_there = 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_rank_that_stalls_is_not_all),
      cmocka_unit_test(a_stall_before_later_calls_is_over),
      cmocka_unit_test(a_stall_whose_end_was_noticed_late_is_over),
      cmocka_unit_test(a_stall_after_all_calls_goes_on),
      cmocka_unit_test(who_leaves_while_the_others_wait_for_data_is_named),
      cmocka_unit_test(who_does_not_run_until_all_are_killed_held_them_up),
      cmocka_unit_test(where_it_was_last_is_in_the_program),
      cmocka_unit_test(who_went_on_before_all_were_killed_held_nobody_up),
      cmocka_unit_test(who_is_elsewhere_is_named),
      cmocka_unit_test(ranks_without_a_trace_may_be_what_all_wait_for),
      cmocka_unit_test(unknown_places_are_not_one),
      cmocka_unit_test(nobody_is_odd_where_all_are_elsewhere),
      cmocka_unit_test(what_one_rank_does_is_not_said_of_all),
      cmocka_unit_test(a_stall_while_ending_does_not_hide_the_one_before),
      cmocka_unit_test(three_stalls_while_ending_do_not_hide_the_one_before),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
