/* SPDX-License-Identifier: MIT
 *
 * What is shown of inputs without timelines, which are small: all that was requested.
 */
#include "report/timeline/shown.h"

#include "base/checked_memory.h"
#include "model/flight_record.h"
#include "model/memory_history.h"
#include "report/selection.h"

static void extend(struct shown_scope *scope, i64 from, i64 to) {
  scope->begin = MIN(from, scope->begin);
  scope->end = MAX(to, scope->end);
}

/* From the first call to the end of the record. */
static void choose_from_calls(struct shown_scope *scope) {
  const struct flight_record *flight = scope->results->check.flight;
  scope->ranks = arena_array(&scope->arena, flight->n_ranks, sizeof(u32));
  scope->n_ranks = LIST_WHERE(
      scope->ranks, 0, flight->n_ranks, i,
      flight->ranks[i].seen && selection_has_rank(scope->request.ranks, flight->ranks[i].rank), i);
  if (flight->end != NS_UNKNOWN)
    scope->end = flight->end;
  FOR_EACH(flight->calls, flight->n_calls, call)
    if (call->created != NS_UNKNOWN)
      extend(scope, call->created, call->created);
}

/* From the first event of an allocator to the last. The walk reports what cannot be read. */
static void extend_by_memory(struct shown_scope *scope, const struct memory_origin *origin) {
  SCOPED_ARENA struct arena arena = {0};
  struct memory_history history = {0};
  if (origin->read(scope->results->model, origin, &arena, &history) == 0)
    FOR_EACH(history.events, history.n_events, event)
      if (event->time != NS_UNKNOWN)
        extend(scope, event->time, event->time);
}

static void choose_from_memories(struct shown_scope *scope) {
  const struct model *model = scope->results->model;
  scope->ranks = arena_array(&scope->arena, model->n_memories, sizeof(u32));
  for (u32 i = 0; i < model->n_memories; i++)
    if (model->memories[i].rank == INDEX_NONE ||
        selection_has_rank(scope->request.ranks, model->memories[i].rank)) {
      scope->ranks[scope->n_ranks++] = i;
      extend_by_memory(scope, &model->memories[i]);
    }
}

/* From the first step with a reported value to the last. */
static void choose_from_scalars(struct shown_scope *scope) {
  const struct model *model = scope->results->model;
  FOR_EACH(model->scalars, model->n_scalars, scalar) {
    i64 time = (i64)scalar->step * SHOWN_STEP_NS;
    if (scalar->step != INDEX_NONE)
      extend(scope, time, time + SHOWN_STEP_NS);
  }
}

void choose_recorded(struct shown_scope *scope) {
  if (scope->source == SHOWN_NOTHING)
    return;
  scope->begin = INT64_MAX;
  scope->end = INT64_MIN;
  if (scope->source == SHOWN_RECORDED_CALLS)
    choose_from_calls(scope);
  else if (scope->source == SHOWN_MEMORIES)
    choose_from_memories(scope);
  else
    choose_from_scalars(scope);
  if (scope->begin > scope->end)
    scope->source = SHOWN_NOTHING;
}
