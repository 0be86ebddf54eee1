/* SPDX-License-Identifier: MIT
 *
 * A process killed at any instant leaves every record whose call had returned: nothing torn,
 * nothing missing. The process counts these calls in a page that it shares with the test.
 */
#include "core_child.h"
#include "seeded.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <time.h>

enum { KILLS = 150, WRITERS = 2, CANNOT_STEP = 77 };

enum { ROUNDS = 8 }; /* the ring has room for three chunks */

struct progress {
  u64 launches[WRITERS]; /* calls that returned, by thread */
  u64 wanted;            /* calls that the second thread is to make */
};

static struct progress *progress;

static void *launch_for_ever(void *which) {
  u64 *count = which;
  for (;;) {
    CHILD_CHECK(hooked_launch((u32)(count - progress->launches)));
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
  }
}

static void play_until_killed(void *nothing) {
  (void)nothing;
  pthread_t thread;
  setenv("TSCOPE_RING_MAX", "512K", 1); /* the ring wraps many times before the kill */
  hooked_launch(WRITERS);
  for (int i = 1; i < WRITERS; i++)
    CHILD_CHECK(pthread_create(&thread, NULL, launch_for_ever, &progress->launches[i]) == 0);
  launch_for_ever(&progress->launches[0]);
}

static void count(const struct trace_record *at, void *more) {
  const struct tscope_launch_record *launch = (const void *)at->record;
  if (launch->header.type != TSCOPE_REC_LAUNCH)
    return;
  assert_int_equal(launch->header.tag, 3);
  assert_true(launch->shape <= WRITERS);
  ++*(u64 *)more;
}

static void wait_for_launch(void) {
  while (!__atomic_load_n(&progress->launches[0], __ATOMIC_ACQUIRE))
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void every_committed_record_is_read(void **state) {
  (void)state;
  u64 recording = 0;
  u32 seed = 1;
  progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int kill_number = 0; kill_number < KILLS; kill_number++) {
    struct scene scene;
    memset(progress, 0, sizeof(*progress));
    scene_directory(&scene);
    pid_t child = scene_start(&scene, play_until_killed, NULL);
    if (kill_number % 2) /* half at any instant of the process, half while it records */
      wait_for_launch();
    nanosleep(&(struct timespec){.tv_nsec = (long)random_bits(&seed)}, NULL); /* up to 17 ms */
    kill(child, SIGKILL);
    scene_wait(&scene, child);
    if (scene_traces(&scene) == 0) { /* killed before it began to record */
      scene_clean(&scene);
      continue;
    }
    scene_read(&scene);
    u64 there = 0, returned = 0;
    assert_true(trace_walk(&scene.trace, count, &there) >= 0);
    there += trace_all_lost(&scene.trace);
    for (int i = 0; i < WRITERS; i++)
      returned += progress->launches[i];
    /* In addition there are the first launch and one call in progress on each thread. */
    assert_true(there <= returned + 1 + WRITERS);
    assert_true(there >= returned);
    recording += returned > 0;
    scene_end(&scene);
  }
  munmap(progress, 4096);
  print_message("%d kills, %d while recording\n", KILLS, (int)recording);
  assert_true(recording > KILLS / 4);
}

static bool takes_next_chunk(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  CHILD_CHECK(thread);
  bool full = thread->ring.limit - thread->ring.cursor <
              (ptrdiff_t)(sizeof(struct tscope_launch_record) + sizeof(struct tscope_time_record));
  tscope_leave(thread);
  return full;
}

static void *launch_as_wanted(void *nothing) {
  (void)nothing;
  for (;;) {
    while (progress->launches[1] < __atomic_load_n(&progress->wanted, __ATOMIC_ACQUIRE)) {
      CHILD_CHECK(hooked_launch(1));
      __atomic_fetch_add(&progress->launches[1], 1, __ATOMIC_RELEASE);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  }
}

/* Stops before and after each launch that needs another chunk. */
static void play_by_steps(void *nothing) {
  (void)nothing;
  pthread_t other;
  setenv("TSCOPE_RING_MAX", "192K", 1);
  CHILD_CHECK(pthread_create(&other, NULL, launch_as_wanted, NULL) == 0);
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
    _exit(CANNOT_STEP);
  for (u64 made = 0;; made++) {
    bool by_steps = takes_next_chunk();
    progress->launches[0] = made;
    if (by_steps)
      raise(SIGSTOP);
    CHILD_CHECK(hooked_launch(0));
    if (by_steps)
      raise(SIGSTOP);
  }
}

static u32 empty_chunks(const struct trace *trace) {
  u32 empty = 0;
  for (u32 i = 0; i < trace->chunks; i++)
    empty += trace_chunk(trace, i)->magic && !trace_chunk(trace, i)->committed;
  return empty;
}

/* Lets the second thread launch more than a chunk holds, and waits until it has. */
static void let_other_launch(void) {
  u64 wanted = progress->wanted + 5000;
  __atomic_store_n(&progress->wanted, wanted, __ATOMIC_RELEASE);
  while (__atomic_load_n(&progress->launches[1], __ATOMIC_ACQUIRE) < wanted)
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* Steps through one launch; whether all launches are there after each instruction. While a chunk is
 * empty, another thread loses as many records as it held. */
static u64 step_through_launch(struct scene *scene, pid_t child) {
  for (u64 steps = 0;; steps++) {
    if (empty_chunks(&scene->trace))
      let_other_launch();
    u64 there = 0, made = progress->launches[0] + progress->launches[1];
    assert_true(trace_walk(&scene->trace, count, &there) >= 0);
    there += trace_all_lost(&scene->trace);
    assert_in_range(there, made, made + 1);
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
    scene_wait(scene, child);
    assert_true(WIFSTOPPED(scene->status));
    if (WSTOPSIG(scene->status) == SIGSTOP)
      return steps;
  }
}

static void records_are_there_or_counted_at_every_instruction(void **state) {
  (void)state;
  struct scene scene;
  u64 steps = 0;
  progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  scene_directory(&scene);
  pid_t child = scene_start(&scene, play_by_steps, NULL);
  for (int round = 0; round < ROUNDS; round++) {
    scene_wait(&scene, child);
    if (WIFEXITED(scene.status) && WEXITSTATUS(scene.status) == CANNOT_STEP) {
      print_message("skipped: no process can be stepped through here\n");
      skip();
    }
    assert_true(WIFSTOPPED(scene.status) && WSTOPSIG(scene.status) == SIGSTOP);
    scene_read(&scene);
    steps += step_through_launch(&scene, child);
    trace_close(&scene.trace);
    assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
  }
  kill(child, SIGKILL);
  scene_wait(&scene, child);
  scene_clean(&scene);
  munmap(progress, 4096);
  print_message("%d launches that took another chunk, %d instructions\n", ROUNDS, (int)steps);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_committed_record_is_read),
      cmocka_unit_test(records_are_there_or_counted_at_every_instruction)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
