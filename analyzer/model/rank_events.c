/* SPDX-License-Identifier: MIT */
#include "model/rank_events.h"

#include <errno.h>

#include "base/intervals.h"

u32 spine_comm_index(const struct spine *spine, u32 number) {
  for (u32 i = spine->n_comms; i-- > 0;)
    if (spine->comms[i].comm == number)
      return i;
  return INDEX_NONE;
}

u32 spine_gpu_turn(const struct spine *spine, i64 time, bool runs) {
  u32 n = spine->gpu_states.n, low = 0, high = n;
  if (n == 0 || spine->gpu_states.at[n - 1].turns == 0)
    return 0;
  while (low < high) { /* the first state after `time` */
    u32 middle = low + (high - low) / 2;
    if (spine->gpu_states.at[middle].time <= time)
      low = middle + 1;
    else
      high = middle;
  }
  const struct spine_gpu_state *state = &spine->gpu_states.at[low ? low - 1 : 0];
  if (low && state->clock != TSCOPE_GPU_CLOCK_CUPTI && !runs)
    return INDEX_NONE;
  return state->turns ? state->turns - 1 : 0;
}

bool spine_call_is_idle(const struct spine *spine, const struct spine_call *call) {
  if (call->stream == TSCOPE_NO_STREAM || call->comm >= spine->n_comms)
    return false;
  return spine->comms[call->comm].size == 1 || call->count == 0;
}

void spine_release(struct spine *spine) {
  free(spine->calls.at);
  free(spine->runs.at);
  free(spine->insides.at);
  free(spine->groups.at);
  free(spine->graphs.at);
  free(spine->graph_bodies.at);
  free(spine->parts.at);
  free(spine->waits.at);
  free(spine->cpu_times.at);
  free(spine->phases.at);
  free(spine->sites.at);
  free(spine->marks.at);
  free(spine->step_ranges.at);
  free(spine->scalars.at);
  free(spine->memory_devices.at);
  free(spine->gpu_states.at);
  arena_release(&spine->arena);
  *spine = (struct spine){0};
}

static int by_start(const void *left, const void *right) {
  const struct interval *a = left, *b = right;
  return a->start < b->start ? -1 : a->start > b->start;
}

int unite_phases(const struct spine *spine, u8 kind, struct arena *arena, struct intervals *out) {
  struct interval *found = arena_array(arena, spine->phases.n + 1, sizeof *found);
  u32 n = 0;
  *out = (struct intervals){.at = arena_array(arena, spine->phases.n + 1, sizeof *out->at)};
  if (!found || !out->at)
    return -ENOMEM;
  for (u32 i = 0; i < spine->phases.n; i++) {
    const struct spine_phase *phase = &spine->phases.at[i];
    if (phase->kind == kind && phase->end != NS_UNKNOWN)
      found[n++] = (struct interval){phase->start, phase->end};
  }
  if (n)
    qsort(found, n, sizeof *found, by_start);
  for (u32 i = 0; i < n; i++)
    intervals_append(out, found[i].start, found[i].end);
  return 0;
}
