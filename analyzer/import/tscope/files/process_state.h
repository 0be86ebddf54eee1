/* SPDX-License-Identifier: MIT
 *
 * Whether the process that writes a trace still exists, as the kernel of this machine says.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

/* Its state, as in struct trace_process, if the process runs: its trace has no end, it was written
 * on this host since that was started, and the process is there. Else 0, also if that cannot be
 * told. */
char process_runs(const struct tscope_file_header *header);

/* When it last gave a sign of life, s since 1970, by its header alone: its clock is as exact as it
 * was known at the start. Who has read the trace knows it better. */
double process_alive_s(const struct tscope_file_header *header);

/* Whether a process that cannot be seen from here, as on another host, may run: its trace has no
 * end, and it was alive within so many seconds. */
bool process_may_run(const struct tscope_file_header *header, double alive_s, double within_s);

/* A sign of life comes every 100 ms, but a network file system may show it late. To say that a
 * process may run: two minutes. To remove its trace wrongly costs more than to keep it: an hour. */
#define LATELY_S 120.0
#define LONGEST_HELD_S 3600.0

/* What its header says of its end. */
enum process_end { PROCESS_NO_END, PROCESS_ENDED, PROCESS_FAILED, PROCESS_KILLED };

static inline enum process_end process_end_of(const struct tscope_file_header *header) {
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

/* How many processes of its control group were killed for lack of memory since it woke; 0 also
 * where that is not known. */
static inline u64 out_of_memory_kills(const struct tscope_file_header *header) {
  u64 before = header->oom_kills_at_start, now = header->oom_kills;
  return before != UINT64_MAX && now != UINT64_MAX && now > before ? now - before : 0;
}

/* Where clocks are not known, as from headers alone (else host_is_same() decides): two machines of
 * one name, and one that was booted again, were booted at different times: when, differs by more
 * than this. Clocks of day may be set while a job runs. */
#define SAME_BOOT_NS 2000000000

/* Whether two such times may be of one boot: of a damaged file they may be any. */
static inline bool may_be_same_boot(i64 booted, i64 other) {
  i64 apart;
  return !__builtin_sub_overflow(booted, other, &apart) && apart > -SAME_BOOT_NS &&
         apart < SAME_BOOT_NS;
}

/* Whether two processes ran on the same host since it was booted. */
bool processes_share_host(const struct tscope_file_header *a, const struct tscope_file_header *b);
