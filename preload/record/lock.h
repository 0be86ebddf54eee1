/* SPDX-License-Identifier: MIT
 *
 * The only kind of lock in the shim, for its slow paths. A job must never hang because of it, so
 * waiting is bounded, and three cases are distinguished from a holder that is only slow:
 *
 *   - The calling thread has it already: a signal handler came while it was held. If the handler
 *     left by a jump, the thread gives it back in its next hook: tscope_locks_left().
 *   - The holder is no thread of this process: this is a forked child, or the thread was ended in
 *     the middle. This thread becomes the holder.
 *   - The holder does not come back: after the first wait that timed out, no other thread
 * waits long until it is released.
 *
 * Each thread notes the locks that it holds, so that the end of a process (a signal handler may
 * call exit()) does not begin in a thread that holds one. No record is written while a lock is
 * held, since that may open and extend a file: builds with TSCOPE_CHECKS stop if it happens. A few
 * locks exist to protect writing, and are marked by `for_records`: those of the definitions' chunk,
 * of changes of the GPU clock's source, and of finished event pairs. No event waits for these.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

#pragma GCC visibility push(hidden)

struct tscope_lock {
  u32 holder; /* thread id of the holder, 0 for none; LOCK_AWAITED is set if a thread sleeps on it
               */
  u32 timed_out;    /* a thread's wait for the present holder timed out */
  bool for_records; /* records are written while it is held */
};

/* Number of locks that the calling thread holds, or is about to hold. */
u32 tscope_locks_held(void);

/* Stops the process if the calling thread holds a lock under which no record may be written. Only
 * in builds for tests. */
#ifdef TSCOPE_CHECKS
void tscope_check_no_lock(void);
#else
static inline void tscope_check_no_lock(void) {}
#endif

/* Takes the lock; waits up to `timeout_ns`, with 0 not at all. False if it is not available: go on
 * without it, and do not unlock. Preserves errno; not a cancellation point. */
bool tscope_lock_within(struct tscope_lock *lock, u64 timeout_ns)
    __attribute__((warn_unused_result));

/* The same, waiting long enough for any holder that comes back. For work that is lost without the
 * lock; such losses are counted. */
bool tscope_lock(struct tscope_lock *lock) __attribute__((warn_unused_result));

void tscope_unlock(struct tscope_lock *lock);

/* Gives back what the thread took in functions that have ended, as a frame above theirs shows. */
struct tscope_thread;
void tscope_locks_left(const struct tscope_thread *thread, const char *frame);

#pragma GCC visibility pop
