/* SPDX-License-Identifier: MIT
 *
 * What a look at a thread's line cannot cost less than: waking up, and one read of each file in
 * which the kernel says what the thread does. CPU time of the thread that reads, once in 10 ms as
 * the helper does, so with cold caches.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/clock_ns.h"

enum { LOOKS = 300, INTERVAL_NS = 10000000 };

static int looked_at; /* the thread's number */

static void *compute(void *unused) {
  __atomic_store_n(&looked_at, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
  for (volatile unsigned i = 0;; i++)
    ;
  return unused;
}

static double cpu_us(void) {
  return (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e3;
}

static void sleep_until_next(void) {
  nanosleep(&(struct timespec){.tv_nsec = INTERVAL_NS}, NULL);
}

static double waking_up(void) {
  double sum = 0;
  for (int i = 0; i < LOOKS; i++) {
    double before = cpu_us();
    sleep_until_next();
    sum += cpu_us() - before;
  }
  return sum / LOOKS;
}

static double reading(const char *name) {
  char path[64], text[512];
  double sum = 0;
  snprintf(path, sizeof(path), "/proc/self/task/%d/%s", looked_at, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < LOOKS; i++) {
    sleep_until_next();
    double before = cpu_us();
    if (pread(file, text, sizeof(text), 0) <= 0)
      return -1;
    sum += cpu_us() - before;
  }
  close(file);
  return sum / LOOKS;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, compute, NULL))
    return 1;
  while (!__atomic_load_n(&looked_at, __ATOMIC_ACQUIRE))
    sleep_until_next();
  double wake = waking_up(), call = reading("syscall"), times = reading("schedstat"),
         faults = reading("stat");
  printf("waking up %.1f us, syscall %.1f us, schedstat %.1f us, stat %.1f us: %.1f us\n", wake,
         call, times, faults, wake + call + times + faults);
  return 0;
}
