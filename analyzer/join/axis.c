/* SPDX-License-Identifier: MIT
 *
 * From every rank's own clock to the model's axis, whose origin is the earliest instant seen.
 */

#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/robust.h"
#include "base/sorting.h"
#include "join/join_ranks.h"
#include "join/joining.h"
#include "model/stalls.h"

static void place_lists(struct rank_events *events, const struct rank_clock *clock) {
#define PLACE(list, member)                                                                        \
  for (u32 i = 0; i < events->list.n; i++)                                                         \
    events->list.at[i].member = clock_to_axis(clock, events->list.at[i].member);
#define SPAN(list, element) PLACE(list, start) PLACE(list, end)
#define INSTANT(list, element) PLACE(list, time)
  RANK_SPANS(SPAN)
  RANK_INSTANTS(INSTANT)
  PLACE(calls, launched)
#undef PLACE
#undef SPAN
#undef INSTANT
}

/* What joining found is found of the rest of the trace. */
static void join_whole(struct rank_events *events, const struct rank_clock *clock) {
  struct rank_events lists = {0};
#define L(list, element)                                                                           \
  lists.list.at = events->whole->list.at, lists.list.n = events->whole->list.n;
  RANK_WHOLE_LISTS(L)
#undef L
  place_lists(&lists, clock);
  for (u32 i = 0; i < events->calls.n; i++)
    COPY_EACH(&events->whole->calls.at[i], &events->calls.at[i], op, collective, arrival);
}

static void place_events(void *user, u32 r, unsigned worker) {
  struct model *model = user;
  struct rank_events *events = model_events(model, r);
  const struct rank_clock *clock = model_clock(model, r);
  (void)worker;
  place_lists(events, clock);
  model->ranks[r].looks = events->looks.at;
  model->ranks[r].n_looks = events->looks.n;
  model->ranks[r].meetings = events->meetings.at;
  model->ranks[r].n_meetings = events->meetings.n;
  if (events->whole)
    join_whole(events, clock);
  FOR_EACH(events->calls.at, events->calls.n, call) {
    struct arrival *arrival = &model->arrivals[call->arrival];
    arrival->call_start = call->start;
    arrival->call_end = call->end;
    arrival->start = clock_to_axis(clock, arrival->start);
    arrival->end = clock_to_axis(clock, arrival->end);
  }
  FOR_EACH(events->kernels.at, events->kernels.n, kernel) {
    struct arrival *arrival = &model->arrivals[kernel->arrival];
    arrival->call_start = clock_to_axis(clock, arrival->call_start);
    arrival->call_end = clock_to_axis(clock, arrival->call_end);
    arrival->start = kernel->start;
    arrival->end = kernel->end;
  }
}

/* Kernels and calls of one rank are the same in both if they began at the same instants. */
bool join_again(const struct model *model, u32 rank, struct rank_events *events) {
  const struct rank_events *joined = model_events(model, rank);
  merge_calls_again(joined, events);
  bool same = events->calls.n == joined->calls.n && events->kernels.n == joined->kernels.n;
  place_lists(events, model_clock(model, rank));
  events->comms = joined->comms;
  events->n_comms = joined->n_comms;
  for (u32 i = 0; i < joined->calls.n && same; i++) {
    same = events->calls.at[i].start == joined->calls.at[i].start ||
           joined->calls.at[i].times == TIMES_LEFT_OUT;
    COPY_EACH(&events->calls.at[i], &joined->calls.at[i], op, collective, arrival);
  }
  for (u32 i = 0; i < joined->kernels.n && same; i++) {
    const struct rank_kernel *from = &joined->kernels.at[i];
    struct rank_kernel *to = &events->kernels.at[i];
    same = to->start == from->start;
    COPY_EACH(to, from, comm, seq, collective, arrival);
  }
  return same;
}

/* Where no clock is aligned, all follow their wall clocks. */
static bool is_on_axis(const struct model *model, u32 rank) {
  return !model->clock_aligned || model->ranks[rank].clock.aligned;
}

/* A rank that is compared with nobody follows its wall clock. Where that is so wrong that it would
 * begin before or after the others' run, it begins with it: else the run would be as long as the
 * clock is wrong. */
static void put_into_run(struct rank_clock *clock, i64 begin, i64 run_begin, i64 run_end) {
  i64 at = clock_to_axis(clock, begin);
  if (at != NS_UNKNOWN && (at < run_begin || at > run_end))
    clock->offset += run_begin - at;
}

void place_on_axis(struct model *model, unsigned threads) {
  struct model_internal *internal = internal_of(model);
  i64 origin = INT64_MAX, last = INT64_MIN;
  for (u32 r = 0; r < model->n_ranks; r++) {
    i64 begin = clock_to_axis(&internal->clocks[r], internal->events[r].begin);
    i64 end = clock_to_axis(&internal->clocks[r], internal->events[r].end);
    if (begin != NS_UNKNOWN && begin < origin && is_on_axis(model, r))
      origin = begin;
    last = end > last && is_on_axis(model, r) ? end : last;
  }
  if (origin == INT64_MAX)
    origin = 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    if (!is_on_axis(model, r))
      put_into_run(&internal->clocks[r], internal->events[r].begin, origin, last);
  last = INT64_MIN;
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct rank_clock *clock = &internal->clocks[r];
    clock->offset -= origin;
    model->ranks[r].begin = clock_to_axis(clock, internal->events[r].begin);
    model->ranks[r].end = clock_to_axis(clock, internal->events[r].end);
    rank_end_place(&model->ranks[r].ending, clock);
    rank_stalls_place(model->ranks[r].stalls, model->ranks[r].n_stalls, clock);
    last = MAX(model->ranks[r].end, last);
  }
  model->begin = 0;
  model->end = last == INT64_MIN ? 0 : last;
  parallel_for(model->n_ranks, threads, place_events, model);
}

struct order {
  i64 last_start, last_call; /* INT64_MAX: not known */
  u32 collective;
};

ORDER_BY(by_last_start, struct order, UP(last_start) UP(last_call) UP(collective))

static struct order measure(const struct model *model, u32 c) {
  struct collective *collective = &model->collectives[c];
  i64 last = INT64_MIN, last_call = INT64_MIN;
  bool known = collective->n_arrivals > 0, compared = true;
  FOR_EACH_MEMBER(model, collective, arrival) {
    known &= arrival->start != NS_UNKNOWN;
    compared &= is_on_axis(model, arrival->rank);
    last = MAX(arrival->start, last);
    last_call = MAX(arrival->call_start, last_call);
  }
  collective->last_start = known && compared ? last : NS_UNKNOWN;
  return (struct order){known ? last : INT64_MAX, last_call, c};
}

/* Last starts of all collectives; then their final order. */
void finish_collectives(struct model *model) {
  u32 n = model->n_collectives;
  SCOPED struct order *order = memory_array(size_sum(n, 1), sizeof(*order));
  struct collective *sorted = arena_array(model_arena(model), n, sizeof(*sorted));
  for (u32 c = 0; c < n; c++)
    order[c] = measure(model, c);
  SORT(order, n, by_last_start);
  for (u32 c = 0; c < n; c++) {
    sorted[c] = model->collectives[order[c].collective];
    FOR_EACH_CHANGED(members_of(model, &sorted[c]), sorted[c].n_arrivals, member)
      member->collective = c;
  }
  model->collectives = sorted;
}
