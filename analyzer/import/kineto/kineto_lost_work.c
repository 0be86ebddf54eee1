/* SPDX-License-Identifier: MIT
 *
 * Exporters write the device's work after that of the host: a file that is cut short has launches
 * without what they launched, and so has one whose profiler's buffers were full. What the host did
 * then says nothing of how fast the rank was. So the recording counts as ending there. Where work
 * is missing in the middle, the device counts as not seen meanwhile.
 */
#include <stdlib.h>

#include "base/checked_memory.h"
#include "import/kineto/kineto.h"

/* A recording may end while something still runs: so many launches, and so many of all. */
#define UNDER_WAY 8u
#define NO_CHANCE 0.01

static bool is_more_than_chance(u32 lost, u32 of) {
  return lost > UNDER_WAY && lost > NO_CHANCE * of;
}

/* Whether an item says of a stretch of time what was done in it: it must be whole. */
static bool stands_for_time(const struct kineto_trace *trace, const struct kineto_item *item) {
  const struct kineto_name *name = kineto_item_name(trace, item);
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

struct launches {
  u32 all, lost, since_then;
  i64 since; /* the first that is lost */
};

/* What is called while a graph is captured launches nothing. `last`: number of the last launch of
 * which there is work. */
static struct launches count_launches(const struct kineto_trace *trace, u32 last) {
  struct launches of = {.since = INT64_MAX};
  u32 captures = 0;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    u8 call =
        item->kind == KINETO_ITEM_CALL ? kineto_item_name(trace, item)->call : KINETO_CALL_OTHER;
    if (call == KINETO_CALL_CAPTURE_END && !captures) /* it began before the recording */
      of = (struct launches){.since = INT64_MAX};
    else if (call == KINETO_CALL_CAPTURE_END)
      captures--;
    captures += call == KINETO_CALL_CAPTURE_BEGIN;
    if (call != KINETO_CALL_LAUNCH || captures)
      continue;
    bool lost = item->correlation > last;
    of.since = lost ? MIN(item->start, of.since) : of.since;
    of.all++;
    of.lost += lost;
    of.since_then += item->start >= of.since;
  }
  return of;
}

/* When a file of which the end is missing has its last call: operators of the host come first in
 * it, then calls and work of devices as they were made. */
static i64 end_of_calls(const struct kineto_trace *trace) {
  i64 last = INT64_MIN;
  u32 operators = 0, behind = 0;
  FOR_EACH(trace->items.at, trace->items.n, item)
    if (item->kind == KINETO_ITEM_CALL && item->end > last)
      last = item->end;
  FOR_EACH(trace->items.at, trace->items.n, item) {
    operators += item->kind == KINETO_ITEM_OP;
    behind += item->kind == KINETO_ITEM_OP && item->start >= last;
  }
  return is_more_than_chance(behind, operators) ? last : INT64_MAX;
}

void kineto_end_at_lost_work(struct kineto_trace *trace, bool cut) {
  u32 last = MOST_OF(u32, trace->items.at, trace->items.n, item,
                     kineto_is_device_item(item) ? item->correlation : 0);
  struct launches of = last ? count_launches(trace, last) : (struct launches){0};
  /* Numbers that do not follow the order of the launches say nothing. */
  bool lost = is_more_than_chance(of.lost, of.all) && of.lost >= (1 - NO_CHANCE) * of.since_then;
  i64 since = lost ? of.since : last && cut ? end_of_calls(trace) : INT64_MAX;
  if (since == INT64_MAX)
    return;
  trace->lost_since = since;
  drop_since(trace, since);
}

/* Launches of which the work is missing, with so few others between two that it is no chance. */
struct stretch {
  i64 begin, end;  /* their calls */
  u32 lost, since; /* and how many others followed the last of them */
};

struct stretches {
  VECTOR(struct stretch) list;
  u32 launches, lost;
};

static void add_launch(struct stretches *all, const struct kineto_item *call, bool lost) {
  struct stretch *last = all->list.n ? &all->list.at[all->list.n - 1] : NULL;
  all->launches++;
  all->lost += lost;
  if (last && !lost)
    last->since++;
  if (!lost)
    return;
  if (last && last->since * NO_CHANCE < 1) {
    last->end = MAX(last->end, call->end);
    last->lost++;
    last->since = 0;
    return;
  }
  VECTOR_PUSH(&all->list, ((struct stretch){call->start, call->end, 1, 0}));
}

/* What was launched before a stretch is over may still run unseen after it: not settled. */
static void add_unseen(struct rank_events *events, i64 begin, const struct stretch *stretch) {
  static const char why[] = "what the host launched then is missing in the recording";
  if (!events->gpu_states.n)
    VECTOR_PUSH(
        &events->gpu_states,
        ((struct rank_gpu_state){.time = begin, .clock = TSCOPE_GPU_CLOCK_CUPTI, .settled = true}));
  VECTOR_PUSH(&events->gpu_states,
              ((struct rank_gpu_state){
                  .time = stretch->begin, .reason = why, .clock = TSCOPE_GPU_CLOCK_NONE}));
  VECTOR_PUSH(&events->gpu_states,
              ((struct rank_gpu_state){.time = stretch->end, .clock = TSCOPE_GPU_CLOCK_CUPTI}));
}

void kineto_add_lost_stretches(const struct kineto_trace *trace, const kineto_calls *calls,
                               struct rank_events *events) {
  SCOPED bool *has_work = memory_zeroed(size_sum(trace->items.n, 1), sizeof(bool));
  SCOPED_ARENA struct arena scratch = {0};
  struct intervals captures;
  struct stretches all = {0};
  u32 cursor = 0;
  intervals_unite(&scratch, events->captures.at, events->captures.n, &captures);
  FOR_EACH(trace->items.at, trace->items.n, item) {
    u32 call = kineto_is_device_item(item) ? kineto_call_of(calls, item->correlation) : INDEX_NONE;
    if (call != INDEX_NONE)
      has_work[call] = true;
  }
  FOR_EACH(trace->items.at, trace->items.n, item)
    if (item->kind == KINETO_ITEM_CALL &&
        kineto_item_name(trace, item)->call == KINETO_CALL_LAUNCH &&
        !intervals_covered(&captures, &cursor, item->start, item->start + 1))
      add_launch(&all, item, !has_work[item - trace->items.at]);
  i64 from =
      events->gpu_states.n ? events->gpu_states.at[events->gpu_states.n - 1].time : trace->begin;
  bool some = 10 * (all.launches - all.lost) >= all.launches; /* else numbers mean something else */
  FOR_EACH(all.list.at, all.list.n, stretch)
    if (some && stretch->lost > UNDER_WAY && stretch->begin > from)
      add_unseen(events, trace->begin, stretch);
  free(all.list.at);
}
