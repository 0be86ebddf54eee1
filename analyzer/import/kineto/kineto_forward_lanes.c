/* SPDX-License-Identifier: MIT
 *
 * An operator that computes a gradient has the sequence number of the operator whose gradient that
 * is, and a number of its own for the thread which that ran on. The trace does not say which lane
 * such a number means: it is the lane on which most of the sequence numbers are found.
 */
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "import/kineto/kineto.h"

struct numbers {
  HASHED(u64) on_lanes;
  bool *lanes; /* those that have any */
};

static bool is_known(const struct numbers *numbers, u64 key) {
  return HASHED_INDEX(&numbers->on_lanes, table_hash(0, &key, sizeof(key)), one, *one == key) !=
         INDEX_NONE;
}

static void list_numbers(const struct kineto_trace *trace, struct numbers *numbers) {
  FOR_EACH(trace->items.at, trace->items.n, item)
    if (kineto_is_numbered(item) && !item->thread) {
      u64 key = kineto_forward_key(item->lane, item->what);
      HASHED_OR_ADD(&numbers->on_lanes, table_hash(0, &key, sizeof(key)), one, *one == key, key);
      numbers->lanes[item->lane] = true;
    }
}

static void count_lane(const struct kineto_trace *trace, const struct numbers *numbers, u32 lane,
                       u32 *most, struct kineto_forward_lane *lane_of) {
  u32 hits[KINETO_FORWARD_THREADS] = {0};
  FOR_EACH(trace->items.at, trace->items.n, item)
    if (kineto_is_numbered(item) && item->thread)
      hits[item->thread] += is_known(numbers, kineto_forward_key(lane, item->what));
  for (u32 t = 0; t < KINETO_FORWARD_THREADS; t++)
    if (hits[t] > most[t]) {
      most[t] = hits[t];
      lane_of[t] = (struct kineto_forward_lane){lane, true};
    } else if (hits[t] && hits[t] == most[t]) {
      lane_of[t].certain = false;
    }
}

void kineto_find_forward_lanes(const struct kineto_trace *trace,
                               struct kineto_forward_lane *lane_of) {
  struct numbers numbers = {.lanes = memory_zeroed(size_sum(trace->lanes.n, 1), sizeof(bool))};
  u32 most[KINETO_FORWARD_THREADS] = {0};
  FOR_EACH_CHANGED(lane_of, KINETO_FORWARD_THREADS, each)
    *each = (struct kineto_forward_lane){INDEX_NONE, false};
  list_numbers(trace, &numbers);
  for (u32 lane = 0; lane < trace->lanes.n; lane++)
    if (numbers.lanes[lane])
      count_lane(trace, &numbers, lane, most, lane_of);
  lane_of[UINT8_MAX].certain = false;
  FREE_EACH(&numbers, lanes, on_lanes.at, on_lanes.index.slots);
}
