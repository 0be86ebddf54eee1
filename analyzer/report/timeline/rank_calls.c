/* SPDX-License-Identifier: MIT
 *
 * A rank of which only calls are known, as flight recorders keep them: one lane for each group.
 * When a call was made is known, and how far it got; when it ended is not.
 */
#include <string.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "model/flight_record.h"
#include "report/timeline/rank_lanes.h"

struct recording {
  struct rank_lanes *l;
  const struct flight_record *flight;
  u32 *lane_of; /* [n_groups] index + 1 */
  VECTOR(struct shown_name) names;
};

/* Operations are few. */
static void name_call(struct recording *r, const char *op, u32 *index) {
  for (*index = 0; *index < r->names.n; ++*index)
    if (strcmp(r->names.at[*index].text, op) == 0)
      return;
  VECTOR_PUSH(&r->names, (struct shown_name){.text = op, .whole = op});
}

static u32 lane_of_group(struct recording *r, u32 group) {
  struct shown_rank *shown = &r->l->shown;
  const struct flight_group *of = &r->flight->groups[group];
  if (!r->lane_of[group]) {
    const char *name = of->desc && strcmp(of->desc, of->name) != 0
                           ? arena_printf(&r->l->arena, "%s (%s)", of->desc, of->name)
                           : of->name;
    shown->lanes[shown->n_lanes++] =
        (struct shown_lane){.name = name, .id = group, .kind = SHOWN_GROUP, .rows = 1};
    r->lane_of[group] = shown->n_lanes;
  }
  return r->lane_of[group] - 1;
}

static void add_call(struct recording *r, u32 index) {
  const struct flight_call *call = &r->flight->calls[index];
  struct shown_rank *shown = &r->l->shown;
  struct shown_span span = {.start = call->created,
                            .end = flight_call_is_pending(call) ? r->l->scope->end : call->created,
                            .category = flight_states[call->state].meaning,
                            .launch = INDEX_NONE,
                            .arrival = INDEX_NONE,
                            .arithmetic = INDEX_NONE,
                            .recorded = index,
                            .frame = INDEX_NONE,
                            .step = -1,
                            .kind = SHOWN_CALL};
  if (call->created == NS_UNKNOWN)
    return;
  name_call(r, call->op ? call->op : "unknown", &span.name);
  span.lane = lane_of_group(r, call->group);
  shown->spans[shown->n_spans++] = span;
}

ORDER_BY(by_start, struct shown_span, UP(start))

void rank_calls_build(struct rank_lanes *l, u32 index) {
  struct recording r = {.l = l, .flight = l->scope->results->check.flight};
  const struct flight_rank *rank = &r.flight->ranks[index];
  l->shown = (struct shown_rank){
      .rank = INDEX_NONE, .number = rank->rank, .host = rank->host, .why_empty = rank->why};
  l->shown.lanes = arena_array(&l->arena, r.flight->n_groups, sizeof(*l->shown.lanes));
  l->shown.spans = memory_array(size_sum(rank->n_calls, 1), sizeof(*l->shown.spans));
  r.lane_of = arena_array(&l->arena, r.flight->n_groups, sizeof(u32));
  for (u32 i = 0; i < rank->n_calls; i++)
    add_call(&r, rank->first_call + i);
  SORT(l->shown.spans, l->shown.n_spans, by_start);
  l->shown.names = r.names.at;
  l->shown.n_names = r.names.n;
  rank_lanes_assign_rows(&l->shown);
}
