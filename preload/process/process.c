/* SPDX-License-Identifier: MIT */
#include "process/process.h"

#include <sys/mman.h>

#include "facts/identity.h"
#include "process/bus_errors.h"
#include "process/fork_count.h"
#include "process/handlers.h"
#include "process/process_end.h"
#include "process/workers.h"
#include "record/cancellation.h"
#include "record/carry.h"
#include "record/families.h"
#include "record/process_trace.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "resolve/loaded_objects.h"
#include "resolve/search.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Used until the process wakes, and if it never does. */
static struct tscope_live dormant;
struct tscope_live *tscope_live = &dormant;

static u8 load(const u8 *flag) {
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

void tscope_turn_off(const char *why) {
  u8 was = __atomic_exchange_n(&tscope_live->on, 0, __ATOMIC_SEQ_CST);
  if (!why || !*why || (!was && !load(&tscope_live->waking)))
    return;
  tscope_log(tscope_trace.told ? 1 : 0, "off: %s", why);
  if (was)
    tscope_info(NULL, TSCOPE_INFO_FEATURE, why, "off");
}

/* Kernels before 4.14 cannot wipe a page, and some emulators say that they did and do not. */
static void go_dormant_in_child(void) {
  *tscope_live = (struct tscope_live){0};
  tscope_bus_errors_in_child();
}

/* In a signal's handler, which may have interrupted malloc(), a call does not wake the process. But
 * what looks like a handler may be what one has left on the stack, and a program may work on the
 * stack of its handlers: after so many calls, which allocate themselves, it is none inside
 * malloc(). */
static bool is_in_handler(void) {
  enum { MOST_CALLS = 100 };
  static u32 calls;
  if (__atomic_load_n(&calls, __ATOMIC_RELAXED) >= MOST_CALLS || !tscope_in_handler())
    return false;
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  tscope_count_lost(TSCOPE_LOSS_REENTRY, 1);
  return true;
}

/* Puts a live page in place of the dormant one. The thread whose page is used then wakes the
 * process. Fork children inherit the page, wiped: so they know that they are children of an awake
 * process, and stay dormant. */
static bool claim_waking(void) {
  static bool failed_before;
  const size_t page = 4096;
  if (__atomic_load_n(&failed_before, __ATOMIC_RELAXED) || !tscope_is_glibc() || is_in_handler())
    return false;
  void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    __atomic_store_n(&failed_before, true, __ATOMIC_RELAXED);
    return false;
  }
  madvise(memory, page, MADV_WIPEONFORK);
  tscope_at_fork(NULL, NULL, go_dormant_in_child);
  struct tscope_live *live = memory, *none = &dormant;
  live->waking = 1;
  if (__atomic_compare_exchange_n(&tscope_live, &none, live, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED))
    return true;
  munmap(memory, page);
  return false;
}

/* Normal end of the process. Runs in the thread that called exit(), and only in the process that
 * woke: not in a child that shares its memory. */
static void end(int status, void *nothing) {
  static bool ended;
  (void)nothing;
  if (!tscope_trace_is_ours())
    return;
  tscope_end_record(TSCOPE_END_EXIT, status);
  if (tscope_self)
    tscope_locks_left(tscope_self, TSCOPE_FRAME());
  if (tscope_locks_held() || __atomic_exchange_n(&ended, true, __ATOMIC_SEQ_CST))
    return;
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  bool quiet = tscope_poller_stop();
  struct tscope_thread *thread = quiet ? tscope_thread_here() : NULL;
  if (thread) {
    const struct tscope_guard *guard = thread->guard;
    thread->guard = TSCOPE_GUARD_ALWAYS;
    TSCOPE_FOR_EACH_FAMILY(i, end)
      tscope_families[i]->end(thread);
    thread->guard = guard;
  }
  __atomic_store_n(&tscope_trace.header->closed_realtime_ns, tscope_clock_ns(CLOCK_REALTIME),
                   __ATOMIC_RELAXED);
  tscope_recording_end();
  tscope_carry_tell();
}

/* The C library has a lock for this, which fork() does not reset in the child either. */
void tscope_register_end(void) {
  tscope_objects_enter();
  on_exit(end, NULL);
  tscope_objects_leave();
}

static void wake_families(struct tscope_thread *thread) {
  thread->guard = TSCOPE_GUARD_ALWAYS;
  TSCOPE_FOR_EACH_FAMILY(i, wake)
    tscope_families[i]->wake(thread);
  thread->guard = NULL;
}

static void use_own_clock(void) {
  void *own = tscope_definition_in("libc.so.6", "clock_gettime");
  if (own)
    tscope_clock_read = (int (*)(clockid_t, struct timespec *))own;
}

/* Called by the thread that claimed it. */
static bool wake(void) {
  const char *why = "";
  use_own_clock();
  tscope_thread_busy();
  bool awake = tscope_may_wake() && tscope_workers_start(&why);
  tscope_thread_idle();
  if (!awake) {
    tscope_turn_off(why);
    __atomic_store_n(&tscope_live->waking, 0, __ATOMIC_RELEASE);
    return false;
  }
  tscope_log_begin();
  tscope_register_end(); /* first: another thread may exit as soon as the process is awake */
  __atomic_store_n(&tscope_live->on, 1, __ATOMIC_RELEASE);
  tscope_log(1, "trace in %s", tscope_trace.path);
  if (tscope_facts_write_python())
    tscope_fork_count_install();
  struct tscope_thread *thread = tscope_thread_here();
  if (thread)
    wake_families(thread);
  __atomic_store_n(&tscope_live->waking, 0, __ATOMIC_RELEASE);
  return load(&tscope_live->on);
}

/* Another thread is waking the process, which takes milliseconds. The first calls of a training
 * thread often create communicators that must be seen, so they wait, but not for ever; and only
 * until one has waited in vain: that thread may have left by a jump out of a signal's handler. */
static bool wait_until_awake(void) {
  static u8 in_vain;
  int looks = load(&in_vain) ? 0 : 2000;
  for (; looks && load(&tscope_live->waking) && !load(&tscope_live->on); looks--)
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  if (!looks)
    __atomic_store_n(&in_vain, 1, __ATOMIC_RELAXED);
  return load(&tscope_live->on);
}

static bool awake(enum tscope_wake wakes) {
  struct tscope_live *live = __atomic_load_n(&tscope_live, __ATOMIC_ACQUIRE);
  if (TSCOPE_LIKELY(load(&live->on)))
    return true;
  if (wakes == TSCOPE_QUIET)
    return false;
  if (live == &dormant && claim_waking())
    return wake();
  live = __atomic_load_n(&tscope_live, __ATOMIC_ACQUIRE);
  if (!load(&live->waking)) /* it may have ended since the first check */
    return load(&live->on);
  if (!tscope_thread_busy())
    return false;
  bool now = wait_until_awake();
  if (!now && load(&live->waking))
    tscope_count_lost(TSCOPE_LOSS_REENTRY, 1);
  tscope_thread_idle();
  return now;
}

struct tscope_thread *tscope_enter_slow(enum tscope_wake wakes, const struct tscope_guard *guard,
                                        const char *frame) {
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  struct tscope_thread *thread = awake(wakes) ? tscope_thread_here() : NULL;
  if (thread && thread->guard && tscope_hook_in_progress(thread, frame))
    thread = NULL;
  if (thread) {
    thread->guard = guard;
    thread->launches_inside = false;
  }
  return thread;
}
