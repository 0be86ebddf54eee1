/* SPDX-License-Identifier: MIT */
#include "import/tscope/files/process_state.h"

#include <math.h>
#include <string.h>

#include "base/intervals.h"
#include "format/clock_ns.h"
#include "inspect/this_host.h"
#include "inspect/thread_state.h"
#include "inspect/trace_process.h"

struct process_state process_state_of(const struct tscope_file_header *header, double alive_s,
                                      double lately_s) {
  struct process_state state = {.stands = process_end_of(header)};
  char kernel = process_is_over(header) ? 0 : trace_process_find(header).state;
  if (kernel == '?') {
    if (fabs(ns_to_s(clock_ns(CLOCK_REALTIME)) - alive_s) < lately_s)
      state.stands = PROCESS_MAY_RUN;
  } else if (!thread_is_gone(kernel))
    state = (struct process_state){PROCESS_RUNS, kernel};
  return state;
}

double process_alive_s(const struct tscope_file_header *header) {
  double start_s = ns_to_s(header->start_realtime_ns);
  return !header->alive_ticks || !header->tick_hz
             ? start_s
             : start_s + (double)(i64)(header->alive_ticks - header->start_ticks) /
                             (double)header->tick_hz;
}

bool processes_share_host(const struct tscope_file_header *a, const struct tscope_file_header *b) {
  return strcmp(a->host, b->host) == 0 &&
         may_be_same_boot((i64)(a->start_realtime_ns - a->start_monotonic_ns),
                          (i64)(b->start_realtime_ns - b->start_monotonic_ns));
}
