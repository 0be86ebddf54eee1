/* SPDX-License-Identifier: MIT
 *
 * The ends of the chains of waiting (waits.c), each with the reason why it must be examined first.
 */
#include <stdlib.h>
#include <string.h>

#include "analyses/hang/suspects.h"
#include "base/sorting.h"
#include "base/texts.h"

void name_suspect(struct suspect_search *j, u32 rank, enum suspect_reason reason,
                  struct suspect_facts facts) {
  if (j->named[rank])
    return;
  struct suspect suspect = {.rank = rank, .reason = reason, .facts = facts};
  VECTOR_PUSH(j->suspects, suspect);
  j->named[rank] = true;
}

/* A call, and who waits in it. */
static struct suspect_facts facts_of_call(const struct suspect_search *j, u32 blocked) {
  struct suspect_facts facts = {.call = verdict_call_name(j->index, call_of(j, blocked)),
                                .last_called = SEQ_UNKNOWN};
  u32 *ranks = graph_members_in(j->g, blocked, &facts.n_others);
  facts.others = verdict_rank_list(j->index, ranks, facts.n_others);
  return facts;
}

/* More ranks wait in it, or it was called earlier. */
static bool has_more_members(const struct suspect_search *j, u32 blocked, u32 than) {
  u32 a = j->g->blocked_calls.at[blocked].members_in, b = j->g->blocked_calls.at[than].members_in;
  return a != b ? a > b : call_of(j, blocked)->created < call_of(j, than)->created;
}

/* Of the calls that wait for each rank, the one with the most ranks in it. INDEX_NONE if none
 * waits. */
static u32 *find_waiting_calls(const struct suspect_search *j) {
  const struct wait_graph *g = j->g;
  u32 *waiting = arena_array(j->index->arena, g->ranks, sizeof(u32));
  FILL(waiting, g->ranks, INDEX_NONE);
  FOR_EACH(g->edges.at, g->edges.n, edge) {
    u32 from = edge->from, to = edge->to;
    if (from < g->ranks)
      continue;
    u32 blocked = from - g->ranks;
    if (waiting[to] == INDEX_NONE || has_more_members(j, blocked, waiting[to]))
      waiting[to] = blocked;
  }
  return waiting;
}

static void name_absent_rank(struct suspect_search *j, u32 rank, u32 blocked) {
  const struct flight_rank *absent = &j->index->flight->ranks[rank];
  const struct blocked_call *call = &j->g->blocked_calls.at[blocked];
  const struct member_progress *member = member_progress_of(j->index, call->group, rank);
  i64 called = member ? member->called : SEQ_UNKNOWN;
  struct suspect_facts facts = facts_of_call(j, blocked);
  facts.where = absent->where;
  if (!call_of(j, blocked)->message)
    facts.last_called = called;
  bool silent = absent->silent && called != SEQ_UNKNOWN && called >= call->seq;
  name_suspect(j, rank,
               silent          ? SUSPECT_SILENT
               : absent->ended ? SUSPECT_ENDED
                               : SUSPECT_ABSENT,
               facts);
}

static bool any_circle(const struct suspect_search *j) {
  return ANY(j->g->ranks_in_cycle, j->g->cycles, ranks, *ranks > 1);
}

/* What holds ranks up also without those that left no record; NULL. */
static const char *held_up_besides(struct suspect_search *j) {
  return any_circle(j)      ? "others also wait for each other in a circle"
         : orders_differ(j) ? "others also make their calls in different orders"
                            : NULL;
}

/* A rank without a record may be the one that crashed, or its record was not collected. It is a
 * suspect only if it is the one such rank, and no record leads to another. */
static void name_unrecorded_rank(struct suspect_search *j) {
  if (j->n_unrecorded == 1 && !held_up_besides(j))
    name_suspect(j, j->unrecorded[0], SUSPECT_NO_RECORD,
                 facts_of_call(j, j->waiting[j->unrecorded[0]]));
}

static void find_absent_ranks(struct suspect_search *j) {
  struct wait_graph *g = j->g;
  const u32 *waiting = j->waiting = find_waiting_calls(j);
  j->unrecorded = arena_array(j->index->arena, g->ranks, sizeof(u32));
  for (u32 r = 0; r < g->ranks; r++) {
    if (waiting[r] == INDEX_NONE || g->first_edge[r] != g->first_edge[r + 1])
      continue;
    if (j->index->flight->ranks[r].seen)
      name_absent_rank(j, r, waiting[r]);
    else
      j->unrecorded[j->n_unrecorded++] = r;
  }
  j->check->awaited_unrecorded = verdict_global_ranks(j->index, j->unrecorded, j->n_unrecorded);
  j->check->n_awaited_unrecorded = j->n_unrecorded;
}

/* In most collectives no member finishes before all have done their part. So the members that are
 * still in it are held up by something of their own; in one-way operations only if nothing else
 * holds them up. */
static bool is_left_behind(const struct suspect_search *j, u32 rank, u32 blocked) {
  const struct blocked_call *f = &j->g->blocked_calls.at[blocked];
  if (f->channel != INDEX_NONE || f->n_waits_for || !f->done ||
      f->members_in > f->done + f->presumed)
    return false;
  return verdict_waits_for_all(call_of(j, blocked)) || !graph_waits_for_others(j->g, rank);
}

static void find_ranks_left_behind(struct suspect_search *j) {
  struct wait_graph *g = j->g;
  for (u32 r = 0; r < g->ranks; r++) {
    u32 oldest = INDEX_NONE;
    for (u32 e = g->first_edge[r]; e < g->first_edge[r + 1]; e++) {
      u32 blocked = g->edges.at[e].to - g->ranks;
      if (is_left_behind(j, r, blocked) &&
          (oldest == INDEX_NONE || order_on(j, r, blocked) < order_on(j, r, oldest)))
        oldest = blocked;
    }
    if (oldest == INDEX_NONE)
      continue;
    const struct blocked_call *blocked = &g->blocked_calls.at[oldest];
    struct suspect_facts facts = {.call = verdict_call_name(j->index, call_of(j, oldest)),
                                  .some = blocked->done,
                                  .all = blocked->done + blocked->members_in,
                                  .where = j->index->flight->ranks[r].where};
    name_suspect(j, r, SUSPECT_OLDER_CALLS, facts);
  }
}

/* A call that the rank waits in, and others that wait for it in turn. */
static struct suspect_facts facts_of_cycle(const struct suspect_search *j, u32 rank) {
  const struct wait_graph *g = j->g;
  for (u32 e = g->first_edge[rank]; e < g->first_edge[rank + 1]; e++) {
    u32 node = g->edges.at[e].to;
    u32 n = g->first_edge[node + 1] - g->first_edge[node];
    if (n == 0)
      continue;
    u32 *ranks = arena_array(j->index->arena, n, sizeof(u32));
    LIST_WHERE(ranks, g->first_edge[node], g->first_edge[node + 1], i, true, g->edges.at[i].to);
    return (struct suspect_facts){.call = verdict_call_name(j->index, call_of(j, node - g->ranks)),
                                  .others = verdict_rank_list(j->index, ranks, n),
                                  .n_others = n};
  }
  return (struct suspect_facts){0};
}

/* Ranks of a cycle that are in a call. */
static u32 count_members_in(const struct wait_graph *g, u32 blocked, u32 cycle) {
  return NUMBER_OF(g->edges.at, g->edges.n, edge,
                   edge->to == g->ranks + blocked && g->cycle[edge->from] == cycle);
}

/* If most ranks of a cycle are in one call, the others are out of order; else those that came to
 * their call in another way than ever before; else all are. */
static void name_cycle_suspects(struct suspect_search *j, u32 cycle) {
  struct wait_graph *g = j->g;
  u32 most = 0, most_node = INDEX_NONE;
  bool tie = false;
  for (u32 f = 0; f < g->blocked_calls.n; f++) {
    u32 members_in = g->cycle[g->ranks + f] == cycle ? count_members_in(g, f, cycle) : 0;
    if (members_in == 0 || members_in < most)
      continue;
    tie = members_in == most;
    most = members_in;
    most_node = g->ranks + f;
  }
  bool decided = !tie && most_node != INDEX_NONE && 2 * most > g->ranks_in_cycle[cycle];
  if (!decided && name_unusual_of_cycle(j, cycle))
    return;
  for (u32 r = 0; r < g->ranks; r++) {
    bool with_most =
        ANY_NUMBER(g->first_edge[r], g->first_edge[r + 1], e, g->edges.at[e].to == most_node);
    if (g->cycle[r] == cycle && !(decided && with_most))
      name_suspect(j, r, decided ? SUSPECT_OTHER_ORDER : SUSPECT_IN_CIRCLE, facts_of_cycle(j, r));
  }
}

static void find_cycle_suspects(struct suspect_search *j) {
  for (u32 c = 0; c < j->g->cycles; c++)
    if (j->g->ranks_in_cycle[c] > 1 && !j->g->waits_outside[c])
      name_cycle_suspects(j, c);
}

static enum suspect_reason mismatch_reason(enum match_state state) {
  return state == MATCH_TYPE    ? SUSPECT_OTHER_CALL
         : state == MATCH_ROOT  ? SUSPECT_OTHER_ROOT
         : state == MATCH_DTYPE ? SUSPECT_OTHER_DTYPE
                                : SUSPECT_OTHER_SIZES;
}

static void name_mismatched_ranks(struct suspect_search *j, const struct mismatch *m) {
  struct suspect_facts facts = {.call = verdict_name_call(j->index, m->op, m->seq, m->group),
                                .detail = m->detail};
  FOR_EACH(m->ranks, m->n_ranks, rank) {
    struct suspect_facts swapped;
    if (find_swapped_calls(j, m, *rank, &swapped))
      name_suspect(j, *rank, SUSPECT_OTHER_ORDER, swapped);
    else
      name_suspect(j, *rank, mismatch_reason(m->state), facts);
  }
}

/* Once members are out of step, everything that follows is too: the first mismatch of a group
 * counts, if the group is stuck in one. Mismatches without a majority count only if nothing else
 * does. */
static void find_mismatched_ranks(struct suspect_search *j, bool decided) {
  const struct matching *m = j->matching;
  u32 group = INDEX_NONE, first = 0;
  bool done = true;
  for (u32 i = 0; i < m->mismatches.n; i++) {
    const struct mismatch *mismatch = &m->mismatches.at[i];
    if (mismatch->state > MATCH_DTYPE)
      continue;
    if (mismatch->group != group) {
      group = mismatch->group;
      first = i;
      done = false;
    }
    if (mismatch->pending && !done && m->mismatches.at[first].minority == decided) {
      name_mismatched_ranks(j, &m->mismatches.at[first]);
      done = true;
    }
  }
}

static void name_end_of_message(struct suspect_search *j, u32 blocked, u32 rank, u32 other) {
  const struct flight_call *call = call_of(j, blocked);
  bool sends = (call->rank == rank) == call->sends;
  struct suspect_facts facts = {
      .detail = say(j->index, "waits to %s rank %u in group %s, which waits to %s it",
                    sends ? "send to" : "receive from", global(j, other),
                    flight_group_label(&j->index->flight->groups[call->group]),
                    sends ? "receive from" : "send to"),
      .last_called = SEQ_UNKNOWN,
      .where = j->index->flight->ranks[rank].where};
  name_suspect(j, rank, SUSPECT_UNMET, facts);
}

/* Both wait, and for nobody else: it is not the message that the other waits for, or what carries
 * it does not move. A rank without a record may be what they really wait for. */
static void find_unmet_messages(struct suspect_search *j) {
  const struct wait_graph *g = j->g;
  if (ANY(j->index->flight->ranks, g->ranks, one, !one->seen))
    return;
  for (u32 f = 0; f < g->blocked_calls.n; f++) {
    const struct blocked_call *blocked = &g->blocked_calls.at[f];
    if (blocked->channel == INDEX_NONE || blocked->members_in < 2)
      continue;
    u32 n;
    const u32 *ends = graph_members_in(g, f, &n);
    if (graph_waits_for_others(g, ends[0]) || graph_waits_for_others(g, ends[1]))
      continue;
    for (u32 i = 0; i < 2; i++)
      name_end_of_message(j, f, ends[i], ends[!i]);
  }
}

static void count_waits(struct suspect_search *j) {
  const struct wait_graph *g = j->g;
  i64 end = j->index->flight->end, since = NS_UNKNOWN; /* when the oldest pending call was made */
  for (u32 r = 0; r < g->ranks; r++) {
    bool pending = g->first_edge[r] != g->first_edge[r + 1];
    j->check->pending_ranks += pending;
    j->check->victims += pending && !j->named[r];
  }
  for (u32 f = 0; f < g->blocked_calls.n; f++)
    since = least_known(call_of(j, f)->created, since);
  if (end != NS_UNKNOWN && since != NS_UNKNOWN)
    j->check->pending_s = ns_to_s(end - since);
}

static const char *unrecorded_cannot_tell(struct suspect_search *j) {
  const char *besides = held_up_besides(j);
  return say(j->index,
             "%s left no record and others wait for them: they ended without writing one, or it "
             "was not collected%s%s",
             verdict_rank_list(j->index, j->unrecorded, j->n_unrecorded), besides ? "; " : "",
             text_or_empty(besides));
}

static void find_suspects(struct suspect_search *j) {
  const suspect_list *suspects = j->suspects;
  find_absent_ranks(j);
  find_ranks_left_behind(j);
  find_cycle_suspects(j);
  find_mismatched_ranks(j, true);
  if (suspects->n == 0)
    find_mismatched_ranks(j, false);
  if (suspects->n == 0)
    find_unmet_messages(j);
  if (suspects->n == 0)
    find_order_suspects(j);
  if (suspects->n == 0)
    name_unrecorded_rank(j);
  count_waits(j);
  if (suspects->n || j->check->pending_ranks == 0)
    return;
  if (j->n_unrecorded) {
    j->check->cannot_tell = unrecorded_cannot_tell(j);
    return;
  }
  if (ANY(j->g->blocked_calls.at, j->g->blocked_calls.n, one,
          one->channel != INDEX_NONE && one->unknown)) {
    j->check->cannot_tell =
        "the record does not have the other side of some messages that have not finished";
    return;
  }
  find_root_suspects(j);
  j->check->victims -= suspects->n; /* that are in that call themselves */
}

ORDER_BY(by_rank, struct suspect, UP(rank))

void waits_find_suspects(struct call_index *index, const struct matching *matching,
                         const channel_list *channels, struct collective_check *check,
                         suspect_list *suspects) {
  struct wait_graph g;
  struct suspect_search j = {
      .g = &g, .index = index, .matching = matching, .check = check, .suspects = suspects};
  graph_make(&g, index, channels);
  j.named = arena_array(index->arena, g.ranks, sizeof(bool));
  find_suspects(&j);
  waits_list(&g, check);
  graph_release(&g);
  SORT(suspects->at, suspects->n, by_rank);
}
