/* SPDX-License-Identifier: MIT
 *
 * A call of the job must not become a point at which its thread is cancelled because of us: the
 * thread would end in a function that may not end, and leave behind what we were at.
 */
#pragma once

#include <pthread.h>

static inline void tscope_put_cancellation_back(const int *kept) {
  pthread_setcancelstate(*kept, NULL);
}

/* From here to the end of this block, which has system calls that are such points, a thread of the
 * job is not cancelled. */
#define TSCOPE_DEFER_CANCELLATION                                                                  \
  int cancellation_ __attribute__((cleanup(tscope_put_cancellation_back))) =                       \
      PTHREAD_CANCEL_ENABLE;                                                                       \
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_)
