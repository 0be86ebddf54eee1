/* SPDX-License-Identifier: MIT
 *
 * Which processes stall: not one whose threads write only records of the ring, but the same
 * process once it stops. What its threads wait for then.
 */
#include "core_child.h"

#include <sys/select.h>

#include "record/families.h"

extern const struct tscope_family tscope_stalls_family; /* links the watchdog into this program */

static const u32 limit_s = 1, seconds = 6;

/* As Python slept up to 3.10. */
static void pause_10_ms(void) {
  select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = 10000});
}

static bool is_stalled(void) {
  return __atomic_load_n(&tscope_stall_now, __ATOMIC_ACQUIRE) != 0;
}

static void play_ring(void *nothing) {
  (void)nothing;
  CHILD_CHECK(tscope_families[TSCOPE_FAMILY_STALLS] == &tscope_stalls_family);
  setenv("TSCOPE_STALL", "1", 1);
  for (u32 i = 0; i < 100 * seconds; i++, pause_10_ms())
    CHILD_CHECK(hooked_launch(i) && !is_stalled());
  for (u32 i = 0; i < 100 * 60 * limit_s && !is_stalled(); i++)
    pause_10_ms();
  CHILD_CHECK(is_stalled());
}

static void count_stalls(const struct trace_record *at, void *stalls) {
  *(u32 *)stalls +=
      at->record->type == TSCOPE_REC_STALL && at->record->tag == TSCOPE_STALL_NOTHING_MOVED;
}

struct first_thread {
  u32 tid, waits_for, seen;
};

/* Sanitizers and emulators have threads of their own. */
static void find_first_thread(const struct trace_record *at, void *thread) {
  const struct tscope_thread_state_record *state = (const void *)at->record;
  struct first_thread *first = thread;
  if (at->record->type != TSCOPE_REC_THREAD_STATE || state->tid != first->tid)
    return;
  first->waits_for = at->record->tag >> 8;
  first->seen++;
}

static void a_process_that_writes_only_to_the_ring_moves(void **state) {
  (void)state;
  struct scene scene;
  u32 stalls = 0;
  scene_play(&scene, play_ring, NULL);
  assert_true(trace_walk(&scene.trace, count_stalls, &stalls) > 0);
  assert_int_equal(stalls, 1);
  struct first_thread first = {.tid = scene.trace.header->pid};
  trace_walk(&scene.trace, find_first_thread, &first);
  assert_int_equal(first.seen, 1);
  if (!getenv("TSCOPE_EMULATOR")) /* whose system calls have other numbers */
    assert_int_equal(first.waits_for, TSCOPE_ACTIVITY_SLEEP);
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_process_that_writes_only_to_the_ring_moves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
