/* SPDX-License-Identifier: MIT
 *
 * Who waits for whom, as a list: each call that blocks ranks, and the ranks that it waits for.
 */
#include <stdlib.h>

#include "analyses/hang/waits.h"
#include "base/each.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "kernels/communication.h"

ORDER_BY(most_ranks_first, struct check_wait, DOWN(n_ranks) UP(seq) BY_TEXT(group_name))

const struct flight_call *waits_calls_of(const struct flight_record *flight, u32 global, u32 *n) {
  const struct flight_rank *rank =
      flight ? FIND_SORTED(flight->ranks, flight->n_ranks, &global, by_u32) : NULL;
  *n = rank ? rank->n_calls : 0;
  return rank ? &flight->calls[rank->first_call] : NULL;
}

static bool is_of_group(const struct flight_record *flight, const struct flight_call *call,
                        const struct check_wait *wait) {
  return strcmp(flight->groups[call->group].name, wait->group_name) == 0;
}

const struct flight_call *waits_call_of(const struct flight_record *flight, u32 global,
                                        const struct check_wait *wait) {
  u32 n;
  const struct flight_call *calls = waits_calls_of(flight, global, &n);
  u8 op = op_named(wait->op);
  const struct flight_call *own =
      FIND(calls, n, one,
           one->seq == (i64)wait->seq && is_of_group(flight, one, wait) &&
               one->message == op_is_message(op) &&
               (!one->message ||
                (one->state != FLIGHT_COMPLETED && one->sends == (op == TSCOPE_OP_SEND))));
  if (own || op != TSCOPE_OP_SEND)
    return own;
  return FIND(calls, n, one, /* the number is that of the send */
              one->message && !one->sends && one->state != FLIGHT_COMPLETED &&
                  is_of_group(flight, one, wait) && one->peer != INDEX_NONE &&
                  ranks_have(wait->ranks, wait->n_ranks, flight->ranks[one->peer].rank));
}

static void fill_wait(const struct wait_graph *g, u32 blocked, struct check_wait *wait) {
  const struct flight_record *flight = g->index->flight;
  const struct blocked_call *f = &g->blocked_calls.at[blocked];
  u32 node = g->ranks + blocked;
  const u32 *members_in = graph_members_in(g, blocked, &wait->n_ranks);
  wait->waits_for = arena_array(g->index->arena, f->n_waits_for, sizeof(u32));
  wait->n_waits_for = LIST_WHERE(wait->waits_for, g->first_edge[node], g->first_edge[node + 1], e,
                                 true, flight->ranks[g->edges.at[e].to].rank);
  const struct flight_group *group = &flight->groups[f->group];
  wait->group_name = group->name;
  wait->group = flight_group_label(group);
  wait->op = flight->calls[f->call].op;
  wait->seq = (double)f->seq;
  wait->ranks = verdict_global_ranks(g->index, members_in, wait->n_ranks);
}

void waits_list(const struct wait_graph *g, struct collective_check *check) {
  u32 n = g->blocked_calls.n;
  check->waits = arena_array(g->index->arena, n, sizeof(*check->waits));
  for (u32 blocked = 0; blocked < n; blocked++)
    fill_wait(g, blocked, &check->waits[blocked]);
  SORT(check->waits, n, most_ranks_first);
  check->n_waits = MIN(n, CHECK_WAITS_LISTED);
  check->calls_waiting = n;
}
