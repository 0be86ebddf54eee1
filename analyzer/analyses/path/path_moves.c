/* SPDX-License-Identifier: MIT
 *
 * The events of a sample in an order in which they can be replayed, and what the recorded run says
 * of each: what it waited for, and for how long.
 */
#include "analyses/path/path_run.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/statistics.h"

/* ns: a GPU takes 1 to 3 us from the end of work to the begin of the next. */
#define BEHIND_WORK 3000

static u32 end_event(const struct sample_graph *g, u32 n) {
  return ends_apart(g, n) ? g->n + n : n;
}

/* The k-th event that a collective's end waits for. For each of its joins this is the join itself,
 * or, if not all members must have started, every member. */
static u32 member_event(const struct sample_graph *g, u32 n, u32 k, bool *skip) {
  for (u32 i = g->first_joined[n]; i < g->first_joined[n + 1]; i++) {
    const struct collective_join *join = &g->joins[g->joined[i]];
    u32 events = join->barrier ? 1 : join->n;
    if (k >= events) {
      k -= events;
      continue;
    }
    if (join->barrier)
      return 2 * g->n + g->joined[i];
    u32 member = g->members[join->first + k];
    *skip = g->nodes[member].start > g->nodes[n].end;
    return member;
  }
  return INDEX_NONE;
}

/* The k-th event that must come before `event`; INDEX_NONE if there are no more. `*skip` is set for
 * a k that has none. */
static u32 predecessor(const struct sample_graph *g, u32 event, u32 k, bool *skip) {
  *skip = false;
  if (event >= 2 * g->n) {
    const struct collective_join *join = &g->joins[event - 2 * g->n];
    return k < join->n ? g->members[join->first + k] : INDEX_NONE;
  }
  u32 n = event < g->n ? event : event - g->n;
  const struct node *node = &g->nodes[n];
  u32 n_deps = node[1].first_dep - node->first_dep;
  if (event >= g->n) { /* the end of a node that other events decide */
    if (k == 0)
      return n;
    if (node->kind == NODE_BLOCKED)
      return k <= n_deps ? end_event(g, g->deps[node->first_dep + k - 1]) : INDEX_NONE;
    return member_event(g, n, k - 1, skip);
  }
  if (k == 0) {
    *skip = node->alone;
    return node->alone ? 0 : end_event(g, n - 1);
  }
  if (node->kind == NODE_BLOCKED)
    return INDEX_NONE;
  if (k == 1) {
    *skip = node->launch == INDEX_NONE;
    return node->launch;
  }
  return k - 2 < n_deps ? end_event(g, g->deps[node->first_dep + k - 2]) : INDEX_NONE;
}

/* Those on the stack are not in order yet, so both fit into the room for all moves: the order from
 * its begin on, the stack down from its end. `state` of each event: 0 not seen, 1 on the stack, 2
 * in order. The `call` of one on the stack is the predecessor that is looked at next. */
struct ordering {
  struct replay *r;
  struct move *top, *bottom;
  u8 *state;
};

static void push(struct ordering *o, u32 event) {
  *--o->top = (struct move){.event = event};
  o->state[event] = 1;
}

/* Depth first, without recursion: an event enters the order after all its predecessors. */
static void put_in_order(struct ordering *o, u32 root) {
  struct replay *r = o->r;
  if (o->state[root])
    return;
  push(o, root);
  while (o->top < o->bottom) {
    bool skip;
    u32 event = o->top->event, before = predecessor(r->g, event, o->top->call++, &skip);
    if (skip)
      continue;
    if (before == INDEX_NONE) {
      o->state[event] = 2;
      o->top++;
      r->moves[r->n_moves++] = (struct move){.event = event};
    } else if (o->state[before] == 0) {
      push(o, before);
    } else if (o->state[before] == 1) {
      r->contradictions++;
    }
  }
}

static void order_events(struct replay *r) {
  SCOPED u8 *state = memory_zeroed(size_sum(2 * (size_t)r->g->n, r->g->n_joins), 1);
  size_t events = size_sum(r->g->n, r->g->n_joins);
  for (u32 n = 0; n < r->g->n; n++)
    events += ends_apart(r->g, n);
  r->moves = memory_array(size_sum(events, MOVES_AHEAD), sizeof(*r->moves));
  struct ordering o = {r, r->moves + events, r->moves + events, state};
  for (u32 n = 0; n < r->g->n; n++) {
    put_in_order(&o, n);
    if (ends_apart(r->g, n))
      put_in_order(&o, r->g->n + n);
  }
  memset(r->moves + r->n_moves, 0, MOVES_AHEAD * sizeof(*r->moves));
}

i64 latest_end(const struct sample_graph *g, u32 n) {
  const struct node *node = &g->nodes[n];
  i64 was = node->alone || node->kind == NODE_BLOCKED ? INT64_MIN : node[-1].end;
  for (u32 i = node->first_dep; i < node[1].first_dep; i++)
    was = MAX(was, g->nodes[g->deps[i]].end);
  return was;
}

static bool is_last_on_device(const struct sample_graph *g, u32 n) {
  const struct node *node = &g->nodes[n];
  return NODE_ON_DEVICE(node->kind) && !node->cut &&
         (node[1].alone || node[1].cut || n + 1 == g->n);
}

static void plan_device_start(const struct sample_graph *g, u32 n, struct move *move) {
  const struct node *node = &g->nodes[n];
  i64 was = latest_end(g, n);
  bool launch_bound = false;
  move->launched = node->launch != INDEX_NONE;
  move->gap = HELD;
  if (move->launched) {
    i64 called = launched_at(g, node);
    i64 call = called_after(g, node);
    move->call = call < LONG_CALL ? (u32)call : LONG_CALL;
    launch_bound = called > was;
    was = MAX(was, called);
  }
  if (was == INT64_MIN) {
    move->wait = node->start;
    return;
  }
  move->wait = MAX(node->start - was, 0);
  if (launch_bound && move->wait <= LONGEST_LATENCY) /* else it waited for something unknown */
    move->gap = HELD_BY_LATENCY;
  else if (node->late)
    move->gap = HELD_BY_GPU_AWAY;
}

static void count_launched(struct replay *r, const struct node *node) {
  i64 took = r->g->slices[node->rank].on_gpu ? node->end - node->start : 0;
  r->on_gpus += took;
  r->not_launched += node->launch == INDEX_NONE && !node->queued ? took : 0;
}

static void plan_start(struct replay *r, u32 n, struct move *move) {
  const struct sample_graph *g = r->g;
  const struct node *node = &g->nodes[n];
  move->alone = node->alone;
  move->waits = follows_other_thread(node);
  move->plain = !node->is_batch && !ends_apart(g, n);
  move->last = move->plain && is_last_on_device(g, n);
  if (NODE_ON_DEVICE(node->kind)) {
    count_launched(r, node);
    plan_device_start(g, n, move);
    return;
  }
  move->wait = gap_ns(g, n);
  move->gap = phase_of_gap(node) % HOST_KEYS;
}

static void plan_collective_end(const struct sample_graph *g, u32 n, struct move *move) {
  u32 last;
  move->wait = g->nodes[n].end - join_start(g, n, &last);
  move->last = is_last_on_device(g, n);
}

/* What the recorded run says of each event, once for all replays. */
static void plan_moves(struct replay *r) {
  const struct sample_graph *g = r->g;
  FOR_EACH_CHANGED(r->moves, r->n_moves, one) {
    struct move *move = one;
    u32 event = move->event;
    ask_for_node(g, move[MOVES_AHEAD].event);
    *move = (struct move){.event = event};
    if (event < g->n)
      plan_start(r, event, move);
    else if (event < 2 * g->n && g->nodes[event - g->n].kind == NODE_COLLECTIVE)
      plan_collective_end(g, event - g->n, move);
  }
}

/* How long after other work what was launched long before begins: the median of some. */
static i64 typical_wait_behind_work(const struct replay *r) {
  double waits[LATENCIES_LOOKED_AT];
  u32 n = 0, each = r->n_moves / LATENCIES_LOOKED_AT + 1;
  for (u32 i = 0; i < r->n_moves && n < LATENCIES_LOOKED_AT; i++) {
    const struct move *move = &r->moves[i];
    if (!move->launched || move->gap != HELD || move->wait > BEHIND_WORK)
      continue;
    waits[n++] = (double)move->wait;
    i += each - 1;
  }
  return n ? (i64)median_of(waits, n) : BEHIND_WORK;
}

/* What begins later behind other work than work does, and so long after its launch as typical, was
 * still on its way when that work ended. */
static void find_launched_late(const struct replay *r) {
  const struct sample_graph *g = r->g;
  SCOPED i64 *latency = memory_array(size_sum(g->n_ranks, 1), sizeof(*latency));
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    latency[rank] = typical_latency(g->nodes, g->base[rank], g->base[rank + 1]);
  FOR_EACH_CHANGED(r->moves, r->n_moves, move) {
    if (!move->launched || move->gap != HELD || move->wait <= BEHIND_WORK)
      continue;
    const struct node *node = &g->nodes[move->event];
    i64 took = node->start - launched_at(g, node);
    if (!may_be_latency(took, latency[node->rank]))
      continue;
    move->gap = HELD_BY_LATENCY;
    move->wait = took;
  }
}

void replay_plan(struct replay *r) {
  order_events(r);
  plan_moves(r);
  r->behind = typical_wait_behind_work(r);
  find_launched_late(r);
}
