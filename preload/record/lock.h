/* SPDX-License-Identifier: MIT
 *
 * The one lock of the shim, for its slow paths. A job must never hang because of it, so waiting has
 * an end, and three cases are told apart from a holder that is only slow:
 *
 *   - The calling thread has it already: a signal handler came while it was held.
 *   - The holder is no thread of this process: this is a forked child, or the thread was ended in
 *     the middle. The lock is taken over.
 *   - The holder does not come back: after the first thread that waited in vain, nobody else waits
 *     long until it is released.
 *
 * Locks are counted by thread, so that the end of a process (a signal handler may call exit()) does
 * not begin in a thread that holds one. A lock that the job's threads wait for is not held while a
 * record is written, which may open and extend a file; but for that of the definitions' own chunk.
 */
#ifndef TSCOPE_LOCK_H
#define TSCOPE_LOCK_H

#include <stdbool.h>

#include "format/tscope_format.h"

#pragma GCC visibility push(hidden)

struct tscope_lock {
  u32 holder;   /* thread id, 0 for none; with LOCK_AWAITED, whether a thread sleeps on it */
  u32 given_up; /* a thread waited for the present holder in vain */
};

/* Locks that the calling thread holds, or is about to. */
extern __thread u32 tscope_locks_held __attribute__((tls_model("initial-exec")));

/* Takes the lock, after waiting up to `patience_ns`; 0: not at all. False when it is not to be had:
 * do without, and do not unlock. Preserves errno; no cancellation point. */
bool tscope_lock_within(struct tscope_lock *lock, u64 patience_ns)
    __attribute__((warn_unused_result));

/* The same with patience for any holder that comes back, for what is lost without the lock: that is
 * counted. */
bool tscope_lock(struct tscope_lock *lock) __attribute__((warn_unused_result));

void tscope_unlock(struct tscope_lock *lock);

#pragma GCC visibility pop

#endif
