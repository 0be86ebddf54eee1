/* SPDX-License-Identifier: MIT
 *
 * How the process that writes a trace stands: as its trace's header says, and as the kernel of this
 * machine says.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

enum process_stands {
  PROCESS_NO_END, /* its end is not recorded, and it is not seen to run */
  PROCESS_RUNS,
  PROCESS_MAY_RUN, /* it cannot be seen from here, as on another host, and was alive lately */
  PROCESS_ENDED,
  PROCESS_FAILED,
  PROCESS_KILLED
};

/* What its header alone says of its end: never that it runs. Who has begun to end by exit() may
 * still run, in what is called then. */
static inline enum process_stands process_end_of(const struct tscope_file_header *header) {
  bool began_to_end = header->end_kind != TSCOPE_END_UNSEEN;
  return header->reaped_signal                             ? PROCESS_KILLED
         : began_to_end && header->end_status != 0         ? PROCESS_FAILED
         : began_to_end || header->closed_realtime_ns != 0 ? PROCESS_ENDED
                                                           : PROCESS_NO_END;
}

/* Whether the process ended by itself and its trace tells so: in order, or by _exit(), as children
 * that Python forks do. */
static inline bool process_ended_itself(const struct tscope_file_header *header) {
  return header->closed_realtime_ns != 0 || header->end_kind == TSCOPE_END_AT_ONCE;
}

/* Whether its header says that it is there no more. */
static inline bool process_is_over(const struct tscope_file_header *header) {
  return process_ended_itself(header) || header->reaped_signal;
}

struct process_state {
  enum process_stands stands;
  char kernel; /* of one that runs: as in struct trace_process; else 0 */
};

/* `alive_s`: when it last gave a sign of life, s since 1970; within how many seconds that was
 * lately: LATELY_S or LONGEST_HELD_S. */
struct process_state process_state_of(const struct tscope_file_header *header, double alive_s,
                                      double lately_s);

/* When it last gave a sign of life, by its header alone: its clock is as exact as it was known at
 * the start. Who has read the trace knows it better. */
double process_alive_s(const struct tscope_file_header *header);

/* A sign of life comes every 100 ms, but a network file system may show it late. To say that a
 * process may run: two minutes. To remove its trace wrongly costs more than to keep it: an hour. */
#define LATELY_S 120.0
#define LONGEST_HELD_S 3600.0

/* How many processes of its control group were killed for lack of memory since it woke; 0 also
 * where that is not known. */
static inline u64 out_of_memory_kills(const struct tscope_file_header *header) {
  u64 before = header->oom_kills_at_start, now = header->oom_kills;
  return before != UINT64_MAX && now != UINT64_MAX && now > before ? now - before : 0;
}

/* Whether two processes ran on the same host since it was booted, where clocks are not known, as
 * from headers alone; else host_is_same() decides. */
bool processes_share_host(const struct tscope_file_header *a, const struct tscope_file_header *b);
