/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/process_state.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/intervals.h"
#include "base/now.h"
#include "inspect/trace_process.h"

char process_runs(const struct tscope_file_header *header) {
  i64 booted = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
  if (header->closed_realtime_ns || header->reaped_signal || !header->alive_ticks ||
      (i64)header->start_realtime_ns < booted)
    return 0;
  char state = trace_process_find(header).state;
  return state == 'Z' || state == 'X' || state == '?' ? 0 : state;
}

double process_alive_s(const struct tscope_file_header *header) {
  double start_s = ns_to_s(header->start_realtime_ns);
  return !header->alive_ticks || !header->tick_hz
             ? start_s
             : start_s + (double)(i64)(header->alive_ticks - header->start_ticks) /
                             (double)header->tick_hz;
}

bool process_may_run(const struct tscope_file_header *header, double alive_s, double within_s) {
  return process_end_of(header) == PROCESS_NO_END &&
         fabs(ns_to_s(clock_ns(CLOCK_REALTIME)) - alive_s) < within_s &&
         trace_process_find(header).state == '?';
}

bool processes_share_host(const struct tscope_file_header *a, const struct tscope_file_header *b) {
  return strcmp(a->host, b->host) == 0 &&
         may_be_same_boot((i64)(a->start_realtime_ns - a->start_monotonic_ns),
                          (i64)(b->start_realtime_ns - b->start_monotonic_ns));
}
