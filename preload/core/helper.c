/* SPDX-License-Identifier: MIT */
#include "helper.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "families.h"
#include "process.h"
#include "registry.h"
#include "store.h"
#include "supply.h"
#include "thread.h"

u64 tscope_slow_path_ticks;

static struct {
  u32 bell;     /* futex: changes whenever the helper is called */
  u32 sleeping; /* whether a call needs the system call */
  u32 stopping;
  u32 stopped; /* futex */
  u64 startup_ns;
  u64 cpu_ns;
  u64 hook_ns;
} helper;

static const u64 tick_ns = 100000000;

static void futex_wait(u32 *word, u32 value, u64 ns) {
  struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

static void futex_wake(u32 *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void tscope_helper_call(void) {
  __atomic_fetch_add(&helper.bell, 1, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&helper.sleeping, 0, __ATOMIC_SEQ_CST))
    futex_wake(&helper.bell);
}

/* Sleeps until `until` or until called. */
static void sleep_until(u64 until, u32 bell) {
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
  __atomic_store_n(&helper.sleeping, 1, __ATOMIC_SEQ_CST);
  if (now < until && !__atomic_load_n(&helper.stopping, __ATOMIC_SEQ_CST))
    futex_wait(&helper.bell, bell, until - now);
  __atomic_store_n(&helper.sleeping, 0, __ATOMIC_SEQ_CST);
}

/* What a hook adds to a call: both clock readings and one record, on memory of this thread. */
static u64 measure_hook(void) {
  enum { ROUNDS = 1024 };
  static struct {
    struct tscope_chunk_header header;
    u8 records[32 * ROUNDS];
  } chunk __attribute__((aligned(64)));
  struct tscope_thread thread = {.tick_shift = tscope_clock.shift, .number = TSCOPE_UNKNOWN};
  tscope_writer_init(&thread.detail, TSCOPE_DETAIL, TSCOPE_CLOCK_TICKS);
  thread.detail.chunk = &chunk.header;
  thread.detail.limit = chunk.records + sizeof chunk.records;
  thread.detail.base = tscope_ticks() >> thread.detail.shift;
  u64 best = UINT64_MAX;
  for (int attempt = 0; attempt < 4; attempt++) {
    thread.detail.cursor = chunk.records;
    u64 begun = tscope_ticks();
    for (int i = 0; i < ROUNDS; i++) {
      u64 start = tscope_ticks();
      struct tscope_launch_record *launch =
          tscope_reserve(&thread, &thread.detail, start, TSCOPE_REC_LAUNCH, 0, sizeof *launch);
      if (launch) {
        launch->shape = (u32)i;
        tscope_commit_dur(&thread, &thread.detail, sizeof *launch, start);
      }
    }
    u64 taken = tscope_ticks() - begun;
    if (taken < best)
      best = taken;
  }
  return (u64)((double)best * 1e9 / (double)tscope_clock.hz / ROUNDS + 0.5);
}

static u64 records_committed(void) {
  u64 records = __atomic_load_n(&tscope_store.header->lost[TSCOPE_LOSS_RING], __ATOMIC_RELAXED);
  u32 chunks = __atomic_load_n(&tscope_store.chunks, __ATOMIC_RELAXED);
  for (u32 i = 0; i < chunks; i++)
    records += __atomic_load_n(&tscope_store_chunk(i)->committed, __ATOMIC_RELAXED) >> 32;
  return records;
}

static void write_cost(void) {
  u64 slow = __atomic_load_n(&tscope_slow_path_ticks, __ATOMIC_RELAXED);
  struct tscope_cost_record cost = {
      .records = records_committed(),
      .helper_cpu_ns = __atomic_load_n(&helper.cpu_ns, __ATOMIC_RELAXED),
      .startup_ns = helper.startup_ns,
      .slow_path_ns = (u64)((double)slow * 1e9 / (double)tscope_clock.hz),
      .hook_ns_per_record = __atomic_load_n(&helper.hook_ns, __ATOMIC_RELAXED),
  };
  tscope_registry_write(TSCOPE_REC_COST, 0, &cost, sizeof cost);
}

static void write_losses(void) {
  static u64 written[TSCOPE_LOSS_REASONS];
  for (u32 reason = 0; reason < TSCOPE_LOSS_REASONS; reason++) {
    u64 lost = __atomic_load_n(&tscope_store.header->lost[reason], __ATOMIC_RELAXED);
    if (lost == written[reason])
      continue;
    struct tscope_loss_record record = {.records = lost};
    if (tscope_registry_write(TSCOPE_REC_LOSS, (u16)reason, &record, sizeof record))
      written[reason] = lost;
  }
}

void tscope_helper_write_totals(void) {
  struct tscope_anchor_record anchor = {0};
  tscope_clock_anchor(&anchor);
  tscope_registry_write(TSCOPE_REC_ANCHOR, 0, &anchor, sizeof anchor);
  write_cost();
  write_losses();
}

static void tick(struct tscope_thread *thread) {
  for (int i = 0; i < TSCOPE_FAMILY_SLOTS && thread; i++)
    if (tscope_families[i] && tscope_families[i]->tick)
      tscope_families[i]->tick(thread);
  __atomic_store_n(&helper.cpu_ns, tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
}

/* Anchors come every second at first, so that a short run can be aligned, later every ten. The exit
 * handler is registered again once libraries that the job starts with have registered theirs: it
 * has to run before them, while what the families end with still works. */
static void periodic(u64 ticks) {
  const u64 per_second = 1000000000 / tick_ns;
  if (ticks % per_second == 0 && (ticks <= 60 * per_second || ticks % (10 * per_second) == 0))
    tscope_helper_write_totals();
  if (ticks == 2 || ticks == 2 * per_second || ticks == 20 * per_second)
    tscope_register_end();
}

static bool wanted(void) {
  return !__atomic_load_n(&helper.stopping, __ATOMIC_SEQ_CST) &&
         (__atomic_load_n(&tscope_live->on, __ATOMIC_ACQUIRE) ||
          __atomic_load_n(&tscope_live->waking, __ATOMIC_ACQUIRE));
}

static void *run(void *nothing) {
  (void)nothing;
  prctl(PR_SET_NAME, "tscope");
  __atomic_store_n(&helper.hook_ns, measure_hook(), __ATOMIC_RELAXED);
  struct tscope_thread *thread = tscope_thread_here();
  if (thread)
    thread->guard = (const void *)UINTPTR_MAX;
  tscope_helper_write_totals();
  u64 next = tscope_clock_ns(CLOCK_MONOTONIC) + tick_ns;
  for (u64 ticks = 0; wanted();) {
    u32 bell = __atomic_load_n(&helper.bell, __ATOMIC_SEQ_CST);
    tscope_supply_refill();
    sleep_until(next, bell);
    u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
    if (now < next || !wanted())
      continue;
    next = now + tick_ns;
    tick(thread);
    periodic(++ticks);
  }
  __atomic_store_n(&helper.cpu_ns, tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
  __atomic_store_n(&helper.stopped, 1, __ATOMIC_SEQ_CST);
  futex_wake(&helper.stopped);
  return NULL;
}

int tscope_helper_start(u64 startup_ns) {
  helper.startup_ns = startup_ns;
  if (!pthread_create)
    return -ENOSYS;
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 1 << 20);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, run, NULL);
  pthread_attr_destroy(&attributes);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return -error;
}

bool tscope_helper_stop(void) {
  const u64 patience_ns = 1000000000;
  u64 until = tscope_clock_ns(CLOCK_MONOTONIC) + patience_ns, now;
  __atomic_store_n(&helper.stopping, 1, __ATOMIC_SEQ_CST);
  tscope_helper_call();
  while (!__atomic_load_n(&helper.stopped, __ATOMIC_SEQ_CST)) {
    now = tscope_clock_ns(CLOCK_MONOTONIC);
    if (now >= until)
      return false;
    futex_wait(&helper.stopped, 0, until - now);
  }
  return true;
}
