/* SPDX-License-Identifier: MIT */
#include "record/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/hook.h"
#include "record/stack.h"
#include "record/tick_clock.h"

enum { TIMEOUT_NS = 1000000000, AFTER_TIMEOUT_NS = 1000000, RECHECK_NS = 10000000 };

#define LOCK_AWAITED 0x80000000u /* no thread id has this bit */

__thread u32 tscope_locks_held __attribute__((tls_model("initial-exec")));

/* The locks that this thread holds or waits for, and where its stack ended when it began to. */
enum { MOST_HELD = 4 };
static __thread struct held {
  struct tscope_lock *lock;
  const char *place;
} held[MOST_HELD] __attribute__((tls_model("initial-exec")));

static struct held *held_place(const struct tscope_lock *lock) {
  for (u32 i = 0; i < MOST_HELD; i++)
    if (held[i].lock == lock)
      return &held[i];
  return NULL;
}

/* NULL if the thread has too many. */
static struct held *note_held(struct tscope_lock *lock, const char *place) {
  struct held *here = held_place(NULL);
  if (here)
    *here = (struct held){lock, place};
  return here;
}

#ifdef TSCOPE_CHECKS
static __thread u32 held_not_for_records __attribute__((tls_model("initial-exec")));

static void count_held(const struct tscope_lock *lock, i32 change) {
  if (!lock->for_records)
    held_not_for_records += (u32)change;
}

void tscope_check_no_lock(void) {
  if (held_not_for_records)
    __builtin_trap();
}
#else
static void count_held(const struct tscope_lock *lock, i32 change) {
  (void)lock, (void)change;
}
#endif

static bool replace(struct tscope_lock *lock, u32 *seen, u32 by) {
  return __atomic_compare_exchange_n(&lock->holder, seen, by, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

static bool is_own_thread(u32 thread) {
  return syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;
}

/* Sleeps until the holder wakes this thread, or until it is time to look again. */
static void sleep_on(struct tscope_lock *lock, u32 seen, u64 until) {
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC), ns = until > now ? until - now : 0;
  struct timespec time = {.tv_nsec = (long)(ns < RECHECK_NS ? ns : RECHECK_NS)};
  syscall(SYS_futex, &lock->holder, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

/* Another thread has it, according to `seen`. */
static bool wait_for(struct tscope_lock *lock, u32 self, u64 timeout_ns) {
  u32 seen = __atomic_load_n(&lock->holder, __ATOMIC_RELAXED);
  if (__atomic_load_n(&lock->timed_out, __ATOMIC_RELAXED) && timeout_ns > AFTER_TIMEOUT_NS)
    timeout_ns = AFTER_TIMEOUT_NS;
  u64 until = tscope_clock_ns(CLOCK_MONOTONIC) + timeout_ns;
  for (;;) {
    u32 holder = seen & ~LOCK_AWAITED;
    if (holder == self)
      return false;
    if (!holder || !is_own_thread(holder)) {
      /* Other threads may sleep as well; this thread must wake them. */
      if (replace(lock, &seen, self | LOCK_AWAITED))
        return true;
      continue;
    }
    if (tscope_clock_ns(CLOCK_MONOTONIC) >= until)
      break;
    if (!(seen & LOCK_AWAITED) && !replace(lock, &seen, seen | LOCK_AWAITED))
      continue;
    sleep_on(lock, holder | LOCK_AWAITED, until);
    seen = __atomic_load_n(&lock->holder, __ATOMIC_RELAXED);
  }
  if (timeout_ns)
    __atomic_store_n(&lock->timed_out, 1, __ATOMIC_RELAXED);
  return false;
}

static bool take(struct tscope_lock *lock, u64 timeout_ns, const char *place) {
  u32 self = (u32)syscall(SYS_gettid), nobody = 0;
  tscope_locks_held++; /* first: a signal handler that comes in between must see it */
  struct held *here = note_held(lock, place);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (__builtin_expect(replace(lock, &nobody, self), 1)) {
    count_held(lock, 1);
    return true;
  }
  TSCOPE_KEEP_ERRNO;
  bool locked = wait_for(lock, self, timeout_ns);
  if (locked) {
    count_held(lock, 1);
  } else {
    if (here)
      here->lock = NULL;
    tscope_locks_held--;
  }
  return locked;
}

bool tscope_lock_within(struct tscope_lock *lock, u64 timeout_ns) {
  return take(lock, timeout_ns, TSCOPE_FRAME());
}

bool tscope_lock(struct tscope_lock *lock) {
  bool locked = take(lock, TIMEOUT_NS, TSCOPE_FRAME());
  if (!locked)
    tscope_count_lost(TSCOPE_LOSS_LOCKED, 1);
  return locked;
}

void tscope_unlock(struct tscope_lock *lock) {
  struct held *here = held_place(lock);
  if (here)
    here->lock = NULL;
  count_held(lock, -1);
  __atomic_store_n(&lock->timed_out, 0, __ATOMIC_RELAXED);
  if (__atomic_exchange_n(&lock->holder, 0, __ATOMIC_RELEASE) & LOCK_AWAITED) {
    TSCOPE_KEEP_ERRNO;
    syscall(SYS_futex, &lock->holder, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  tscope_locks_held--;
}

/* A thread that left while it waited does not have the lock. */
static void give_back(struct held *left) {
  u32 self = (u32)syscall(SYS_gettid);
  if ((__atomic_load_n(&left->lock->holder, __ATOMIC_RELAXED) & ~LOCK_AWAITED) == self) {
    tscope_unlock(left->lock);
    return;
  }
  left->lock = NULL;
  tscope_locks_held--;
}

void tscope_locks_left(const struct tscope_thread *thread, const char *frame) {
  for (u32 i = 0; i < MOST_HELD; i++)
    if (held[i].lock && frame > held[i].place && tscope_stack_has(thread, held[i].place) &&
        tscope_stack_has(thread, frame))
      give_back(&held[i]);
}
