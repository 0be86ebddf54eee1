/* SPDX-License-Identifier: MIT
 *
 * Who waits for whom. A rank is blocked by its oldest pending call of each group. A call is blocked
 * by members that have not made it, or that are still in an older one of the same group. For a
 * victim, following this from rank to call to rank ends at somebody else. The ranks at which it
 * ends must be examined first:
 *
 *   a rank that is in no call at all               stopped outside communication
 *   a rank that called it, but gives no more       died, or was stopped
 *     signs of life and was not seen to finish it
 *   the only ones left in a call that others have  their device or link
 *     finished
 *   ranks that wait for each other in a cycle      different order of calls
 *   the odd ones out of a call that is blocked     different calls
 *
 * If it ends at a call in which all members are, no rank stands out, and the report says so.
 */
#include "analyses/hang/waits.h"
#include "base/sorting.h"

#include <stdlib.h>

ORDER_BY(by_group_and_seq, struct blocked_call, UP(group) UP(seq))

static void add_edge(struct wait_graph *g, u32 from, u32 to) {
  VECTOR_PUSH(&g->edges, (struct wait_edge){.from = from, .to = to});
}

/* Each (group, sequence) at which any member is stuck, once. */
static void find_blocked_calls(struct wait_graph *g) {
  struct call_index *index = g->index;
  u32 n = index->first_place[index->flight->n_groups];
  FOR_EACH(index->members, n, member) {
    struct blocked_call blocked = {.group = member->group,
                                   .seq = member->oldest_pending,
                                   .call = member->oldest_pending_call,
                                   .channel = INDEX_NONE};
    if (member->oldest_pending != SEQ_UNKNOWN)
      VECTOR_PUSH(&g->blocked_calls, blocked);
  }
  const struct flight_call *calls = index->flight->calls;
  g->blocked_calls.n = SORT_AND_JOIN(
      g->blocked_calls.at, g->blocked_calls.n, by_group_and_seq, first, same,
      first->call =
          calls[same->call].created < calls[first->call].created ? same->call : first->call);
}

/* Whether some member has finished it and no member can before all have made it. Then also the
 * members without a record have. */
static bool all_have_made(const struct call_index *index, const struct blocked_call *blocked) {
  const struct flight_call *call = &index->flight->calls[blocked->call];
  const u32 *first = &index->first_place[blocked->group];
  return verdict_waits_for_all(call) &&
         ANY(&index->members[first[0]], first[1] - first[0], one,
             call_entry_state(index, one, blocked->seq, call->created) == CALL_DONE);
}

/* Edges of one collective: from the ranks that are in it to it, and from it to the ranks that it
 * waits for. */
static void connect_collective(struct wait_graph *g, u32 number) {
  struct call_index *index = g->index;
  struct blocked_call *blocked = &g->blocked_calls.at[number];
  u32 node = g->ranks + number;
  i64 created = index->flight->calls[blocked->call].created;
  bool all_made = all_have_made(index, blocked);
  for (u32 p = index->first_place[blocked->group]; p < index->first_place[blocked->group + 1];
       p++) {
    const struct member_progress *member = &index->members[p];
    enum call_state state = call_entry_state(index, member, blocked->seq, created);
    bool behind = member->oldest_pending != SEQ_UNKNOWN && member->oldest_pending < blocked->seq;
    if (member->oldest_pending == blocked->seq) {
      blocked->members_in++;
      add_edge(g, member->rank, node);
    } else if (state == CALL_UNRECORDED && all_made) {
      blocked->unknown++;
      blocked->presumed++;
    } else if (state == CALL_ABSENT || state == CALL_UNRECORDED || behind ||
               (state == CALL_MADE && index->flight->ranks[member->rank].silent)) {
      blocked->n_waits_for++;
      blocked->absent += state == CALL_ABSENT;
      blocked->unrecorded += state == CALL_UNRECORDED;
      add_edge(g, node, member->rank);
    } else {
      blocked->done += state == CALL_DONE;
      blocked->unknown += state == CALL_UNKNOWN;
    }
  }
}

static void connect_channel(struct wait_graph *g, const struct channel *channel, u32 index) {
  u32 call = channel->send != INDEX_NONE ? channel->send : channel->recv;
  struct blocked_call blocked = {.group = channel->group,
                                 .seq = g->index->flight->calls[call].seq,
                                 .call = call,
                                 .channel = index,
                                 .members_in =
                                     (channel->send != INDEX_NONE) + (channel->recv != INDEX_NONE),
                                 .n_waits_for = channel->send_alone || channel->recv_alone};
  bool known = channel->from != INDEX_NONE && channel->to != INDEX_NONE;
  blocked.absent = blocked.n_waits_for;
  blocked.done = known && blocked.members_in == 1 && !blocked.n_waits_for;
  blocked.unknown = !known;
  VECTOR_PUSH(&g->blocked_calls, blocked);
  u32 node = g->ranks + g->blocked_calls.n - 1;
  if (channel->send != INDEX_NONE)
    add_edge(g, channel->from, node);
  if (channel->recv != INDEX_NONE)
    add_edge(g, channel->to, node);
  if (channel->send_alone)
    add_edge(g, node, channel->to);
  if (channel->recv_alone)
    add_edge(g, node, channel->from);
}

/* In groups of so many members at most: each such message waits for all others. */
enum { MOST_SIDES = 64 };

/* Whether messages in a group that have not finished go one way only: no two of them meet. */
static bool go_one_way(const channel_list *channels, u32 group) {
  bool sends = ANY(channels->at, channels->n, one, one->group == group && one->send != INDEX_NONE),
       recvs = ANY(channels->at, channels->n, one, one->group == group && one->recv != INDEX_NONE);
  return sends != recvs;
}

/* Whoever the other side of a message is, it is a member of the group. If all members wait, and
 * none of them in a message that may be the other side, the message waits for one of those. */
static void connect_unknown_sides(struct wait_graph *g, const channel_list *channels) {
  const struct call_index *index = g->index;
  bool *waits = arena_array(index->arena, g->ranks, sizeof(*waits));
  FOR_EACH(g->edges.at, g->edges.n, edge)
    if (edge->from < g->ranks)
      waits[edge->from] = true;
  for (u32 f = 0; f < g->blocked_calls.n; f++) {
    struct blocked_call *blocked = &g->blocked_calls.at[f];
    u32 first = index->first_place[blocked->group],
        n = index->first_place[blocked->group + 1] - first;
    if (blocked->channel == INDEX_NONE || !blocked->unknown || n > MOST_SIDES ||
        !index->flight->groups[blocked->group].members_known ||
        !ALL(&index->members[first], n, one, waits[one->rank]) ||
        !go_one_way(channels, blocked->group))
      continue;
    for (u32 p = first; p < first + n; p++)
      if (index->members[p].rank != index->flight->calls[blocked->call].rank)
        add_edge(g, g->ranks + f, index->members[p].rank);
    blocked->n_waits_for = n - 1;
    blocked->unknown = 0;
  }
}

ORDER_BY(by_from, struct wait_edge, UP(from) UP(to))

static void connect(struct wait_graph *g, const channel_list *channels) {
  find_blocked_calls(g);
  u32 collectives = g->blocked_calls.n;
  for (u32 i = 0; i < collectives; i++)
    connect_collective(g, i);
  for (u32 i = 0; i < channels->n; i++)
    connect_channel(g, &channels->at[i], i);
  connect_unknown_sides(g, channels);
  SORT(g->edges.at, g->edges.n, by_from);
  g->nodes = g->ranks + g->blocked_calls.n;
  g->first_edge = arena_array(g->index->arena, g->nodes, sizeof(u32));
  u32 e = 0;
  for (u32 node = 0; node <= g->nodes; node++) {
    while (e < g->edges.n && g->edges.at[e].from < node)
      e++;
    g->first_edge[node] = e;
  }
}

/* Cycles: strongly connected components, by Tarjan's walk without recursion. */

struct cycle_search {
  u32 *number, *low, *next_edge, *stack, *path;
  bool *on_stack;
  u32 n_stack, n_path, counter;
};

static void visit_node(struct wait_graph *g, struct cycle_search *w, u32 node) {
  w->number[node] = w->low[node] = ++w->counter;
  w->next_edge[node] = g->first_edge[node];
  w->stack[w->n_stack++] = node;
  w->on_stack[node] = true;
  w->path[w->n_path++] = node;
}

static void finish_node(struct wait_graph *g, struct cycle_search *w) {
  u32 node = w->path[--w->n_path];
  if (w->n_path && w->low[node] < w->low[w->path[w->n_path - 1]])
    w->low[w->path[w->n_path - 1]] = w->low[node];
  if (w->low[node] != w->number[node])
    return;
  u32 member;
  do {
    member = w->stack[--w->n_stack];
    w->on_stack[member] = false;
    g->cycle[member] = g->cycles;
  } while (member != node);
  g->cycles++;
}

static void walk_from(struct wait_graph *g, struct cycle_search *w, u32 start) {
  visit_node(g, w, start);
  while (w->n_path) {
    u32 node = w->path[w->n_path - 1];
    if (w->next_edge[node] == g->first_edge[node + 1]) {
      finish_node(g, w);
      continue;
    }
    u32 to = g->edges.at[w->next_edge[node]++].to;
    if (!w->number[to])
      visit_node(g, w, to);
    else if (w->on_stack[to] && w->number[to] < w->low[node])
      w->low[node] = w->number[to];
  }
}

/* Numbers the cycle of each node, which for most nodes is the node alone, and finds cycles that
 * wait for nothing outside. */
static void find_cycles(struct wait_graph *g) {
  struct arena *arena = g->index->arena;
  u32 n = g->nodes + 1u;
  struct cycle_search w = {.number = arena_array(arena, n, sizeof(u32)),
                           .low = arena_array(arena, n, sizeof(u32)),
                           .next_edge = arena_array(arena, n, sizeof(u32)),
                           .stack = arena_array(arena, n, sizeof(u32)),
                           .path = arena_array(arena, n, sizeof(u32)),
                           .on_stack = arena_array(arena, n, sizeof(bool))};
  g->cycle = arena_array(arena, n, sizeof(u32));
  for (u32 node = 0; node < g->nodes; node++)
    if (!w.number[node])
      walk_from(g, &w, node);
  g->ranks_in_cycle = arena_array(arena, g->cycles, sizeof(u32));
  g->waits_outside = arena_array(arena, g->cycles, sizeof(bool));
  FOR_EACH(g->cycle, g->ranks, one)
    g->ranks_in_cycle[*one]++;
  FOR_EACH(g->edges.at, g->edges.n, edge)
    g->waits_outside[g->cycle[edge->from]] |= g->cycle[edge->from] != g->cycle[edge->to];
}

void graph_make(struct wait_graph *g, struct call_index *index, const channel_list *channels) {
  *g = (struct wait_graph){.index = index, .ranks = index->flight->n_ranks};
  connect(g, channels);
  find_cycles(g);
}

void graph_release(struct wait_graph *g) {
  FREE_EACH(g, edges.at, blocked_calls.at);
}

bool graph_waits_for_others(const struct wait_graph *g, u32 rank) {
  return ANY_NUMBER(g->first_edge[rank], g->first_edge[rank + 1], e,
                    g->blocked_calls.at[g->edges.at[e].to - g->ranks].n_waits_for);
}

u32 *graph_members_in(const struct wait_graph *g, u32 blocked, u32 *n) {
  u32 *ranks = arena_array(g->index->arena, g->blocked_calls.at[blocked].members_in, sizeof(u32));
  *n = LIST_WHERE(ranks, 0, g->edges.n, e, g->edges.at[e].to == g->ranks + blocked,
                  g->edges.at[e].from);
  return ranks;
}
