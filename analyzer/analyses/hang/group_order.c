/* SPDX-License-Identifier: MIT
 *
 * Calls that all their members have made and that do not finish. They are examined only if the
 * waits between ranks lead to nobody.
 */
#include <stdlib.h>

#include "analyses/hang/suspects.h"
#include "base/sorting.h"

struct call_order {
  u32 a, b; /* blocked calls; a < b */
  bool a_first;
  u32 rank;
};

ORDER_BY(by_pair, struct call_order, UP(a) UP(b) UP(a_first) UP(rank))

/* As far as records show it, if any members have none. */
static bool recorded_members_in(const struct blocked_call *blocked) {
  return blocked->channel == INDEX_NONE && blocked->n_waits_for == blocked->unrecorded &&
         !blocked->done;
}

static bool all_members_in(const struct blocked_call *blocked) {
  return recorded_members_in(blocked) && !blocked->unrecorded;
}

typedef VECTOR(struct call_order) order_list;

/* Calls that follow each other in the order of one rank, among those in which all members are. */
static void list_orders(const struct suspect_search *j, u32 rank, bool recorded, order_list *out) {
  const struct wait_graph *g = j->g;
  u32 last = INDEX_NONE;
  u64 reached = 0;
  for (bool more = true; more;) {
    u32 next = INDEX_NONE;
    for (u32 e = g->first_edge[rank]; e < g->first_edge[rank + 1]; e++) {
      u32 blocked = g->edges.at[e].to - g->ranks;
      const struct blocked_call *call = &g->blocked_calls.at[blocked];
      if (recorded ? !recorded_members_in(call) : !all_members_in(call))
        continue;
      u64 order = order_on(j, rank, blocked);
      bool later = last == INDEX_NONE || order > reached;
      if (later && (next == INDEX_NONE || order < order_on(j, rank, next)))
        next = blocked;
    }
    more = next != INDEX_NONE;
    if (more && last != INDEX_NONE) {
      struct call_order pair = {
          .a = MIN(last, next), .b = MAX(next, last), .a_first = last < next, .rank = rank};
      VECTOR_PUSH(out, pair);
    }
    last = next;
    reached = more ? order_on(j, rank, next) : 0;
  }
}

/* The ranks that made both calls of a pair: first those that made b first, then those that made a
 * first. */
static void name_out_of_order_ranks(struct suspect_search *j, const struct call_order *pairs,
                                    u32 b_first, u32 n) {
  u32 a_first = n - b_first;
  char *a = verdict_call_name(j->index, call_of(j, pairs->a));
  char *b = verdict_call_name(j->index, call_of(j, pairs->b));
  FOR_EACH(pairs, n, item) {
    bool a_before = item->a_first, odd = a_before ? a_first <= b_first : b_first <= a_first;
    struct suspect_facts facts = {.call = a_before ? a : b,
                                  .before = a_before ? b : a,
                                  .some = a_before ? a_first : b_first,
                                  .all = n};
    if (odd)
      name_suspect(j, item->rank, SUSPECT_OTHER_ORDER, facts);
  }
}

static order_list orders_of_all(struct suspect_search *j, bool recorded) {
  order_list all = {0};
  for (u32 r = 0; r < j->g->ranks; r++)
    list_orders(j, r, recorded, &all);
  SORT(all.at, all.n, by_pair);
  return all;
}

/* Two calls that some ranks make in this order, and others the other way round: from *at on the
 * next such pair, and how many ranks make both; 0 if there is none. */
static u32 next_disputed(const order_list *all, u32 *at, u32 *b_first) {
  for (u32 n; *at < all->n; *at += n) {
    n = ROW_OF_EQUALS(&all->at[*at], all->n - *at, first, one,
                      one->a == first->a && one->b == first->b);
    *b_first = NUMBER_OF(&all->at[*at], n, one, !one->a_first);
    if (*b_first && *b_first < n)
      return n;
  }
  return 0;
}

void find_order_suspects(struct suspect_search *j) {
  SCOPED order_list all = orders_of_all(j, false);
  for (u32 at = 0, n, b_first; (n = next_disputed(&all, &at, &b_first)); at += n)
    name_out_of_order_ranks(j, &all.at[at], b_first, n);
}

bool orders_differ(struct suspect_search *j) {
  SCOPED order_list all = orders_of_all(j, true);
  u32 at = 0, b_first;
  return next_disputed(&all, &at, &b_first) != 0;
}

/* A call that all members have made, and before which no member has an older such call: here the
 * waiting begins. INDEX_NONE if there is none. */
static u32 find_root(const struct suspect_search *j) {
  const struct wait_graph *g = j->g;
  u32 best = INDEX_NONE;
  for (u32 f = 0; f < g->blocked_calls.n; f++) {
    if (!all_members_in(&g->blocked_calls.at[f]))
      continue;
    u32 n, *members_in = graph_members_in(g, f, &n);
    bool first = members_in != NULL;
    for (u32 i = 0; i < n && first; i++)
      for (u32 e = g->first_edge[members_in[i]]; e < g->first_edge[members_in[i] + 1]; e++) {
        u32 other = g->edges.at[e].to - g->ranks;
        if (other != f && g->blocked_calls.at[other].channel == INDEX_NONE &&
            order_on(j, members_in[i], other) < order_on(j, members_in[i], f))
          first = false;
      }
    if (first && (best == INDEX_NONE ||
                  g->blocked_calls.at[f].members_in > g->blocked_calls.at[best].members_in))
      best = f;
  }
  return best;
}

/* Members of a call that all have made, for which NCCL reports an error of its communicator. If it
 * does so on most of them, this singles out nobody. */
static void name_ranks_with_nccl_error(struct suspect_search *j, const u32 *members_in, u32 n,
                                       u32 group, char *call) {
  const struct flight_record *flight = j->index->flight;
  u32 errors = NUMBER_OF(members_in, n, one, nccl_error_of(flight, group, *one) != 0);
  for (u32 i = 0; i < n && 2 * errors <= n; i++) {
    if (nccl_error_of(flight, group, members_in[i]))
      name_suspect(j, members_in[i], SUSPECT_NCCL_ERROR,
                   (struct suspect_facts){.call = call, .all = n});
  }
}

static bool has_started(const struct call_index *index, u32 group, u32 rank) {
  u32 call = member_progress_of(index, group, rank)->oldest_pending_call;
  return index->flight->calls[call].state == FLIGHT_STARTED;
}

void find_root_suspects(struct suspect_search *j) {
  u32 root = find_root(j);
  if (root == INDEX_NONE) {
    j->check->cannot_tell = "none of the ranks that wait differs from the others";
    return;
  }
  u32 n, *members_in = graph_members_in(j->g, root, &n);
  char *name = verdict_call_name(j->index, call_of(j, root));
  u32 group = j->g->blocked_calls.at[root].group;
  u32 started = NUMBER_OF(members_in, n, one, has_started(j->index, group, *one));
  name_ranks_with_nccl_error(j, members_in, n, group, name);
  bool by_nccl = j->suspects->n != 0;
  for (u32 i = 0; i < n && !by_nccl && started < n && 2 * started >= n; i++)
    if (!has_started(j->index, group, members_in[i]))
      name_suspect(j, members_in[i], SUSPECT_NOT_BEGUN,
                   (struct suspect_facts){.call = name, .some = started, .all = n});
  if (j->suspects->n == 0)
    j->check->cannot_tell =
        say(j->index,
            "all %u members%s are in %s and nothing comes before it; the record does not "
            "show which of them, or which link between them, delays it",
            n, j->g->blocked_calls.at[root].unknown ? " with a record of it" : "", name);
}
