/* SPDX-License-Identifier: MIT */
#include "resolve/loaded_objects.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/lock.h"
#include "record/tick_clock.h"

/* Reading the list takes some microseconds and a fork up to some 100 ms, but on a busy machine the
 * kernel may stop either thread in the middle for longer. A thread that was ended while it read the
 * list never leaves: after one wait in vain, forks do not wait for it again. */
static const u64 fork_waits_ns = 2000000000, reader_waits_ns = 4000000000;
enum { RECHECK_NS = 1000000 };

static u32 readers; /* threads that read the list */
static u32 waiting; /* threads that wait for forks before they read it */
static u32 forking; /* forks in progress */
static u32 never_leave;
static __thread u32 depth __attribute__((tls_model("initial-exec")));
static __thread bool forks_here __attribute__((tls_model("initial-exec")));
static __thread u64 mask_before __attribute__((tls_model("initial-exec")));

static u32 value_of(const u32 *word) {
  return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* Waits until the word is at most that, or until that time. */
static bool wait_until_at_most(u32 *word, u32 most, u64 until_ns) {
  u32 seen;
  while ((seen = value_of(word)) > most && tscope_clock_ns(CLOCK_MONOTONIC) < until_ns)
    tscope_futex_wait(word, seen, RECHECK_NS);
  return seen <= most;
}

static void subtract_one(u32 *word, u32 *others) {
  __atomic_sub_fetch(word, 1, __ATOMIC_SEQ_CST);
  if (value_of(others))
    tscope_futex_wake(word, INT32_MAX);
}

static void before_fork(void) {
  forks_here = true;
  __atomic_add_fetch(&forking, 1, __ATOMIC_SEQ_CST);
  u32 least = value_of(&never_leave) + (depth != 0);
  if (!wait_until_at_most(&readers, least, tscope_clock_ns(CLOCK_MONOTONIC) + fork_waits_ns))
    __atomic_store_n(&never_leave, value_of(&readers) - (depth != 0), __ATOMIC_SEQ_CST);
}

static void after_fork_in_parent(void) {
  if (!forks_here) /* registered between the two */
    return;
  forks_here = false;
  subtract_one(&forking, &waiting);
}

/* The child has one thread. */
static void after_fork_in_child(void) {
  forks_here = false;
  forking = waiting = never_leave = 0;
  readers = depth != 0;
}

/* Before the list is read for the first time. A fork that is in progress then is waited for: the C
 * library registers handlers under a lock that it holds from the first handler before a fork to the
 * last one after it. */
static void register_handlers(void) {
  static struct tscope_lock lock;
  static u8 registered;
  if (__atomic_load_n(&registered, __ATOMIC_ACQUIRE) || !tscope_lock_within(&lock, reader_waits_ns))
    return;
  if (!registered && tscope_at_fork(before_fork, after_fork_in_parent, after_fork_in_child))
    __atomic_store_n(&registered, 1, __ATOMIC_RELEASE);
  tscope_unlock(&lock);
}

/* Whether a fork of another thread is in progress. Other handlers of a fork may call hooks: the
 * thread that forks does not wait for itself. */
static bool must_wait(void) {
  return value_of(&forking) && !forks_here;
}

static u64 set_mask(u64 mask) {
  u64 before = 0;
  TSCOPE_KEEP_ERRNO;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof(mask));
  return before;
}

/* All signals but those by which the kernel answers an instruction. By the system call: the C
 * library keeps its own signals open, and by one of these a thread is cancelled at any instruction.
 */
static u64 all_signals(void) {
  static const int answers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  u64 mask = UINT64_MAX;
  for (size_t i = 0; i < LENGTH_OF(answers); i++)
    mask &= ~(1ull << (answers[i] - 1));
  return mask;
}

static void begin_reading(void) {
  if (depth++)
    return;
  register_handlers();
  __atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
  u64 until = must_wait() ? tscope_clock_ns(CLOCK_MONOTONIC) + reader_waits_ns : 0;
  while (must_wait() &&
         tscope_clock_ns(CLOCK_MONOTONIC) < until) { /* after one fork, the next may have begun */
    subtract_one(&readers, &forking);
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    wait_until_at_most(&forking, 0, until);
    __atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
  }
}

static void end_reading(void) {
  if (--depth)
    return;
  subtract_one(&readers, &forking);
  u32 left = value_of(&readers), never = value_of(&never_leave);
  while (left < never && !__atomic_compare_exchange_n(&never_leave, &never, left, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    ;
}

void tscope_objects_enter(void) {
  u64 before = depth ? 0 : set_mask(all_signals());
  begin_reading();
  if (depth == 1)
    mask_before = before;
}

void tscope_objects_leave(void) {
  end_reading();
  if (!depth)
    set_mask(mask_before);
}

void *tscope_library_open(const char *path, int flags) {
  begin_reading();
  void *library = dlopen ? dlopen(path, flags) : NULL;
  end_reading();
  return library;
}

int tscope_each_object(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
  tscope_objects_enter();
  int result = dl_iterate_phdr(visit, data);
  tscope_objects_leave();
  return result;
}
