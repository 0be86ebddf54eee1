/* SPDX-License-Identifier: MIT
 *
 * Exporters write the device's work after that of the host: a file that is cut short has launches
 * without what they launched, and so has one whose profiler's buffers were full. What the host did
 * then says nothing of how fast the rank was. So the recording counts as ending there.
 */
#include "import/kineto/kineto.h"

/* A recording may end while something still runs: so many launches, and so many of all. */
#define UNDER_WAY 8u
#define NO_CHANCE 0.01

static const struct kineto_name *name_of(const struct kineto_trace *trace,
                                         const struct kineto_item *item) {
  return &trace->names.list.at[item->name];
}

static bool is_launch(const struct kineto_trace *trace, const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_CALL && name_of(trace, item)->call == KINETO_CALL_LAUNCH;
}

/* Whether an item says of a stretch of time what was done in it: it must be whole. */
static bool stands_for_time(const struct kineto_trace *trace, const struct kineto_item *item) {
  const struct kineto_name *name = name_of(trace, item);
  return item->kind == KINETO_ITEM_RANGE && (name->is_step || name->iteration || name->phase);
}

static void drop_since(struct kineto_trace *trace, i64 since) {
  i64 end = trace->begin;
  trace->items.n = KEEP_WHERE(trace->items.at, trace->items.n, one,
                              kineto_is_device_item(one) ||
                                  (stands_for_time(trace, one) ? one->end : one->start) < since);
  FOR_EACH(trace->items.at, trace->items.n, item)
    if (item->kind != KINETO_ITEM_PYTHON && item->end > end)
      end = item->end;
  trace->end = end;
}

void kineto_end_at_lost_work(struct kineto_trace *trace) {
  u32 last = 0, all = 0, since_then = 0;
  i64 since = INT64_MAX;
  FOR_EACH(trace->items.at, trace->items.n, item)
    if (kineto_is_device_item(item) && item->correlation > last)
      last = item->correlation;
  FOR_EACH(trace->items.at, last ? trace->items.n : 0, item) {
    if (!is_launch(trace, item))
      continue;
    bool lost = item->correlation > last;
    since = lost && item->start < since ? item->start : since;
    trace->lost_launches += lost;
    since_then += item->start >= since;
    all++;
  }
  /* Numbers that do not follow the order of the launches say nothing. */
  if (trace->lost_launches <= UNDER_WAY || trace->lost_launches <= NO_CHANCE * all ||
      trace->lost_launches < (1 - NO_CHANCE) * since_then)
    trace->lost_launches = 0;
  else
    drop_since(trace, since);
}
