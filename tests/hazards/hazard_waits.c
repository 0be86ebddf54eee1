/* SPDX-License-Identifier: MIT
 *
 * Threads that wait for the only core, or for nothing.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hazard.h"

enum { THREADS = 2, SECONDS = 4, APART = 1024, TRIES = 20 };

struct thread {
  pthread_t thread;
  volatile int number;
  volatile enum { IDLE, COMPUTES, LEAVES } what;
};

static pthread_barrier_t all_done;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *run(void *argument) {
  struct thread *thread = argument;
  thread->number = (int)syscall(SYS_gettid);
  while (thread->what == IDLE)
    usleep(1000);
  if (thread->what == LEAVES)
    return NULL;
  for (double until = now() + SECONDS; now() < until;)
    continue;
  pthread_barrier_wait(&all_done); /* they live until their waits were read */
  pthread_barrier_wait(&all_done);
  return NULL;
}

static void start(struct thread *thread) {
  *thread = (struct thread){.number = 0};
  if (pthread_create(&thread->thread, NULL, run, thread) != 0)
    fail("pthread_create");
  while (!thread->number)
    sched_yield();
}

/* The kernel counts up: until its next number is `number`, or a later one. */
static void use_numbers_before(int number) {
  pid_t child = 0;
  for (int i = 0; i < 2 * APART && child < number - 1; i++) {
    child = fork();
    if (child == 0)
      _exit(0);
    if (child < 0)
      fail("fork");
    waitpid(child, NULL, 0);
  }
}

/* Other processes may take a number that is waited for: then the next one that suits. */
static void start_apart(struct thread *thread, int from) {
  for (int i = 1; i <= TRIES; i++) {
    use_numbers_before(from + APART);
    start(thread);
    if ((thread->number - from) % APART == 0 || i == TRIES)
      return;
    while (from + APART <= thread->number)
      from += APART;
    thread->what = LEAVES;
    pthread_join(thread->thread, NULL);
  }
}

static unsigned long long waited_ns(int thread) {
  char path[64];
  unsigned long long computed = 0, waited = 0;
  snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", thread);
  FILE *file = fopen(path, "re");
  if (!file || fscanf(file, "%llu %llu", &computed, &waited) != 2)
    fail(path);
  fclose(file);
  return waited;
}

/* Two threads on one core, with numbers so far apart. Writes to a file for how long the program's
 * threads have waited, in ns. */
void threads_wait(char **arguments) {
  struct thread threads[THREADS];
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one);
  launch(1000);
  if (pthread_barrier_init(&all_done, NULL, THREADS + 1) != 0 ||
      sched_setaffinity(0, sizeof(one), &one) != 0)
    fail("one core");
  start(&threads[0]);
  start_apart(&threads[1], threads[0].number);
  for (int i = 0; i < THREADS; i++)
    threads[i].what = COMPUTES;
  pthread_barrier_wait(&all_done);
  usleep(1100 * 1000); /* a last look of tscope's */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  unsigned long long sum = waited_ns(getpid());
  for (int i = 0; i < THREADS; i++)
    sum += waited_ns(threads[i].number);
  FILE *out = fopen(arguments[0], "we");
  if (!out)
    fail(arguments[0]);
  fprintf(out, "%llu %d %lld\n", sum, threads[1].number - threads[0].number,
          (long long)now.tv_sec * 1000000000 + now.tv_nsec);
  fclose(out);
  pthread_barrier_wait(&all_done);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i].thread, NULL);
}

static void *sleep_on(void *nothing) {
  pause();
  return nothing;
}

/* So many threads, which do nothing, are there until the end. */
void threads_asleep(char **arguments) {
  pthread_attr_t small;
  pthread_t thread;
  launch(1000);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN);
  for (int i = atoi(arguments[0]); i > 0; i--)
    if (pthread_create(&thread, &small, sleep_on, NULL) != 0)
      exit(99);
}
