/* SPDX-License-Identifier: MIT
 *
 * A call of the job must not become a point at which its thread is cancelled because of us: the
 * thread would end in a function that may not end, and leave behind what we were at.
 */
#pragma once

#include <pthread.h>

/* Where a thread may be cancelled at any instruction, and is to be, it ends here. Its result must
 * be PTHREAD_CANCELED: some versions of the C library set it with the type, and not with the state.
 */
static inline void tscope_put_cancellation_back(const int *kept) {
  int type = PTHREAD_CANCEL_DEFERRED;
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  pthread_setcancelstate(*kept, NULL);
  pthread_setcanceltype(type, NULL);
}

/* From here to the end of this block, which has system calls that are such points, a thread of the
 * job is not cancelled. */
#define TSCOPE_DEFER_CANCELLATION                                                                  \
  int cancellation_ __attribute__((cleanup(tscope_put_cancellation_back))) =                       \
      PTHREAD_CANCEL_ENABLE;                                                                       \
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_)
