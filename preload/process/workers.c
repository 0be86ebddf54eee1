/* SPDX-License-Identifier: MIT */
#include "process/workers.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/process.h"
#include "process/process_end.h"
#include "process/scheduling.h"
#include "record/chunk_pool.h"
#include "record/families.h"
#include "record/process_trace.h"
#include "record/self_cost.h"
#include "record/stack.h"
#include "record/thread.h"
#include "record/tick_clock.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

enum { TICK_NS = 100000000, TICKS_PER_SECOND = 10 };

struct worker {
  u32 wakeups;  /* futex: changes whenever the worker is woken */
  u32 sleeping; /* whether waking it needs the system call */
  u32 stopping;
  u32 stopped; /* futex */
  u64 cpu_ns;
};
static struct worker helper, ticker;

/* The result of waking the process on the helper; `state` is a futex. */
enum { WAKING, AWAKE, REFUSED, TIMED_OUT };
static struct {
  u32 state;
  u64 began_ns;
  char why[512];
} waking;

static u32 load(const u32 *word) {
  return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void store(u32 *word, u32 value) {
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static void futex_wait(u32 *word, u32 value, u64 ns) {
  struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

static void futex_wake(u32 *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wake_worker(struct worker *worker) {
  __atomic_fetch_add(&worker->wakeups, 1, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&worker->sleeping, 0, __ATOMIC_SEQ_CST))
    futex_wake(&worker->wakeups);
}

void tscope_helper_wake(void) {
  wake_worker(&helper);
}

/* Sleeps until the time `until`, or until another thread wakes the worker: `wakeups` has changed.
 */
static void sleep_until(struct worker *worker, u64 until, u32 wakeups) {
  store(&worker->sleeping, 1);
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
  if (now < until && !load(&worker->stopping))
    futex_wait(&worker->wakeups, wakeups, until - now);
  store(&worker->sleeping, 0);
}

static bool must_run(const struct worker *worker) {
  return !load(&worker->stopping) && (__atomic_load_n(&tscope_live->on, __ATOMIC_ACQUIRE) ||
                                      __atomic_load_n(&tscope_live->waking, __ATOMIC_ACQUIRE));
}

/* Calls `every` each tick and `between` whenever the worker wakes up, until it must stop. */
static void run_worker(struct worker *worker, void (*between)(void),
                       void (*every)(u64 tick, void *more), void *more) {
  u64 next = tscope_clock_ns(CLOCK_MONOTONIC) + TICK_NS, tick = 0;
  while (must_run(worker)) {
    u32 wakeups = load(&worker->wakeups);
    if (between)
      between();
    sleep_until(worker, next, wakeups);
    if (tscope_clock_ns(CLOCK_MONOTONIC) < next || !must_run(worker))
      continue;
    every(++tick, more);
    next = tscope_clock_ns(CLOCK_MONOTONIC) + TICK_NS;
    __atomic_store_n(&worker->cpu_ns, tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
  }
  __atomic_store_n(&worker->cpu_ns, tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
  store(&worker->stopped, 1);
  futex_wake(&worker->stopped);
}

static void write_progress(void) {
  tscope_self_cost_write(tscope_workers_cpu_ns());
  tscope_scheduling_write();
}

/* Anchors come every second at first, so that a short run can be aligned, later every ten. */
static void write_totals(u64 tick) {
  tscope_end_count_oom_kills();
  const u64 first = 60 * TICKS_PER_SECOND, later = 10 * TICKS_PER_SECOND;
  if (tick % (tick <= first ? TICKS_PER_SECOND : later) == 0)
    write_progress();
}

static void tick_helper(u64 tick, void *nothing) {
  (void)nothing;
  tscope_chunk_pool_touch();
  if (tick <= TICKS_PER_SECOND || tick % TICKS_PER_SECOND == 0)
    tscope_stacks_find();
  write_totals(tick);
  for (int i = 0; i < TSCOPE_FAMILY_SLOTS; i++)
    if (tscope_families[i] && tscope_families[i]->watch)
      tscope_families[i]->watch();
}

/* Whether the process is awake now, and the waiting thread knows it. */
static bool wake_process(void) {
  bool awake = tscope_wake(waking.began_ns, waking.why, sizeof(waking.why));
  u32 expected = WAKING;
  bool in_time = __atomic_compare_exchange_n(&waking.state, &expected, awake ? AWAKE : REFUSED,
                                             false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (awake && !in_time)
    unlink(tscope_trace.path);
  futex_wake(&waking.state);
  return awake && in_time;
}

/* The helper has its own table of descriptors, if the kernel allows it: opening the trace file must
 * not use a number that the job expects to get next. */
static void *run_helper(void *nothing) {
  (void)nothing;
  prctl(PR_SET_NAME, "tscope");
  syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE);
  tscope_thread_busy();
  if (!wake_process())
    return NULL;
  tscope_end_count_oom_kills();
  tscope_self_cost_measure_hook();
  write_progress();
  run_worker(&helper, tscope_chunk_pool_refill, tick_helper, NULL);
  return NULL;
}

/* The exit handler is registered again after the libraries that the job loads at its start have
 * registered theirs. It must run before them, while everything still works that the families need
 * for their end. */
static void tick_families(u64 tick, void *thread) {
  for (int i = 0; i < TSCOPE_FAMILY_SLOTS && thread; i++)
    if (tscope_families[i] && tscope_families[i]->tick)
      tscope_families[i]->tick(thread);
  tscope_end_alive();
  if (tick == 2 || tick == 2 * TICKS_PER_SECOND || tick == 20 * TICKS_PER_SECOND)
    tscope_register_end();
}

static void *run_ticker(void *nothing) {
  (void)nothing;
  prctl(PR_SET_NAME, "tscope-ticker");
  struct tscope_thread *thread = tscope_thread_here();
  if (thread)
    thread->guard = TSCOPE_GUARD_ALWAYS;
  run_worker(&ticker, NULL, tick_families, thread);
  return NULL;
}

/* Starts a thread of our own, with all signals blocked. 0 or a negative errno. */
static int start(void *(*run)(void *), size_t stack_bytes) {
  if (!pthread_create || !pthread_attr_setstacksize)
    return -ENOSYS;
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, run, NULL);
  pthread_attr_destroy(&attributes);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return -error;
}

static bool start_helper(const char **why) {
  const u64 timeout_ns = 10000000000;
  waking.began_ns = tscope_clock_ns(CLOCK_MONOTONIC);
  /* Also has room for the thread-local memory of the job's libraries, which is taken from the
   * stack. */
  int error = start(run_helper, 256 << 10);
  if (error == -EINVAL)
    error = start(run_helper, 4 << 20);
  if (error)
    return false;
  *why = waking.why;
  u64 until = waking.began_ns + timeout_ns, now;
  while (load(&waking.state) == WAKING) {
    now = tscope_clock_ns(CLOCK_MONOTONIC);
    u32 expected = WAKING;
    if (now < until)
      futex_wait(&waking.state, WAKING, until - now);
    else if (__atomic_compare_exchange_n(&waking.state, &expected, TIMED_OUT, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      *why = "opening the trace takes too long; set TSCOPE_DIR to a local directory";
  }
  return load(&waking.state) == AWAKE;
}

static bool stop(struct worker *worker) {
  const u64 timeout_ns = 1000000000;
  u64 until = tscope_clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
  store(&worker->stopping, 1);
  wake_worker(worker);
  while (!load(&worker->stopped)) {
    now = tscope_clock_ns(CLOCK_MONOTONIC);
    if (now >= until)
      return false;
    futex_wait(&worker->stopped, 0, until - now);
  }
  return true;
}

bool tscope_ticker_stop(void) {
  return stop(&ticker);
}

bool tscope_helper_stop(void) {
  return stop(&helper);
}

bool tscope_workers_start(const char **why) {
  *why = "cannot start a thread";
  if (!start_helper(why))
    return false;
  if (start(run_ticker, 8 << 20) == 0) /* room for what a family calls */
    return true;
  *why = "cannot start a second thread";
  tscope_helper_stop();
  unlink(tscope_trace.path);
  return false;
}

u64 tscope_workers_cpu_ns(void) {
  return __atomic_load_n(&helper.cpu_ns, __ATOMIC_RELAXED) +
         __atomic_load_n(&ticker.cpu_ns, __ATOMIC_RELAXED);
}
