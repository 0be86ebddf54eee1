/* SPDX-License-Identifier: MIT */
#include "record/lock.h"

#include "record/hook.h"
#include "record/kernel_threads.h"
#include "record/stack.h"
#include "record/tick_clock.h"

enum { TIMEOUT_NS = 1000000000, AFTER_TIMEOUT_NS = 1000000, RECHECK_NS = 10000000 };

#define LOCK_AWAITED 0x80000000u /* no thread id has this bit */

/* The locks that this thread holds or waits for, and where its stack ended when it began to. A
 * signal's handler may leave by a jump between any two instructions: so a lock is here before it is
 * taken, and until after it is given back. */
enum { MOST_HELD = 8 };
static __thread struct held {
  struct tscope_lock *lock;
  const char *place;
} held[MOST_HELD] __attribute__((tls_model("initial-exec")));

u32 tscope_locks_held(void) {
  u32 n = 0;
  for (u32 i = 0; i < MOST_HELD; i++)
    n += held[i].lock != NULL;
  return n;
}

#ifdef TSCOPE_CHECKS
void tscope_check_no_lock(void) {
  for (u32 i = 0; i < MOST_HELD; i++)
    if (held[i].lock && !held[i].lock->for_records)
      __builtin_trap();
}
#endif

/* NULL if the thread has too many. */
static struct held *note_held(struct tscope_lock *lock, const char *place) {
  for (u32 i = 0; i < MOST_HELD; i++)
    if (!held[i].lock) {
      held[i].place = place;
      __atomic_signal_fence(__ATOMIC_SEQ_CST);
      held[i].lock = lock;
      __atomic_signal_fence(__ATOMIC_SEQ_CST);
      held[i].place = place; /* a handler in between may have used the slot */
      return &held[i];
    }
  return NULL;
}

/* The latest: a handler may take what the thread has just given back. */
static struct held *find_held(const struct tscope_lock *lock) {
  for (u32 i = MOST_HELD; i-- > 0;)
    if (held[i].lock == lock)
      return &held[i];
  return NULL;
}

static bool replace(struct tscope_lock *lock, u32 *seen, u32 by) {
  return __atomic_compare_exchange_n(&lock->holder, seen, by, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* Sleeps until the holder wakes this thread, or until it is time to look again. */
static void sleep_on(struct tscope_lock *lock, u32 seen, u64 until) {
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC), ns = until > now ? until - now : 0;
  tscope_futex_wait(&lock->holder, seen, MIN(ns, RECHECK_NS));
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
    if (!holder || tscope_tid_is_gone(holder)) {
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
  u32 self = tscope_tid(), nobody = 0;
  struct held *here = note_held(lock, place);
  bool locked = here && (replace(lock, &nobody, self) || wait_for(lock, self, timeout_ns));
  if (here && !locked)
    here->lock = NULL;
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
  struct held *here = find_held(lock);
  __atomic_store_n(&lock->timed_out, 0, __ATOMIC_RELAXED);
  if (__atomic_exchange_n(&lock->holder, 0, __ATOMIC_RELEASE) & LOCK_AWAITED)
    tscope_futex_wake(&lock->holder, 1);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (here)
    here->lock = NULL;
}

/* A thread that left before it had the lock, or after it gave it back, does not have it. */
static void give_back(struct held *left) {
  if ((__atomic_load_n(&left->lock->holder, __ATOMIC_RELAXED) & ~LOCK_AWAITED) == tscope_tid())
    tscope_unlock(left->lock);
  left->lock = NULL;
}

void tscope_locks_left(const struct tscope_thread *thread, const char *frame) {
  for (u32 i = 0; i < MOST_HELD; i++)
    if (held[i].lock && frame > held[i].place && tscope_stack_has(thread, held[i].place) &&
        tscope_stack_has(thread, frame))
      give_back(&held[i]);
}
