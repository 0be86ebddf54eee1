/* SPDX-License-Identifier: MIT
 *
 * Linux counts for each thread how long it was runnable without running: the second number of
 * /proc/self/task/TID/schedstat (Documentation/scheduler/sched-stats.rst), in nanoseconds. Threads
 * wait like this if there are more threads than cores, or if other processes use the cores; time
 * lost to a cgroup's quota is included. Threads come and go, so the increases of each are added up.
 * tscope's own threads, for which the job does not wait, do not count.
 */
#include "process/scheduling.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "inspect/small_file.h"
#include "inspect/thread_state.h"
#include "process/threads_left.h"
#include "process/workers.h"
#include "record/hook.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

enum { THREADS = 2048 };

struct thread_wait {
  u32 tid;
  u64 wait_ns;
};

/* Of the helper alone. */
static struct {
  struct round {
    struct thread_wait threads[THREADS]; /* in the kernel's order: by their age */
    u32 n;
    bool cut; /* the process has more threads than that */
  } rounds[2];
  struct round *last; /* NULL before the first */
  u64 wait_ns;        /* of all, since the first round */
  u64 training_ns;    /* of it, of threads that train */
  bool counts;        /* the kernel counts: it has figures for the main thread */
} totals;

/* UINT64_MAX if the kernel does not count. */
static u64 wait_ns_of(u32 tid) {
  char text[96];
  u64 times[3];
  thread_file_read(getpid(), tid, "schedstat", text, sizeof(text));
  return thread_times(text, times) ? times[1] : UINT64_MAX;
}

/* What a thread had waited in the round before; NULL if it was not among its threads. The threads
 * that are left are in the same order: the search begins behind the one that was found last. */
static const struct thread_wait *find_before(const struct round *last, u32 tid, u32 *from) {
  for (u32 i = 0; i < last->n; i++) {
    u32 at = *from + i < last->n ? *from + i : *from + i - last->n;
    if (last->threads[at].tid != tid)
      continue;
    *from = at + 1 < last->n ? at + 1 : 0;
    return &last->threads[at];
  }
  return NULL;
}

/* What a thread has waited since the last round. What threads waited before the first round is not
 * part of the training. One that is not known has begun since, unless there were too many. */
static u64 more_of(const struct thread_wait *now, u32 *from) {
  if (!totals.last)
    return 0;
  const struct thread_wait *before = find_before(totals.last, now->tid, from);
  if (!before)
    return totals.last->cut ? 0 : now->wait_ns;
  return now->wait_ns >= before->wait_ns ? now->wait_ns - before->wait_ns : now->wait_ns;
}

/* The backward pass runs on a thread of autograd, collectives on threads of gloo: a step waits for
 * them too. */
static void add_thread(u32 tid, struct round *round, u32 *from) {
  struct thread_wait now = {tid, wait_ns_of(tid)};
  if (now.wait_ns == UINT64_MAX)
    return;
  bool main_thread = tid == (u32)getpid();
  u64 more = more_of(&now, from);
  totals.counts |= main_thread;
  totals.wait_ns += more;
  if (main_thread || tscope_thread_writes(tid))
    totals.training_ns += more;
  round->threads[round->n++] = now;
}

_Static_assert(THREADS == 2048, "the text below says so");

static void add_threads(struct tscope_scheduling_record *record) {
  static u32 tids[THREADS + TSCOPE_OWN_THREADS];
  const u32 most = LENGTH_OF(tids), n = thread_list(getpid(), tids, most);
  struct round *round = &totals.rounds[totals.last == &totals.rounds[0]];
  round->n = 0;
  round->cut = n > most;
  record->threads = round->cut ? n - most : 0;
  for (u32 i = 0, from = 0; i < n && i < most; i++) {
    if (tscope_is_worker(tids[i]))
      continue;
    record->threads++;
    if (round->n < THREADS)
      add_thread(tids[i], round, &from);
  }
  static bool said;
  if (round->cut)
    tscope_say_once(&said, "only of the first 2,048 threads", "waits for cores");
  totals.last = round;
  if (!totals.counts)
    return;
  record->wait_ns = totals.wait_ns;
  record->training_wait_ns = totals.training_ns;
}

/* "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...", in ticks, of all processors. */
static u64 stolen_ns(void) {
  char text[256];
  u64 ticks[8];
  if (small_file_read("/proc/stat", text, sizeof(text)) <= 0 || !tscope_begins_with(text, "cpu ") ||
      !leading_numbers(text + 4, ticks, LENGTH_OF(ticks)))
    return UINT64_MAX;
  return ticks[7] * (1000000000u / (u64)sysconf(_SC_CLK_TCK));
}

void tscope_scheduling_write(void) {
  cpu_set_t allowed;
  struct tscope_scheduling_record record = {.at_ns = tscope_clock_ns(CLOCK_MONOTONIC),
                                            .cpu_ns = tscope_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
                                            .wait_ns = UINT64_MAX,
                                            .training_wait_ns = UINT64_MAX,
                                            .stolen_ns = stolen_ns()};
  if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0)
    record.cores = (u32)CPU_COUNT(&allowed);
  add_threads(&record);
  tscope_definitions_write(TSCOPE_REC_SCHEDULING, 0, &record, sizeof(record));
}
