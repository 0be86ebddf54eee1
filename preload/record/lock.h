/* SPDX-License-Identifier: MIT
 *
 * The one lock of the shim, for its slow paths. A job must never hang because of it, so waiting has
 * an end, and three cases are distinguished from a holder that is only slow:
 *
 *   - The calling thread has it already: a signal handler came while it was held.
 *   - The holder is no thread of this process: this is a forked child, or the thread was ended in
 *     the middle. The lock is taken over.
 *   - The holder does not come back: after the first thread that waited in vain, no other thread
 * waits long until it is released.
 *
 * Locks are counted by thread, so that the end of a process (a signal handler may call exit()) does
 * not begin in a thread that holds one. No record is written while a lock is held, since that may
 * open and extend a file: builds with TSCOPE_CHECKS stop where one is. A few locks are there for
 * what is written under them, and say so by `for_records`: of the definitions' chunk, of changes of
 * the GPU clock's source, and of finished event pairs. No event waits for these.
 */
#ifndef TSCOPE_LOCK_H
#define TSCOPE_LOCK_H

#include <stdbool.h>

#include "format/tscope_format.h"

#pragma GCC visibility push(hidden)

struct tscope_lock {
  u32 holder;       /* thread id, 0 for none; with LOCK_AWAITED, whether a thread sleeps on it */
  u32 given_up;     /* a thread waited for the present holder in vain */
  bool for_records; /* records are written while it is held */
};

/* Locks that the calling thread holds, or is about to. */
extern __thread u32 tscope_locks_held __attribute__((tls_model("initial-exec")));

/* Stops the process if the calling thread holds a lock under which no record may be written. Only
 * in builds for tests. */
#ifdef TSCOPE_CHECKS
void tscope_check_no_lock(void);
#else
static inline void tscope_check_no_lock(void) {}
#endif

/* Takes the lock, after waiting up to `patience_ns`; 0: not at all. False when it is not available:
 * do without, and do not unlock. Preserves errno; no cancellation point. */
bool tscope_lock_within(struct tscope_lock *lock, u64 patience_ns)
    __attribute__((warn_unused_result));

/* The same with patience for any holder that comes back, for what is lost without the lock: that is
 * counted. */
bool tscope_lock(struct tscope_lock *lock) __attribute__((warn_unused_result));

void tscope_unlock(struct tscope_lock *lock);

#pragma GCC visibility pop

#endif
