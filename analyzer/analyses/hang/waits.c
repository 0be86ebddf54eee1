/* SPDX-License-Identifier: MIT
 *
 * Who waits for whom. A rank is held up by its oldest pending call of each group. A call is held up
 * by members that have not made it, or that are still in an older one of the same group. For a
 * victim, following this from rank to call to rank ends at somebody else. The ranks at which it
 * ends must be examined first:
 *
 *   a rank that is in no call at all               stopped outside communication
 *   a rank that called it, but gives no more       died, or was stopped
 *     signs of life and was not seen to finish it
 *   the only ones left in a call that others have  their device or link
 *     finished
 *   ranks that wait for each other in a circle     different order of calls
 *   the odd ones out of a call that is held up     different calls
 *
 * If it ends at a call in which all members are, no rank stands out, and the report says so.
 */
#include "analyses/hang/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- Calls that hold ranks --- */

static int by_front(const void *left, const void *right) {
  const struct front *a = left, *b = right;
  if (a->group != b->group)
    return a->group > b->group ? 1 : -1;
  return (a->seq > b->seq) - (a->seq < b->seq);
}

static int add_edge(struct graph *g, u32 from, u32 to) {
  return VECTOR_PUSH(&g->edges, (struct wait_edge){.from = from, .to = to}) ? 0 : -ENOMEM;
}

/* Each (group, sequence) at which any member is stuck, once. */
static int find_fronts(struct graph *g) {
  struct call_index *index = g->index;
  u32 n = index->first_place[index->ledger->n_groups];
  for (u32 p = 0; p < n; p++) {
    const struct member_progress *member = &index->members[p];
    struct front front = {.group = member->group,
                          .seq = member->front,
                          .call = member->front_call,
                          .channel = INDEX_NONE};
    if (member->front != SEQ_UNKNOWN && !VECTOR_PUSH(&g->fronts, front))
      return -ENOMEM;
  }
  if (g->fronts.n)
    qsort(g->fronts.at, g->fronts.n, sizeof(*g->fronts.at), by_front);
  u32 kept = 0;
  for (u32 i = 0; i < g->fronts.n; i++) {
    struct front *last = kept ? &g->fronts.at[kept - 1] : NULL;
    if (!last || by_front(last, &g->fronts.at[i]) != 0)
      g->fronts.at[kept++] = g->fronts.at[i];
    else if (index->ledger->calls[g->fronts.at[i].call].created <
             index->ledger->calls[last->call].created)
      last->call = g->fronts.at[i].call;
  }
  g->fronts.n = kept;
  return 0;
}

/* Edges of one collective: from the ranks that it holds up to it, and from it to the ranks that it
 * waits for. */
static int connect_front(struct graph *g, u32 number) {
  struct call_index *index = g->index;
  struct front *front = &g->fronts.at[number];
  u32 node = g->ranks + number;
  i64 created = index->ledger->calls[front->call].created;
  int error = 0;
  for (u32 p = index->first_place[front->group]; p < index->first_place[front->group + 1] && !error;
       p++) {
    const struct member_progress *member = &index->members[p];
    enum call_state state = call_entry_state(index, member, front->seq, created);
    bool behind = member->front != SEQ_UNKNOWN && member->front < front->seq;
    if (member->front == front->seq) {
      front->holders++;
      error = add_edge(g, member->rank, node);
    } else if (state == STANDS_ABSENT || state == STANDS_UNRECORDED || behind ||
               (state == STANDS_CALLED && index->ledger->ranks[member->rank].silent)) {
      front->waited++;
      front->absent += state == STANDS_ABSENT;
      error = add_edge(g, node, member->rank);
    } else {
      front->done += state == STANDS_DONE;
      front->unknown += state == STANDS_UNKNOWN;
    }
  }
  return error;
}

static int connect_channel(struct graph *g, const struct channel *channel, u32 index) {
  u32 call = channel->send != INDEX_NONE ? channel->send : channel->recv;
  struct front front = {.group = channel->group,
                        .seq = g->index->ledger->calls[call].seq,
                        .call = call,
                        .channel = index,
                        .holders = (channel->send != INDEX_NONE) + (channel->recv != INDEX_NONE),
                        .waited = channel->send_alone || channel->recv_alone};
  front.absent = front.waited;
  front.done = front.holders == 1 && !front.waited;
  if (!VECTOR_PUSH(&g->fronts, front))
    return -ENOMEM;
  u32 node = g->ranks + g->fronts.n - 1;
  int error = channel->send != INDEX_NONE ? add_edge(g, channel->from, node) : 0;
  if (!error && channel->recv != INDEX_NONE)
    error = add_edge(g, channel->to, node);
  if (!error && channel->send_alone)
    error = add_edge(g, node, channel->to);
  if (!error && channel->recv_alone)
    error = add_edge(g, node, channel->from);
  return error;
}

static int by_from(const void *left, const void *right) {
  const struct wait_edge *a = left, *b = right;
  if (a->from != b->from)
    return a->from > b->from ? 1 : -1;
  return (a->to > b->to) - (a->to < b->to);
}

static int connect(struct graph *g, const channel_list *channels) {
  int error = find_fronts(g);
  u32 collectives = g->fronts.n;
  for (u32 i = 0; i < collectives && !error; i++)
    error = connect_front(g, i);
  for (u32 i = 0; i < channels->n && !error; i++)
    error = connect_channel(g, &channels->at[i], i);
  if (error)
    return error;
  if (g->edges.n)
    qsort(g->edges.at, g->edges.n, sizeof(*g->edges.at), by_from);
  g->nodes = g->ranks + g->fronts.n;
  g->first_edge = arena_array(g->index->arena, g->nodes + 1u, sizeof(u32));
  if (!g->first_edge)
    return -ENOMEM;
  u32 e = 0;
  for (u32 node = 0; node <= g->nodes; node++) {
    while (e < g->edges.n && g->edges.at[e].from < node)
      e++;
    g->first_edge[node] = e;
  }
  return 0;
}

/* --- Circles: strongly connected components, by Tarjan's walk without recursion --- */

struct walk {
  u32 *number, *low, *next_edge, *stack, *way;
  bool *on_stack;
  u32 n_stack, n_way, counter;
};

static void enter(struct graph *g, struct walk *w, u32 node) {
  w->number[node] = w->low[node] = ++w->counter;
  w->next_edge[node] = g->first_edge[node];
  w->stack[w->n_stack++] = node;
  w->on_stack[node] = true;
  w->way[w->n_way++] = node;
}

static void leave(struct graph *g, struct walk *w) {
  u32 node = w->way[--w->n_way];
  if (w->n_way && w->low[node] < w->low[w->way[w->n_way - 1]])
    w->low[w->way[w->n_way - 1]] = w->low[node];
  if (w->low[node] != w->number[node])
    return;
  u32 member;
  do {
    member = w->stack[--w->n_stack];
    w->on_stack[member] = false;
    g->circle[member] = g->circles;
  } while (member != node);
  g->circles++;
}

static void walk_from(struct graph *g, struct walk *w, u32 start) {
  enter(g, w, start);
  while (w->n_way) {
    u32 node = w->way[w->n_way - 1];
    if (w->next_edge[node] == g->first_edge[node + 1]) {
      leave(g, w);
      continue;
    }
    u32 to = g->edges.at[w->next_edge[node]++].to;
    if (!w->number[to])
      enter(g, w, to);
    else if (w->on_stack[to] && w->number[to] < w->low[node])
      w->low[node] = w->number[to];
  }
}

/* Numbers the circle of each node, which for most nodes is the node alone, and finds circles that
 * wait for nothing outside. */
static int find_circles(struct graph *g) {
  struct arena *arena = g->index->arena;
  u32 n = g->nodes + 1u;
  struct walk w = {.number = arena_array(arena, n, sizeof(u32)),
                   .low = arena_array(arena, n, sizeof(u32)),
                   .next_edge = arena_array(arena, n, sizeof(u32)),
                   .stack = arena_array(arena, n, sizeof(u32)),
                   .way = arena_array(arena, n, sizeof(u32)),
                   .on_stack = arena_array(arena, n, sizeof(bool))};
  g->circle = arena_array(arena, n, sizeof(u32));
  if (!w.number || !w.low || !w.next_edge || !w.stack || !w.way || !w.on_stack || !g->circle)
    return -ENOMEM;
  for (u32 node = 0; node < g->nodes; node++)
    if (!w.number[node])
      walk_from(g, &w, node);
  g->ranks_in = arena_array(arena, g->circles + 1u, sizeof(u32));
  g->leads_on = arena_array(arena, g->circles + 1u, sizeof(bool));
  if (!g->ranks_in || !g->leads_on)
    return -ENOMEM;
  for (u32 node = 0; node < g->ranks; node++)
    g->ranks_in[g->circle[node]]++;
  for (u32 e = 0; e < g->edges.n; e++) {
    u32 from = g->circle[g->edges.at[e].from], to = g->circle[g->edges.at[e].to];
    g->leads_on[from] |= from != to;
  }
  return 0;
}

int graph_make(struct graph *g, struct call_index *index, const channel_list *channels) {
  *g = (struct graph){.index = index, .ranks = index->ledger->n_ranks};
  int error = connect(g, channels);
  if (!error)
    error = find_circles(g);
  if (error)
    return error;
  g->waited = arena_array(index->arena, g->ranks + 1u, sizeof(u32));
  if (!g->waited)
    return -ENOMEM;
  for (u32 e = 0; e < g->edges.n; e++)
    if (g->edges.at[e].to < g->ranks)
      g->waited[g->edges.at[e].to]++;
  return 0;
}

void graph_release(struct graph *g) {
  free(g->edges.at);
  free(g->fronts.at);
}

bool graph_waits_for_others(const struct graph *g, u32 rank) {
  for (u32 e = g->first_edge[rank]; e < g->first_edge[rank + 1]; e++)
    if (g->fronts.at[g->edges.at[e].to - g->ranks].waited)
      return true;
  return false;
}

u32 *graph_holders(const struct graph *g, u32 front, u32 *n) {
  u32 *ranks = arena_array(g->index->arena, g->fronts.at[front].holders + 1u, sizeof(u32));
  *n = 0;
  for (u32 e = 0; ranks && e < g->edges.n; e++)
    if (g->edges.at[e].to == g->ranks + front)
      ranks[(*n)++] = g->edges.at[e].from;
  return ranks;
}
