/* SPDX-License-Identifier: MIT
 *
 * CUPTI's clock on the host's. CUPTI tells all times on the clock that somebody registered for the
 * process (torch.profiler: the processor's counter), else on CLOCK_REALTIME. tscope registers none:
 * from CUDA 12.6 Update 2 to 13.0 each registration makes CUPTI tell the times of one more kernel
 * at the start of a session on a wrong clock, the job's own profiler's included (release notes of
 * CUDA 13.1; PyTorch issue 192021). It looks at both clocks again and again instead.
 */
#ifndef TSCOPE_CUPTI_CLOCK_H
#define TSCOPE_CUPTI_CLOCK_H

#include "gpu/cupti_library.h"
#include "record/hook.h"

/* How one clock reads on another: a line through an instant at which both were looked at. */
struct clock_line {
  u64 cupti_time; /* CUPTI's clock, in whatever it counts */
  u64 ns;         /* CLOCK_MONOTONIC */
  double rate;    /* nanoseconds for each count */
};

/* What a buffer of records is read with. */
struct cupti_clock {
  struct clock_line line;
  u64 real_ahead;       /* CLOCK_REALTIME less CLOCK_MONOTONIC */
  u64 earliest, latest; /* when work that CUPTI reports now can have run, CLOCK_MONOTONIC */
};

/* Looks at both clocks for the first time since somebody may have changed CUPTI's. */
void cupti_clock_begin(const struct cupti *cupti);

/* Looks again: every second or so, by one thread at a time. */
void cupti_clock_look(const struct cupti *cupti);

/* What is known now. From any thread. */
struct cupti_clock cupti_clock_read(void);

/* CLOCK_MONOTONIC in nanoseconds of a time on CUPTI's clock; 0 when it cannot be one. */
u64 cupti_clock_ns(const struct cupti_clock *clock, u64 cupti_time);

#endif
