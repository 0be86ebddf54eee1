/* SPDX-License-Identifier: MIT */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MOST_THREADS 256u

struct loop {
  parallel_fn *fn;
  void *user;
  u32 n;
  atomic_uint next;
};

struct worker {
  struct loop *loop;
  unsigned number;
  pthread_t thread;
};

static void *work(void *argument) {
  struct worker *worker = argument;
  struct loop *loop = worker->loop;
  u32 index;
  while ((index = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed)) < loop->n)
    loop->fn(loop->user, index, worker->number);
  return NULL;
}

static unsigned cores(void) {
  cpu_set_t allowed;
  int count = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return count > 0 ? (unsigned)count : 1;
}

unsigned parallel_threads(u32 n, unsigned threads) {
  if (threads == 0)
    threads = cores();
  return MAX(MIN(threads, MIN(n, MOST_THREADS)), 1);
}

void parallel_for(u32 n, unsigned threads, parallel_fn *fn, void *user) {
  struct worker workers[MOST_THREADS];
  struct loop loop = {.fn = fn, .user = user, .n = n};
  threads = parallel_threads(n, threads);
  unsigned started = 1;
  workers[0] = (struct worker){.loop = &loop, .number = 0};
  while (started < threads) {
    workers[started] = (struct worker){.loop = &loop, .number = started};
    if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
      break;
    started++;
  }
  work(&workers[0]);
  for (unsigned i = 1; i < started; i++)
    pthread_join(workers[i].thread, NULL);
}
