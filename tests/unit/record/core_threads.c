/* SPDX-License-Identifier: MIT
 *
 * Threads: new threads take over the slots of ended ones, so many short threads need neither chunks
 * nor numbers. Records stay separate per thread, strings are shared by all, and the queue between
 * threads loses and duplicates nothing.
 */
#include "core_child.h"

#include <pthread.h>
#include <sched.h>

#include "record/cancellation.h"
#include "record/queue.h"

static void *launch_ten(void *nothing) {
  for (u32 i = 0; i < 10; i++)
    CHILD_CHECK(hooked_launch(i));
  return nothing;
}

static void play_churn(void *nothing) {
  (void)nothing;
  for (int i = 0; i < 500; i++) {
    pthread_t threads[2];
    for (int t = 0; t < 2; t++)
      CHILD_CHECK(pthread_create(&threads[t], NULL, launch_ten, NULL) == 0);
    for (int t = 0; t < 2; t++)
      pthread_join(threads[t], NULL);
  }
}

struct slots {
  u64 launches, thread_records;
  u32 highest;
};

static void look(const struct trace_record *at, void *more) {
  struct slots *slots = more;
  if (at->record->type == TSCOPE_REC_LAUNCH)
    slots->launches++;
  if (at->record->type == TSCOPE_REC_THREAD)
    slots->thread_records++;
  if (at->chunk->thread > slots->highest)
    slots->highest = at->chunk->thread;
}

static void new_threads_take_over_slots(void **state) {
  (void)state;
  struct scene scene;
  struct slots slots = {0};
  scene_play(&scene, play_churn, NULL);
  assert_true(trace_walk(&scene.trace, look, &slots) > 0);
  assert_int_equal(slots.launches, 500 * 2 * 10);
  assert_true(slots.thread_records >= 1000); /* every thread has a record, also tscope's own */
  assert_true(slots.highest <= 4); /* two at a time, the poller, and one that ended late */
  assert_true(scene.trace.chunks <= 8);
  scene_end(&scene);
}

/* Its cancellation comes in a block of tscope's. */
static void *cancelled_at_any_instruction(void *unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  {
    TSCOPE_DEFER_CANCELLATION;
    pthread_cancel(pthread_self());
  }
  return unused;
}

static void deferred_cancellation_has_its_result(void **state) {
  (void)state;
  pthread_t thread;
  void *result = NULL;
  assert_int_equal(pthread_create(&thread, NULL, cancelled_at_any_instruction, NULL), 0);
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* One number per text, whichever thread is first. */

enum { NAMES = 200, NAMERS = 4 };
static u32 numbers[NAMERS][NAMES];

static void *name_all(void *which) {
  u32 *mine = which;
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  CHILD_CHECK(thread);
  for (int i = 0; i < NAMES; i++) {
    char text[32];
    snprintf(text, sizeof(text), "kernel %d", i);
    mine[i] = tscope_string(thread, text);
  }
  tscope_leave(thread);
  return NULL;
}

static void play_names(void *nothing) {
  (void)nothing;
  pthread_t threads[NAMERS];
  for (int t = 0; t < NAMERS; t++)
    CHILD_CHECK(pthread_create(&threads[t], NULL, name_all, numbers[t]) == 0);
  for (int t = 0; t < NAMERS; t++)
    pthread_join(threads[t], NULL);
  for (int i = 0; i < NAMES; i++)
    for (int t = 0; t < NAMERS; t++)
      CHILD_CHECK(numbers[t][i] && numbers[t][i] == numbers[0][i]);
}

static void count_names(const struct trace_record *at, void *more) {
  const struct tscope_string_record *string = (const void *)at->record;
  if (string->header.type == TSCOPE_REC_STRING && string->bytes > 7 &&
      memcmp(string + 1, "kernel ", 7) == 0)
    ++*(u64 *)more;
}

static void strings_are_the_same_for_all_threads(void **state) {
  (void)state;
  struct scene scene;
  u64 kernels = 0;
  scene_play(&scene, play_names, NULL);
  assert_true(trace_walk(&scene.trace, count_names, &kernels) > 0);
  assert_int_equal(kernels, NAMES);
  scene_end(&scene);
}

/* Threads that still record while the process ends. */

static void *launch_on(void *nothing) {
  for (;;)
    hooked_launch(0);
  return nothing;
}

static void play_busy_end(void *nothing) {
  (void)nothing;
  pthread_t thread;
  for (int i = 0; i < 4; i++)
    CHILD_CHECK(pthread_create(&thread, NULL, launch_on, NULL) == 0);
  for (u32 i = 0; i < 20000; i++)
    hooked_launch(i);
}

static void end_while_threads_record(void **state) {
  (void)state;
  for (int i = 0; i < 5; i++) {
    struct scene scene;
    struct slots slots = {0};
    scene_play(&scene, play_busy_end, NULL);
    assert_true(trace_walk(&scene.trace, look, &slots) > 0);
    scene_end(&scene);
  }
}

enum { VALUES = 20000, PUTTERS = 2, TAKERS = 2 };
static struct tscope_queue queue;
static struct tscope_queue_cell cells[64];
static u8 taken[PUTTERS * VALUES];
static u32 left = PUTTERS * VALUES;

static void *put_values(void *from) {
  u32 first = *(u32 *)from;
  for (u32 i = 0; i < VALUES; i++)
    while (!tscope_queue_push(&queue, first + i))
      sched_yield();
  return NULL;
}

static void *take_values(void *nothing) {
  while (__atomic_load_n(&left, __ATOMIC_RELAXED)) {
    u32 value;
    if (!tscope_queue_pop(&queue, &value)) {
      sched_yield();
      continue;
    }
    __atomic_fetch_add(&taken[value], 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED);
  }
  return nothing;
}

static void queue_hands_on_each_value_once(void **state) {
  (void)state;
  pthread_t threads[PUTTERS + TAKERS];
  u32 first[PUTTERS];
  tscope_queue_init(&queue, cells, 64);
  for (u32 i = 0; i < PUTTERS; i++) {
    first[i] = i * VALUES;
    assert_int_equal(pthread_create(&threads[i], NULL, put_values, &first[i]), 0);
  }
  for (u32 i = 0; i < TAKERS; i++)
    assert_int_equal(pthread_create(&threads[PUTTERS + i], NULL, take_values, NULL), 0);
  for (u32 i = 0; i < PUTTERS + TAKERS; i++)
    pthread_join(threads[i], NULL);
  for (u32 i = 0; i < PUTTERS * VALUES; i++)
    assert_int_equal(taken[i], 1);
  u32 value;
  assert_false(tscope_queue_pop(&queue, &value));
}

static void queue_is_first_in_first_out_and_bounded(void **state) {
  (void)state;
  u32 value;
  tscope_queue_init(&queue, cells, 4);
  for (u32 round = 0; round < 3; round++) {
    for (u32 i = 0; i < 4; i++)
      assert_true(tscope_queue_push(&queue, i));
    assert_false(tscope_queue_push(&queue, 4));
    assert_int_equal(tscope_queue_length(&queue), 4);
    for (u32 i = 0; i < 4; i++) {
      assert_true(tscope_queue_pop(&queue, &value));
      assert_int_equal(value, i);
    }
    assert_false(tscope_queue_pop(&queue, &value));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_threads_take_over_slots),
      cmocka_unit_test(deferred_cancellation_has_its_result),
      cmocka_unit_test(strings_are_the_same_for_all_threads),
      cmocka_unit_test(end_while_threads_record),
      cmocka_unit_test(queue_hands_on_each_value_once),
      cmocka_unit_test(queue_is_first_in_first_out_and_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
