/* SPDX-License-Identifier: MIT
 *
 * Where a rank stalls, in words.
 */
#include "analyses/stalls/stall_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SITE "/opt/env/lib/python3.12/site-packages/"

static const struct call_frame program = {"/home/me/train.py", "main", 9, 1};
static const struct call_frame caller = {"/home/me/run.py", "<module>", 3, 1};
static const struct call_frame reduce = {SITE "torch/distributed/distributed_c10d.py", "all_reduce",
                                         2000, 1};

/* The names of its functions say which they are. */
static void a_thread_in_communication_waits_for_ranks(void **state) {
  (void)state;
  static const char *const functions[] = {"all_gather_object", "batch_isend_irecv",
                                          "_store_based_barrier", "monitored_barrier"};
  for (size_t i = 0; i < LENGTH_OF(functions); i++) {
    struct arena arena = {0};
    const struct call_frame call = {reduce.file, functions[i], 2000, 1};
    const struct call_frame *frames[] = {&call, &program};
    struct stalled_thread thread = {
        .tid = 1, .state = 'S', .main = true, .python = true, .frames = frames, .n_frames = 2};
    struct rank_stall stall = rank_stall_empty();
    struct stalled_rank out = {0};
    stall.threads = &thread;
    stall.n_threads = 1;
    stall_describe(&arena, &stall, NULL, &out);
    assert_int_equal(out.what, STALL_IN_COLLECTIVE);
    arena_release(&arena);
  }
}

/* A key of the store, asked for in the program's own line; a child, which has the program's output
 * as a pipe or two; a function of torch.distributed that is no collective. */
static void a_rank_that_waits_for_its_child_waits_for_no_other_rank(void **state) {
  (void)state;
  static const struct call_frame subprocess = {"/opt/env/lib/python3.12/subprocess.py", "run", 550,
                                               1};
  static const struct call_frame rpc = {SITE "torch/distributed/rpc/api.py", "_all_gather", 200, 1};
  static const struct {
    const struct call_frame *library;
    const char *call, *file;
    bool others;
  } cases[] = {{NULL, "poll", NULL, true},
               {NULL, "read", "socket:[7]", true},
               {NULL, "read", "pipe:[7]", false},
               {&subprocess, "poll", NULL, false},
               {&rpc, "poll", NULL, true}};
  FOR_EACH(cases, LENGTH_OF(cases), one) {
    struct arena arena = {0};
    const struct call_frame *both[] = {one->library, &program};
    struct stalled_thread thread = {.tid = 1,
                                    .state = 'S',
                                    .main = true,
                                    .python = true,
                                    .call = one->call,
                                    .file = one->file,
                                    .frames = one->library ? both : both + 1,
                                    .n_frames = one->library ? 2 : 1};
    struct rank_stall stall = rank_stall_empty();
    struct stalled_rank out = {0};
    stall.threads = &thread;
    stall.n_threads = 1;
    stall_describe(&arena, &stall, NULL, &out);
    assert_int_equal(out.what, STALL_WAITS_FOR_DATA);
    assert_int_equal(out.awaits_others, one->others);
    arena_release(&arena);
  }
}

/* Samples of the same moment say the same. */
static void a_blocked_thread_waits_for_what_its_samples_say(void **state) {
  (void)state;
  static const struct {
    const char *call, *file;
    u8 waits_for;
    enum stall_doing what;
    bool others;
  } cases[] = {{"select", NULL, TSCOPE_ACTIVITY_SLEEP, STALL_SLEEPS, false},
               {"select", NULL, TSCOPE_ACTIVITY_EVENTS, STALL_WAITS_FOR_DATA, true},
               {"select", NULL, TSCOPE_ACTIVITY_UNKNOWN, STALL_WAITS_FOR_DATA, true},
               {"flock", "/nfs/x.lock", TSCOPE_ACTIVITY_UNKNOWN, STALL_WAITS_FOR_LOCK, false},
               {"read", "/dev/shm/x", TSCOPE_ACTIVITY_UNKNOWN, STALL_INPUT_OUTPUT, false},
               {"read", "...e/x", TSCOPE_ACTIVITY_UNKNOWN, STALL_INPUT_OUTPUT, false},
               {"read", "/dev/pts/0", TSCOPE_ACTIVITY_UNKNOWN, STALL_WAITS_FOR_DATA, false}};
  FOR_EACH(cases, LENGTH_OF(cases), one) {
    struct arena arena = {0};
    const struct call_frame *frames[] = {&program};
    struct stalled_thread thread = {.tid = 1,
                                    .state = 'S',
                                    .main = true,
                                    .python = true,
                                    .waits_for = one->waits_for,
                                    .call = one->call,
                                    .file = one->file,
                                    .frames = frames,
                                    .n_frames = 1};
    struct rank_stall stall = rank_stall_empty();
    struct stalled_rank out = {0};
    stall.threads = &thread;
    stall.n_threads = 1;
    stall_describe(&arena, &stall, NULL, &out);
    assert_int_equal(out.what, one->what);
    assert_int_equal(out.awaits_others, one->others);
    arena_release(&arena);
  }
}

static struct stalled_rank describe(struct arena *arena, const struct call_frame *library) {
  const struct call_frame *frames[] = {&reduce, library, &program, &caller};
  struct stalled_thread thread = {
      .tid = 1, .state = 'S', .main = true, .python = true, .frames = frames, .n_frames = 4};
  struct rank_stall stall = rank_stall_empty();
  struct stalled_rank out = {0};
  stall.folder = "/home/me";
  stall.threads = &thread;
  stall.n_threads = 1;
  stall_describe(arena, &stall, "all_reduce of dp", &out);
  return out;
}

static void a_loop_of_a_library_is_named_with_the_line_that_calls_it(void **state) {
  (void)state;
  struct arena arena = {0};
  struct call_frame library = {SITE "trainer/loop.py", "Trainer.step", 30, 20};
  library.runs_training = true;
  struct stalled_rank out = describe(&arena, &library);
  assert_string_equal(out.place, "trainer/loop.py:30");
  assert_string_equal(out.function, "Trainer.step");
  assert_string_equal(out.loop, "train.py:9 (main)");
  assert_string_equal(out.words,
                      "waits in all_reduce of dp, in all_reduce, from trainer/loop.py:30 "
                      "(Trainer.step), called from train.py:9 (main): asleep");
  arena_release(&arena);
}

static void a_library_that_runs_no_loop_is_called_by_the_program(void **state) {
  (void)state;
  struct arena arena = {0};
  const struct call_frame library = {SITE "speed/wrap.py", "reduce", 30, 20};
  struct stalled_rank out = describe(&arena, &library);
  assert_string_equal(out.place, "train.py:9");
  assert_null(out.loop);
  assert_string_equal(out.words,
                      "waits in all_reduce of dp, in reduce, from train.py:9 (main): asleep");
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_in_communication_waits_for_ranks),
      cmocka_unit_test(a_rank_that_waits_for_its_child_waits_for_no_other_rank),
      cmocka_unit_test(a_blocked_thread_waits_for_what_its_samples_say),
      cmocka_unit_test(a_loop_of_a_library_is_named_with_the_line_that_calls_it),
      cmocka_unit_test(a_library_that_runs_no_loop_is_called_by_the_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
