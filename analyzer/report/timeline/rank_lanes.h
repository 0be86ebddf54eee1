/* SPDX-License-Identifier: MIT
 *
 * Shared by the files that build one struct shown_rank.
 */
#pragma once

#include "analyses/analysis.h"
#include "base/vector.h"
#include "model/memory_history.h"
#include "report/timeline/shown.h"

/* The chosen steps of one rank: from when to when host and GPU were in them, ascending. */
struct rank_window {
  i64 host_begin, host_end, begin, end;
  i32 step; /* -1: the run as a whole */
};

/* Of host and GPU together. */
static inline i64 rank_window_begin(const struct rank_window *window) {
  return MIN(window->host_begin, window->begin);
}

static inline i64 rank_window_end(const struct rank_window *window) {
  return MAX(window->host_end, window->end);
}

struct rank_lanes {
  const struct shown_scope *scope;
  const struct analysis *analysis;
  const struct timeline *timeline;
  struct arena arena; /* of what `shown` points to */
  struct rank_window *windows;
  u32 n_windows;
  u32 *lane_of; /* [2 * timeline lanes] index + 1 into shown.lanes: calls or stream; phases or
                   collectives */
  VECTOR(struct shown_counter) counters; /* those of `shown` */
  struct shown_rank shown;
};

/* rank_lanes.c: everything but counters. */
void rank_lanes_build(struct rank_lanes *lanes);
void rank_lanes_release(struct rank_lanes *lanes);

/* rank_counters.c */
void rank_counters_build(struct rank_lanes *lanes);

/* Of one allocator alone, from its first event to its last. 0, or negative errno. */
int rank_counters_of_memory(struct rank_lanes *lanes, const struct memory_origin *origin);

/* rank_calls.c: a rank of the flight record, by index. */
void rank_calls_build(struct rank_lanes *lanes, u32 rank);

/* Sets the rows of spans that overlap on one lane. */
void rank_lanes_assign_rows(struct shown_rank *rank);
