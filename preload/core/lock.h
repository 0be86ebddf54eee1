/* SPDX-License-Identifier: MIT
 *
 * Locks of the slow paths. A job's signal handler may call exit() while its thread is inside one of
 * them; the count lets the process's end see that, and not wait for itself.
 */
#ifndef TSCOPE_LOCK_H
#define TSCOPE_LOCK_H

#include <pthread.h>

#include "tscope_format.h"

#pragma GCC visibility push(hidden)

extern __thread u32 tscope_locks_held __attribute__((tls_model("initial-exec")));

static inline void tscope_lock(pthread_mutex_t *mutex) {
  tscope_locks_held++;
  pthread_mutex_lock(mutex);
}

static inline void tscope_unlock(pthread_mutex_t *mutex) {
  pthread_mutex_unlock(mutex);
  tscope_locks_held--;
}

#pragma GCC visibility pop

#endif
