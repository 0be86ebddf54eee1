/* SPDX-License-Identifier: MIT */
#pragma once

#include "gpu/cupti_decode.h"

/* Spans are in nanoseconds, so the threads that deliver them have additional writers beside their
 * own two. */
struct gpu_thread {
  struct tscope_writer retained;
  struct tscope_writer ring;
};

/* Where a collective ran, for a source that knows which; or TSCOPE_UNKNOWN twice. `name` is a
 * string's number. Times are nanoseconds of CLOCK_MONOTONIC. */
struct gpu_run {
  u64 start, end;
  u64 node;  /* as in struct gpu_span */
  u32 graph; /* likewise */
  u32 comm, seq, name, correlation;
  u16 stream;
};
void gpu_run_record(struct tscope_thread *thread, const struct gpu_run *run);

/* Work that is not a collective, timed from outside: one of `one_in` calls, with the number that is
 * in the call's own record. */
struct gpu_work {
  u64 start, end;
  u32 name, one_in, number;
  u16 stream;
};
void gpu_work_record(struct tscope_thread *thread, const struct gpu_work *work);
