/* SPDX-License-Identifier: MIT
 *
 * A call of the job must not become a point at which its thread is cancelled because of us: the
 * thread would end in a function that may not end, and leave behind what we were at.
 */
#ifndef TSCOPE_CANCELLATION_H
#define TSCOPE_CANCELLATION_H

#include <pthread.h>

/* Around system calls that are such points, on a thread of the job. Returns what is to be put
 * back. */
static inline int tscope_defer_cancellation(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void tscope_restore_cancellation(int before) {
  pthread_setcancelstate(before, NULL);
}

#endif
