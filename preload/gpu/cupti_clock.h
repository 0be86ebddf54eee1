/* SPDX-License-Identifier: MIT
 *
 * Converts CUPTI's times to the host's clock. CUPTI gives all times on the clock that somebody
 * registered for the process (torch.profiler: the processor's counter), else on CLOCK_REALTIME.
 * tscope registers none: from CUDA 12.6 Update 2 to 13.0 each registration makes CUPTI give the
 * times of one more kernel at the start of a session on a wrong clock, also in sessions of the
 * job's own profiler (release notes of CUDA 13.1; PyTorch issue 192021). Instead it reads both
 * clocks again and again.
 */
#pragma once

#include "gpu/cupti_library.h"
#include "record/hook.h"

/* Converts one clock to another: a line through an instant at which both were read. */
struct clock_line {
  u64 cupti_time; /* CUPTI's clock, in whatever it counts */
  u64 ns;         /* CLOCK_MONOTONIC */
  double rate;    /* nanoseconds for each count */
};

/* What a buffer of records is read with. */
struct cupti_clock {
  struct clock_line line;
  u64 real_ahead;       /* CLOCK_REALTIME less CLOCK_MONOTONIC */
  u64 earliest, latest; /* when work that CUPTI reports now may have run, CLOCK_MONOTONIC */
};

/* Reads both clocks for the first time after somebody may have changed CUPTI's. */
void cupti_clock_begin(const struct cupti *cupti);

/* Reads them again: about every second, by one thread at a time. */
void cupti_clock_update(const struct cupti *cupti);

/* What is known now. From any thread. */
struct cupti_clock cupti_clock_read(void);

/* CLOCK_MONOTONIC in nanoseconds for a time on CUPTI's clock; 0 if the time is impossible. */
u64 cupti_clock_ns(const struct cupti_clock *clock, u64 cupti_time);
