/* SPDX-License-Identifier: MIT */
#include "model/rank_events.h"

#include "base/checked_memory.h"
#include "base/intervals.h"
#include "base/sorting.h"

u32 rank_comm_index(const struct rank_events *events, u32 number) {
  for (u32 i = events->n_comms; i-- > 0;)
    if (events->comms[i].comm == number)
      return i;
  return INDEX_NONE;
}

u32 rank_cupti_session(const struct rank_events *events, i64 time, bool runs) {
  u32 n = events->gpu_states.n;
  if (n == 0 || events->gpu_states.at[n - 1].sessions == 0)
    return 0;
  /* the first state after `time` */
  u32 low = FIRST_NOT(0, n, i, events->gpu_states.at[i].time <= time);
  const struct rank_gpu_state *state = &events->gpu_states.at[low ? low - 1 : 0];
  if (low && state->clock != TSCOPE_GPU_CLOCK_CUPTI && !runs)
    return INDEX_NONE;
  return state->sessions ? state->sessions - 1 : 0;
}

bool rank_call_is_idle(const struct rank_events *events, const struct rank_call *call) {
  if (call->stream == TSCOPE_NO_STREAM || call->comm >= events->n_comms)
    return false;
  return events->comms[call->comm].size == 1 || call->count == 0;
}

bool rank_call_is_on_gpu(const struct rank_events *events, const struct rank_call *call) {
  return call->stream != TSCOPE_NO_STREAM && !call->failed &&
         (call->run != INDEX_NONE || !rank_call_is_idle(events, call));
}

struct rank_events rank_events_whole(const struct rank_events *events) {
  struct rank_events all = *events;
  const struct rank_whole *whole = events->whole;
#define L(list, element) all.list.at = whole->list.at, all.list.n = whole->list.n;
  if (whole) {
    RANK_WHOLE_LISTS(L)
  }
#undef L
  return all;
}

void rank_events_complete(struct rank_events *events) {
#define L(list, element) VECTOR_FIT(&events->list);
  RANK_EVENT_LISTS(L)
#undef L
}

void rank_events_release(struct rank_events *events) {
#define L(list, element) free(events->list.at);
  RANK_EVENT_LISTS(L)
#undef L
#define L(list, element) free(events->whole->list.at);
  if (events->whole) {
    RANK_WHOLE_LISTS(L)
  }
#undef L
  free(events->whole);
  arena_release(&events->arena);
  *events = (struct rank_events){0};
}

void unite_phases(const struct rank_events *events, u8 kind, struct arena *arena,
                  struct intervals *out) {
  struct interval *found = arena_array(arena, events->phases.n, sizeof(*found));
  u32 n = 0;
  FOR_EACH(events->phases.at, events->phases.n, phase)
    if (phase->kind == kind && phase->end != NS_UNKNOWN)
      found[n++] = (struct interval){phase->start, phase->end};
  intervals_unite(arena, found, n, out);
}
