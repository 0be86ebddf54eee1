/* SPDX-License-Identifier: MIT */
#include "process/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspect/thread_state.h"
#include "process/descriptors.h"
#include "process/process.h"
#include "process/process_end.h"
#include "process/reaped.h"
#include "process/scheduling.h"
#include "process/threads_left.h"
#include "record/cancellation.h"
#include "record/carry.h"
#include "record/chunk_pool.h"
#include "record/families.h"
#include "record/floats.h"
#include "record/process_trace.h"
#include "record/self_cost.h"
#include "record/stack.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "resolve/library_instances.h"
#include "resolve/linker_work.h"
#include "resolve/loaded_objects.h"

enum { TICK_NS = 1000000000 / TSCOPE_TICKS_PER_S };

enum {
  HELPER_STACK_BYTES = 256 << 10,
  POLLER_STACK_BYTES = 8 << 20 /* room for what a family calls */
};

struct worker {
  u32 wakeups;  /* futex: changes whenever the worker is woken */
  u32 sleeping; /* whether waking it needs the system call */
  u32 stopping; /* enum, below */
  u32 stopped;  /* futex */
  u32 tid;
  u64 next_ns, tick;         /* the next tick: when, and how many were before it */
  u64 cpu_ns, cpu_before_ns; /* so far; of it, of threads that were ended for a pause */
  bool takes_sigsys;         /* the signal is not blocked */
};
static struct worker helper, poller;

static bool own_descriptors; /* the helper's table is not the job's */
static bool own_root;        /* nor are its root and working directories */

static u32 job_seen;  /* enum tscope_job, as the helper sees it */
static u32 recording; /* enum, below; it ends once */
enum { RECORDING, ENDS, CLOSED };

enum { RUNS, MUST_STOP, LEAVES }; /* for `stopping` */

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

static void wake_worker(struct worker *worker) {
  __atomic_fetch_add(&worker->wakeups, 1, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&worker->sleeping, 0, __ATOMIC_SEQ_CST))
    tscope_futex_wake(&worker->wakeups, 1);
}

void tscope_helper_wake(void) {
  wake_worker(&helper);
}

/* A filter of system calls (seccomp) may answer one of a worker's by SIGSYS, for which the job has
 * a handler: where the signal is blocked, the kernel ends the process. So a worker looks whenever
 * it wakes up. */
static void let_filters_answer(struct worker *worker) {
  struct sigaction job;
  if (sigaction(SIGSYS, NULL, &job) != 0)
    return;
  bool handled = job.sa_handler != SIG_DFL && job.sa_handler != SIG_IGN;
  if (handled == worker->takes_sigsys)
    return;
  sigset_t its;
  sigemptyset(&its);
  sigaddset(&its, SIGSYS);
  sigprocmask(handled ? SIG_UNBLOCK : SIG_BLOCK, &its, NULL);
  worker->takes_sigsys = handled;
}

/* Sleeps until the time `until`, or until another thread wakes the worker: `wakeups` has changed.
 */
static void sleep_until(struct worker *worker, u64 until, u32 wakeups) {
  store(&worker->sleeping, 1);
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
  if (now < until && !load(&worker->stopping))
    tscope_futex_wait(&worker->wakeups, wakeups, until - now);
  store(&worker->sleeping, 0);
  let_filters_answer(worker);
}

static bool is_wanted(void) {
  return __atomic_load_n(&tscope_live->on, __ATOMIC_ACQUIRE) ||
         __atomic_load_n(&tscope_live->waking, __ATOMIC_ACQUIRE);
}

static bool must_run(const struct worker *worker) {
  return !load(&worker->stopping) && is_wanted();
}

/* False if it need not stop any more. */
static bool may_leave(struct worker *worker) {
  u32 expected = MUST_STOP;
  return __atomic_compare_exchange_n(&worker->stopping, &expected, LEAVES, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST) ||
         !is_wanted();
}

static void add_cpu_time(struct worker *worker) {
  u64 here = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  __atomic_store_n(&worker->cpu_ns, worker->cpu_before_ns + here, __ATOMIC_RELAXED);
}

/* What a worker does. */
struct work {
  void (*between)(void);               /* whenever it wakes up */
  u64 (*look)(u64 cpu_ns);             /* when it was asked for: see families.h; NULL: never */
  void (*every)(u64 tick, void *more); /* each tick */
  void *more;
};

static bool sleep_until_look(struct worker *worker, const struct work *work, u64 *look_ns,
                             u32 wakeups) {
  u64 cpu_ns = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  sleep_until(worker, MIN(*look_ns, worker->next_ns), wakeups);
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
  if (now >= *look_ns && must_run(worker))
    *look_ns = work->look(cpu_ns);
  return now >= worker->next_ns;
}

static void take_cores_of(u32 tid) {
  cpu_set_t cores;
  if (sched_getaffinity((pid_t)tid, sizeof(cores), &cores) == 0)
    sched_setaffinity(0, sizeof(cores), &cores);
}

/* A thread that trains may have a core of its own, and a priority, and be the one that wakes the
 * process: tscope's threads have the cores of the first thread, no real-time policy, and no nice
 * value below 0. */
static void take_no_precedence(void) {
  int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  take_cores_of((u32)getpid());
  if (policy == SCHED_FIFO || policy == SCHED_RR)
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
  if (getpriority(PRIO_PROCESS, 0) < 0)
    setpriority(PRIO_PROCESS, 0, 0);
}

/* A first thread that has only one core, as OpenMP may give it one, needs that core for itself:
 * then the helper runs where any thread of the job may, and the poller, which takes them itself,
 * where the helper does: a thread's number may be another's by then. */
static u32 only_core_left; /* by the helper, and not yet by the poller */

static void leave_only_core(void) {
  static u32 tids[256];
  cpu_set_t cores, all;
  if (sched_getaffinity(getpid(), sizeof(all), &all) != 0 || CPU_COUNT(&all) != 1)
    return;
  u32 n = thread_list(getpid(), tids, LENGTH_OF(tids));
  for (u32 i = 0; i < n && i < LENGTH_OF(tids); i++)
    if (!tscope_is_worker(tids[i]) && sched_getaffinity((pid_t)tids[i], sizeof(cores), &cores) == 0)
      CPU_OR(&all, &all, &cores);
  if (sched_setaffinity(0, sizeof(all), &all) == 0)
    store(&only_core_left, 1);
}

/* A worker begins with all signals blocked. That of a store that fails may come only when it is
 * known that this is no thread of the job's. What floating-point arithmetic does is inherited, too:
 * where a job wants to end by SIGFPE, tscope's threads must not. */
static void begin(struct worker *worker, const char *name) {
  store(&worker->tid, tscope_tid());
  worker->takes_sigsys = false;
  let_filters_answer(worker);
  prctl(PR_SET_NAME, name);
  tscope_floats_set(&tscope_floats_at_first);
  take_no_precedence();
  sigset_t open;
  sigemptyset(&open);
  sigaddset(&open, SIGBUS);
  sigprocmask(SIG_UNBLOCK, &open, NULL);
}

/* Until it must stop. After a pause it goes on where it was. */
static void run_worker(struct worker *worker, const struct work *work) {
  if (!worker->next_ns)
    worker->next_ns = tscope_clock_ns(CLOCK_MONOTONIC) + TICK_NS;
  u64 look_ns = work->look ? 0 : UINT64_MAX;
  while (must_run(worker) || !may_leave(worker)) {
    u32 wakeups = load(&worker->wakeups);
    work->between();
    if (!sleep_until_look(worker, work, &look_ns, wakeups) || !must_run(worker))
      continue;
    work->every(++worker->tick, work->more);
    worker->next_ns = tscope_clock_ns(CLOCK_MONOTONIC) + TICK_NS;
    add_cpu_time(worker);
  }
}

static void leave(struct worker *worker) {
  add_cpu_time(worker);
  store(&worker->stopped, 1);
  tscope_futex_wake(&worker->stopped, 1);
}

static void write_progress(void) {
  tscope_self_cost_write(tscope_workers_cpu_ns());
  tscope_scheduling_write();
  leave_only_core();
}

/* Anchors come more often at first, so that a short run can be aligned. Waits for cores are looked
 * at more often in the first second: a run that is killed then has two looks.
 */
static void write_totals(u64 tick) {
  tscope_end_count_oom_kills();
  const u64 first = TSCOPE_FIRST_ANCHORS_S * TSCOPE_TICKS_PER_S,
            later = TSCOPE_LATER_ANCHORS_S * TSCOPE_TICKS_PER_S;
  if (tick % (tick <= first ? TSCOPE_TICKS_PER_S : later) == 0)
    write_progress();
  else if (tick < TSCOPE_TICKS_PER_S && tick % 3 == 0)
    tscope_scheduling_write();
}

static void tick_helper(u64 tick, void *nothing) {
  (void)nothing;
  tscope_chunk_pool_touch();
  if (tick <= TSCOPE_TICKS_PER_S || tick % TSCOPE_TICKS_PER_S == 0)
    tscope_stacks_find();
  TSCOPE_FOR_EACH_FAMILY(i, watch) /* before totals, which show that it lives */
    tscope_families[i]->watch();
  write_totals(tick);
  tscope_carry();
  store(&job_seen, tscope_job_now(own_descriptors));
}

/* Whether the process is awake now, and the waiting thread knows it. */
static bool wake_process(void) {
  bool awake = tscope_wake(waking.began_ns, waking.why, sizeof(waking.why));
  u32 expected = WAKING;
  bool in_time = __atomic_compare_exchange_n(&waking.state, &expected, awake ? AWAKE : REFUSED,
                                             false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (awake && !in_time)
    unlink(tscope_trace.path);
  tscope_futex_wake(&waking.state, 1);
  return awake && in_time;
}

/* The helper has its own table of descriptors, if the kernel allows it: opening the trace file must
 * not use a number that the job expects to get next. It has its own root directory, too, which the
 * job may change, and its own mask for new files. */
static void begin_helper(void) {
  begin(&helper, "tscope");
  own_descriptors = tscope_descriptors_leave();
  own_root = syscall(SYS_unshare, CLONE_FS) == 0;
  if (own_descriptors)
    tscope_trace_keep_open();
  if (own_root)
    umask(077);
  tscope_thread_busy();
}

/* Where the job was may have to be unmounted when it is elsewhere. */
static void leave_directory(void) {
  if (own_root)
    (void)!chdir("/");
}

/* The earliest time for which a family asks. */
static u64 look_families(u64 cpu_ns) {
  u64 next = UINT64_MAX;
  TSCOPE_FOR_EACH_FAMILY(i, look) {
    u64 wanted = tscope_families[i]->look(own_descriptors, cpu_ns);
    next = MIN(wanted, next);
  }
  return next;
}

static void make_chunks_ready(void) {
  tscope_carry_early();
  tscope_chunk_pool_refill();
  tscope_reaped_do();
}

/* With a last look at the waits for cores, by which the end of a run is judged too. */
static void leave_helper(void) {
  tscope_scheduling_write();
  if (load(&recording) == ENDS) {
    add_cpu_time(&helper);
    tscope_self_cost_write(tscope_workers_cpu_ns());
    tscope_chunk_pool_close();
    tscope_carry_last();
    store(&recording, CLOSED);
  }
  tscope_reaped_do(); /* last: it may have to wait for the file system */
  leave(&helper);
}

static const struct work of_helper = {
    .between = make_chunks_ready, .look = look_families, .every = tick_helper};

static void *run_helper(void *nothing) {
  (void)nothing;
  begin_helper();
  if (!wake_process())
    return NULL;
  leave_directory();
  tscope_end_count_oom_kills();
  tscope_self_cost_measure_hook();
  write_progress();
  run_worker(&helper, &of_helper);
  leave_helper();
  return NULL;
}

static void *run_helper_again(void *nothing) {
  (void)nothing;
  begin_helper();
  leave_directory();
  run_worker(&helper, &of_helper);
  leave_helper();
  return NULL;
}

static bool job_has_ended;

/* The exit handler is registered again after the libraries that the job loads at its start have
 * registered theirs. It must run before them, while everything still works that the families need
 * for their end. */
static void tick_families(u64 tick, void *thread) {
  if (thread)
    TSCOPE_FOR_EACH_FAMILY(i, tick)
      tscope_families[i]->tick(thread);
  tscope_copies_settle();
  tscope_end_alive();
  tscope_carry_tell();
  if (load(&only_core_left)) {
    store(&only_core_left, 0);
    take_cores_of(load(&helper.tid));
  }
  if (tick == 2 || tick == 2 * TSCOPE_TICKS_PER_S || tick == 20 * TSCOPE_TICKS_PER_S)
    tscope_register_end();
  u32 seen = load(&job_seen);
  job_has_ended = seen == TSCOPE_JOB_ENDED || tscope_job_now(false) == TSCOPE_JOB_ENDED;
  if (job_has_ended)
    store(&poller.stopping, MUST_STOP);
  else if (seen == TSCOPE_JOB_UNKNOWN) /* without tscope's threads, the process ends by itself */
    tscope_turn_off(
        "the first thread has ended, and without /proc it cannot tell when the job ends");
}

static struct tscope_thread *ticking; /* the poller's state; its own */

static void do_linker_work(void) {
  tscope_linker_work_do(ticking);
}

static void wake_poller(void) {
  wake_worker(&poller);
}

static sigset_t job_mask; /* of the thread that started the workers last */

/* The kernel ends a thread that makes a call which a filter forbids, and with the only one the
 * process. */
static void end_by_signal(int number) {
  sigset_t open;
  sigemptyset(&open);
  sigaddset(&open, number);
  signal(number, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &open, NULL);
  kill(getpid(), number);
}

/* As the last thread of the job would do it, for example after pthread_exit() in main. A status is
 * that of a thread which ended past the C library, and so without exit handlers. */
static void end_for_job(void) {
  int status = tscope_first_thread_status();
  sigprocmask(SIG_SETMASK, &job_mask, NULL);
  if (WIFSIGNALED(status))
    end_by_signal(WTERMSIG(status));
  if (status) {
    tscope_end_record(TSCOPE_END_AT_ONCE, WEXITSTATUS(status));
    _exit(WEXITSTATUS(status));
  }
  exit(EXIT_SUCCESS);
}

/* After a pause the next thread takes over the state of the last one. */
static void *run_poller(void *nothing) {
  static struct tscope_thread *thread;
  (void)nothing;
  begin(&poller, "tscope-poller");
  if (thread)
    tscope_thread_take_over(thread);
  else
    thread = tscope_thread_here();
  if (thread)
    thread->guard = TSCOPE_GUARD_ALWAYS;
  ticking = thread;
  run_worker(&poller,
             &(struct work){.between = do_linker_work, .every = tick_families, .more = thread});
  leave(&poller);
  if (thread)
    tscope_thread_hand_over();
  if (job_has_ended)
    end_for_job();
  return NULL;
}

/* The C library takes the thread-local memory of the job's libraries from the stack. */
static int add_thread_local_bytes(struct dl_phdr_info *info, size_t bytes, void *sum) {
  (void)bytes;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS)
      *(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
  return 0;
}

/* Starts a thread of our own, with all signals blocked. 0 or a negative errno. Its number is 0
 * until it runs: that of its predecessor would say that it is gone. */
static int start(struct worker *worker, void *(*run)(void *), size_t stack_bytes) {
  store(&worker->tid, 0);
  if (!pthread_create || !pthread_attr_setstacksize)
    return -ENOSYS;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &job_mask);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  tscope_each_object(add_thread_local_bytes, &stack_bytes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, run, NULL);
  pthread_attr_destroy(&attributes);
  sigprocmask(SIG_SETMASK, &job_mask, NULL);
  return -error;
}

/* Whether the kernel does not know the thread any more. */
static bool is_gone(const struct worker *worker) {
  u32 tid = load(&worker->tid);
  return tid && tscope_tid_is_gone(tid);
}

static bool start_helper(const char **why) {
  const u64 timeout_ns = 10000000000;
  waking.began_ns = tscope_clock_ns(CLOCK_MONOTONIC);
  if (start(&helper, run_helper, HELPER_STACK_BYTES) != 0)
    return false;
  *why = waking.why;
  while (!tscope_wait_while(&waking.state, WAKING, TICK_NS)) {
    u32 expected = WAKING;
    bool gone = is_gone(&helper);
    if ((gone || tscope_clock_ns(CLOCK_MONOTONIC) >= waking.began_ns + timeout_ns) &&
        __atomic_compare_exchange_n(&waking.state, &expected, TIMED_OUT, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
      *why = gone ? "a filter of system calls (seccomp) ended its thread"
                  : "opening the trace takes too long; set TSCOPE_DIR to a local directory";
  }
  return load(&waking.state) == AWAKE;
}

static bool wait_until_stopped(struct worker *worker) {
  const u64 timeout_ns = 1000000000;
  if (!is_gone(worker))
    tscope_wait_while(&worker->stopped, 0, timeout_ns);
  return load(&worker->stopped);
}

static bool stop(struct worker *worker) {
  store(&worker->stopping, MUST_STOP);
  wake_worker(worker);
  return wait_until_stopped(worker);
}

bool tscope_poller_stop(void) {
  return stop(&poller);
}

void tscope_recording_end(void) {
  store(&recording, ENDS);
  __atomic_store_n(&tscope_live->on, 0, __ATOMIC_SEQ_CST);
  if (!stop(&helper) || load(&recording) != CLOSED)
    tscope_carry_last();
}

bool tscope_workers_start(const char **why) {
  *why = "cannot start a thread";
  if (!start_helper(why))
    return false;
  tscope_linker_work_begin(wake_poller);
  if (start(&poller, run_poller, POLLER_STACK_BYTES) == 0)
    return true;
  tscope_linker_work_begin(NULL);
  *why = "cannot start a second thread";
  stop(&helper);
  unlink(tscope_trace.path);
  return false;
}

/* Waits until the kernel does not know the thread any more, which takes some microseconds. */
static bool wait_until_gone(struct worker *worker) {
  for (int i = 0; i < 10000; i++) {
    if (is_gone(worker))
      return true;
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  }
  return false;
}

static bool start_again(struct worker *worker, void *(*run)(void *), size_t stack_bytes) {
  u32 expected = MUST_STOP;
  if (load(&worker->stopping) == RUNS ||
      __atomic_compare_exchange_n(&worker->stopping, &expected, RUNS, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST))
    return true; /* it has not left */
  if (!wait_until_stopped(worker))
    return false;
  store(&worker->stopping, RUNS);
  store(&worker->stopped, 0);
  worker->cpu_before_ns = worker->cpu_ns;
  return start(worker, run, stack_bytes) == 0;
}

void tscope_workers_resume(void) {
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  bool both = start_again(&helper, run_helper_again, HELPER_STACK_BYTES);
  both &= start_again(&poller, run_poller, POLLER_STACK_BYTES);
  if (!both)
    tscope_turn_off("cannot start its threads again");
}

bool tscope_workers_pause(void) {
  static bool in_vain; /* once, and then not tried again */
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  bool gone = !in_vain && must_run(&helper) && must_run(&poller) &&
              tscope_threads_left() == 1 + TSCOPE_OWN_THREADS;
  if (gone) {
    gone = stop(&poller) && stop(&helper) && wait_until_gone(&poller) && wait_until_gone(&helper);
    in_vain = !gone;
    if (!gone)
      tscope_workers_resume();
  }
  return gone;
}

bool tscope_is_worker(u32 tid) {
  return tid == load(&helper.tid) || tid == load(&poller.tid);
}

u64 tscope_workers_cpu_ns(void) {
  return __atomic_load_n(&helper.cpu_ns, __ATOMIC_RELAXED) +
         __atomic_load_n(&poller.cpu_ns, __ATOMIC_RELAXED);
}
