/* SPDX-License-Identifier: MIT
 *
 * Where the host waits for a kernel without a call: it reads memory again and again until the
 * kernel has written there, as DeepEP's host does for the counts of tokens that notify_dispatch
 * exchanges. Nobody records this. It shows by what is around it: a thread launches a kernel that
 * notifies, then does nothing that is recorded, and goes on as this kernel ends.
 */
#ifndef TSCOPE_HOST_SPIN_H
#define TSCOPE_HOST_SPIN_H

#include "base/intervals.h"

/* Whether a thread's pause after the launch of a kernel that notifies was a wait for that kernel.
 */
static inline bool host_spin_ends_with(const struct interval *pause, i64 kernel_end) {
  const i64 least_ns = 50000;     /* a shorter pause may be anything */
  const i64 nearness_ns = 100000; /* the kernel writes a little before its end, and the host notices
                                     later */
  i64 apart = pause->end - kernel_end;
  return pause->end - pause->start >= least_ns && apart > -nearness_ns && apart < nearness_ns &&
         kernel_end > pause->start;
}

#endif
