/* SPDX-License-Identifier: MIT
 *
 * Who waits for whom, as the report says it: its own flight record and verdict, from the last
 * calls.
 */
#include <math.h>

#include "analyses/hang/verdict.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "import/tscope/trace_source.h"
#include "kernels/communication.h"
#include "live/live_view.h"
#include "model/flight_record.h"

/* The report's answer costs as much as all else on a page. Of many ranks it is asked for only when
 * one of them is in trouble, or has called nothing for nearly as long as a call must be pending. */
enum { RANKS_ALWAYS = 64 };
#define QUIET_S 1.5

bool live_waits_matter(const struct live_view *view) {
  return view->n_ranks <= RANKS_ALWAYS || view->n_trouble > 0 ||
         ANY(view->ranks, view->n_ranks, one, one->called_s >= QUIET_S);
}

static u32 index_of(const struct live_view *view, u32 rank) {
  return SORTED_INDEX(view->n_ranks, i, view->ranks[i].rank, rank);
}

/* Places in view.ranks of global ranks; those that left no trace are only counted. */
static u32 *places_of(struct live_view *view, const u32 *ranks, u32 n, u32 *found) {
  u32 *places = arena_array(&view->arena, n, sizeof(*places));
  FOR_EACH(ranks, n, rank) {
    u32 place = index_of(view, *rank);
    if (place != INDEX_NONE)
      places[(*found)++] = place;
  }
  return places;
}

/* What the flight record has of the call: since when it is pending, and whether one of `absent`
 * made it.
 */
static void read_call(const struct live_view *view, const struct flight_record *flight,
                      const struct check_wait *check, struct live_wait *wait) {
  i64 first = NS_UNKNOWN;
  bool message = op_is_message(op_named(check->op));
  FOR_EACH(flight->calls, flight->n_calls, call) {
    bool pending = flight_call_is_pending(call);
    if (call->seq != (i64)check->seq || call->message != message ||
        strcmp(flight->groups[call->group].name, check->group_name) != 0 ||
        (message && !ranks_have(check->ranks, check->n_ranks, flight->ranks[call->rank].rank)))
      continue;
    first = pending ? least_known(call->created, first) : first;
    for (u32 k = 0; k < wait->n_absent && !message; k++)
      wait->called |= view->ranks[wait->absent[k]].rank == flight->ranks[call->rank].rank;
  }
  wait->since_s = seconds_between(first, flight->end);
}

/* Either side of a message may be the one that waits. */
static void read_message(const struct live_view *view, const struct flight_record *flight,
                         const struct check_wait *check, struct live_wait *wait) {
  wait->message = op_is_message(op_named(check->op));
  if (!wait->message || !wait->n_waiting)
    return;
  const struct flight_call *call = waits_call_of(flight, view->ranks[wait->waiting[0]].rank, check);
  wait->sends = call ? call->sends : op_named(check->op) == TSCOPE_OP_SEND;
}

static void mark_waiters(struct live_view *view, const struct flight_record *flight,
                         const struct check_wait *check, const struct live_wait *wait) {
  FOR_EACH(wait->waiting, wait->n_waiting, each) {
    struct live_rank *rank = &view->ranks[*each];
    const struct flight_call *call =
        rank->waits_in ? NULL : waits_call_of(flight, rank->rank, check);
    if (!rank->waits_in)
      rank->waits_in = call_name(&view->arena, call ? call->op : wait->op, -1, wait->group);
    if (!wait->n_absent || wait->since_s < rank->waits_s)
      continue;
    rank->waits_s = wait->since_s;
    rank->n_waits_for = wait->n_absent;
    rank->waits_for = wait->n_absent == 1 ? (i32)view->ranks[wait->absent[0]].rank : -1;
  }
}

static bool waits_for_nobody(const struct live_wait *wait) {
  return !wait->n_absent;
}

static double known_since(const struct live_wait *wait) {
  return isnan(wait->since_s) ? -1 : wait->since_s;
}

/* Those that wait for somebody first, the longest first. */
ORDER_BY(by_importance, struct live_wait,
         UP_OF(waits_for_nobody) DOWN_OF(known_since) BY_TEXT(group) UP(seq))

static void put_waits(struct live_view *view, const struct flight_record *flight,
                      const struct collective_check *check) {
  view->waits = arena_array(&view->arena, check->n_waits, sizeof(*view->waits));
  FOR_EACH(check->waits, check->n_waits, from) {
    struct live_wait *wait = &view->waits[view->n_waits++];
    *wait = (struct live_wait){.group = from->group, .op = from->op, .seq = (u32)from->seq};
    wait->absent = places_of(view, from->waits_for, from->n_waits_for, &wait->n_absent);
    wait->no_trace = from->n_waits_for - wait->n_absent;
    wait->waiting = places_of(view, from->ranks, from->n_ranks, &wait->n_waiting);
    read_call(view, flight, from, wait);
    read_message(view, flight, from, wait);
    mark_waiters(view, flight, from, wait);
  }
  SORT(view->waits, view->n_waits, by_importance);
}

/* The first of each communicator: all that follows there differs because of it. */
static void put_mismatches(struct live_view *view, const struct collective_check *check) {
  view->mismatches = arena_array(&view->arena, check->n_mismatches, sizeof(*view->mismatches));
  FOR_EACH(check->mismatches, check->n_mismatches, from) {
    const struct live_mismatch *last =
        view->n_mismatches ? &view->mismatches[view->n_mismatches - 1] : NULL;
    if (from->state > MATCH_DTYPE || (last && strcmp(last->group, from->group) == 0))
      continue;
    view->mismatches[view->n_mismatches++] =
        (struct live_mismatch){.state = match_state_words[from->state],
                               .seq = (u32)from->seq,
                               SAME(from, group, op, call, detail)};
  }
}

void live_find_waits(struct live_view *view) {
  struct collective_check check;
  if (view->n_ranks < 2 || !live_waits_matter(view))
    return;
  const struct flight_record *flight = trace_flight_record(view->model, &view->arena);
  if (flight) {
    verdict_of_flight_record(flight, &view->arena, &check);
    put_waits(view, flight, &check);
    put_mismatches(view, &check);
  }
}
