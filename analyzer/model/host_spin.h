/* SPDX-License-Identifier: MIT
 *
 * Where the host waits for the device without a call that says so.
 *
 * A spin: it reads memory again and again until a kernel has written there, as DeepEP's host does
 * for the counts of tokens that notify_dispatch exchanges. Nobody records this. It shows by what is
 * around it: a thread launches a kernel that notifies, then does nothing that is recorded, and goes
 * on as this kernel ends.
 *
 * A copy that blocks: to memory that is not pinned (.item(), .cpu()) even cudaMemcpyAsync() returns
 * when the copy has ended, and so when all work before it on the stream has. So do
 * hipMemcpyWithStream() and others, whatever they are called.
 */
#pragma once

#include "base/intervals.h"

#define HOST_SPIN_NAME "waiting for what a kernel writes"

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

/* Whether the call that launched a copy waited for it. */
static inline bool host_copy_blocks(const struct interval *call, const struct interval *copy) {
  const i64 least_ns = 30000; /* a shorter call may have taken that long by itself */
  const i64 clock_ns = 5000;  /* a device's times on the host's clock */
  return call->end - call->start >= least_ns && copy->start >= call->start - clock_ns &&
         copy->end <= call->end + clock_ns;
}
