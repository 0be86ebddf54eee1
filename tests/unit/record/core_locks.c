/* SPDX-License-Identifier: MIT
 *
 * The shim's lock in cases in which a plain lock would hang the job: one thread takes it twice, it
 * is left locked in a forked child or by a thread that ended, or its holder does not return. If a
 * test hangs, the runner ends it.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hooks/handle_map.h"
#include "record/hook.h"
#include "record/lock.h"

static struct tscope_lock lock;
static u64 counter;

static void *count_up(void *rounds) {
  for (uintptr_t i = 0; i < (uintptr_t)rounds; i++) {
    while (!tscope_lock(&lock))
      ;
    counter++;
    tscope_unlock(&lock);
  }
  return NULL;
}

static void one_thread_at_a_time(void **state) {
  (void)state;
  enum { THREADS = 8, ROUNDS = 20000 };
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, count_up, (void *)(uintptr_t)ROUNDS), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(counter, THREADS * ROUNDS);
  assert_int_equal(tscope_locks_held(), 0);
}

static void a_thread_does_not_wait_for_itself(void **state) {
  (void)state;
  assert_true(tscope_lock(&lock));
  assert_int_equal(tscope_locks_held(), 1);
  assert_false(tscope_lock(&lock));
  assert_int_equal(tscope_locks_held(), 1);
  tscope_unlock(&lock);
  assert_int_equal(tscope_locks_held(), 0);
  assert_true(tscope_lock(&lock));
  tscope_unlock(&lock);
}

/* Ends without giving it back, as after a jump. */
__attribute__((noinline)) static void take_and_leave(void) {
  volatile char more[256]; /* a frame well below that of the caller */
  more[0] = tscope_lock(&lock);
  assert_true(more[0]);
}

__attribute__((noinline)) static void look_from_inside(const struct tscope_thread *thread) {
  tscope_locks_left(thread, TSCOPE_FRAME());
}

static void a_jump_leaves_no_lock(void **state) {
  (void)state;
  const char *here = __builtin_frame_address(0);
  struct tscope_thread thread = {.stack = {.low = here - (256 << 10), .high = here + (4 << 10)}};
  assert_true(tscope_lock(&lock));
  look_from_inside(&thread); /* as a handler of a signal that came meanwhile */
  assert_int_equal(tscope_locks_held(), 1);
  tscope_unlock(&lock);
  take_and_leave();
  assert_int_equal(tscope_locks_held(), 1);
  tscope_locks_left(&thread, here);
  assert_int_equal(tscope_locks_held(), 0);
  assert_true(tscope_lock(&lock));
  tscope_unlock(&lock);
}

static bool held, let_go;
static sigjmp_buf out;

static void jump_out(int number) {
  siglongjmp(out, number);
}

static void *hold(void *nothing) {
  if (!tscope_lock(&lock))
    return (void *)1;
  __atomic_store_n(&held, true, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
    sched_yield();
  tscope_unlock(&lock);
  return nothing;
}

static pthread_t start_holding(void) {
  pthread_t thread;
  held = let_go = false;
  assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
  while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
    sched_yield();
  return thread;
}

static void stop_holding(pthread_t thread) {
  void *failed;
  __atomic_store_n(&let_go, true, __ATOMIC_RELEASE);
  pthread_join(thread, &failed);
  assert_null(failed);
}

__attribute__((noinline)) static void wait_until_the_alarm(void) {
  volatile char more[256];
  ualarm(20000, 0);
  more[0] = tscope_lock_within(&lock, 60000000000u);
  fail_msg("%d", more[0]);
}

/* The thread does not have what it waited for when a handler left by a jump. */
static void a_jump_out_of_a_wait_leaves_nothing(void **state) {
  (void)state;
  const char *here = __builtin_frame_address(0);
  struct tscope_thread thread = {.stack = {.low = here - (256 << 10), .high = here + (4 << 10)}};
  pthread_t holder = start_holding();
  signal(SIGALRM, jump_out);
  if (!sigsetjmp(out, 1))
    wait_until_the_alarm();
  signal(SIGALRM, SIG_DFL);
  assert_int_equal(tscope_locks_held(), 1);
  tscope_locks_left(&thread, here);
  assert_int_equal(tscope_locks_held(), 0);
  stop_holding(holder); /* it had the lock all the time */
  assert_true(tscope_lock(&lock));
  tscope_unlock(&lock);
  assert_int_equal(tscope_locks_held(), 0);
}

static void one_that_does_not_come_back_is_given_up(void **state) {
  (void)state;
  pthread_t thread = start_holding();
  for (int i = 0; i < 100; i++)
    assert_false(tscope_lock(&lock));
  assert_int_equal(tscope_locks_held(), 0);
  stop_holding(thread);
  assert_true(tscope_lock(&lock));
  tscope_unlock(&lock);
}

static void a_forked_child_takes_over_what_another_thread_held(void **state) {
  (void)state;
  pthread_t thread = start_holding();
  pid_t child = fork();
  if (child == 0) {
    bool locked = tscope_lock(&lock);
    if (locked)
      tscope_unlock(&lock);
    _exit(locked && tscope_locks_held() == 0 ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  stop_holding(thread);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* In builds with this check, writing a record under a lock stops the process. */
static void no_record_is_written_under_a_lock(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGILL, SIG_DFL); /* cmocka's handler would continue with the next test */
    signal(SIGTRAP, SIG_DFL);
    if (!tscope_lock(&lock))
      _exit(1);
    tscope_check_no_lock();
    tscope_unlock(&lock);
    tscope_check_no_lock();
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
#ifdef TSCOPE_CHECKS
  assert_true(WIFSIGNALED(status));
#else
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
}

static void one_for_records_lets_them_be_written(void **state) {
  (void)state;
  static struct tscope_lock definitions = {.for_records = true};
  assert_true(tscope_lock(&definitions));
  tscope_check_no_lock();
  tscope_unlock(&definitions);
}

static void *hold_and_end(void *nothing) {
  return tscope_lock(&lock) ? nothing : (void *)1;
}

static void what_a_thread_that_ended_held_is_taken_over(void **state) {
  (void)state;
  pthread_t thread;
  void *failed;
  assert_int_equal(pthread_create(&thread, NULL, hold_and_end, NULL), 0);
  pthread_join(thread, &failed);
  assert_null(failed);
  assert_true(tscope_lock(&lock));
  tscope_unlock(&lock);
}

HANDLE_MAP(map, 256);

static void words_that_mark_free_slots_are_no_keys(void **state) {
  (void)state;
  static const u64 none[] = {0, UINT64_MAX};
  u64 value = 77;
  assert_true(handle_map_put(&map, 5, 50));
  assert_true(handle_map_put(&map, 6, 60));
  assert_true(handle_map_remove(&map, 5, &value)); /* leaves a slot that is free again */
  for (int i = 0; i < 2; i++) {
    assert_false(handle_map_put(&map, none[i], 1));
    assert_null(handle_map_find(&map, none[i]));
    assert_false(handle_map_get(&map, none[i], &value));
    assert_false(handle_map_remove(&map, none[i], &value));
  }
  assert_int_equal(value, 50);
  assert_true(handle_map_get(&map, 6, &value));
  assert_int_equal(value, 60);
  assert_true(handle_map_put(&map, 5, 51));
  assert_true(handle_map_get(&map, 5, &value));
  assert_int_equal(value, 51);
}

static void a_map_takes_in_no_more_than_fits_and_keeps_what_it_has(void **state) {
  (void)state;
  HANDLE_MAP(small, 64);
  u64 kept = 0, value;
  for (u64 key = 1; key <= 1000; key++)
    kept += handle_map_put(&small, key << 12, key);
  assert_int_equal(kept, 64);
  for (u64 key = 1; key <= 1000; key++)
    if (handle_map_get(&small, key << 12, &value)) {
      assert_int_equal(value, key);
      kept--;
    }
  assert_int_equal(kept, 0);
}

/* Keys that come and go leave no slots behind through which a search has to go. */
static void what_is_removed_takes_no_place(void **state) {
  (void)state;
  HANDLE_MAP(small, 64);
  u64 value;
  for (u64 key = 1; key <= 1000; key++) {
    assert_true(handle_map_put(&small, key, key));
    assert_true(handle_map_put(&small, key + 5000, key));
    assert_true(key == 1 || handle_map_remove(&small, key - 1 + 5000, &value));
    assert_true(handle_map_remove(&small, key, &value));
    assert_int_equal(value, key);
    assert_true(handle_map_get(&small, key + 5000, &value));
  }
  u64 removed = 0;
  for (u64 i = 0; i < small.capacity; i++)
    removed += small.slots[i].key == HANDLE_MAP_REMOVED;
  assert_in_range(removed, 0, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_thread_at_a_time),
      cmocka_unit_test(a_thread_does_not_wait_for_itself),
      cmocka_unit_test(a_jump_leaves_no_lock),
      cmocka_unit_test(a_jump_out_of_a_wait_leaves_nothing),
      cmocka_unit_test(one_that_does_not_come_back_is_given_up),
      cmocka_unit_test(a_forked_child_takes_over_what_another_thread_held),
      cmocka_unit_test(no_record_is_written_under_a_lock),
      cmocka_unit_test(one_for_records_lets_them_be_written),
      cmocka_unit_test(what_a_thread_that_ended_held_is_taken_over),
      cmocka_unit_test(words_that_mark_free_slots_are_no_keys),
      cmocka_unit_test(a_map_takes_in_no_more_than_fits_and_keeps_what_it_has),
      cmocka_unit_test(what_is_removed_takes_no_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
