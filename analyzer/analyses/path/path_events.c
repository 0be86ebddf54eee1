/* SPDX-License-Identifier: MIT
 *
 * The events of a sample in an order in which each comes after all that it waits for, with what was
 * recorded of each: replays read one after the other what lies in the graph at random places.
 */
#include "analyses/path/path_events.h"

#include <stdlib.h>

#include "base/vector.h"

static bool ends_apart(const struct sample_graph *g, u32 n) {
  const struct node *node = &g->nodes[n];
  return joins_others(g, n) || (node->kind == NODE_BLOCKED && node->first_dep < node[1].first_dep);
}

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
    *skip = node->first;
    return node->first ? 0 : end_event(g, n - 1);
  }
  if (node->kind == NODE_BLOCKED)
    return INDEX_NONE;
  if (k == 1) {
    *skip = node->launch == INDEX_NONE;
    return node->launch;
  }
  return k - 2 < n_deps ? end_event(g, g->deps[node->first_dep + k - 2]) : INDEX_NONE;
}

struct frame {
  u32 event, k;
};

/* The start of node n is event n. Its end is event n too, unless other events decide it: then it is
 * V + n. Join m is 2V + m. */
struct order {
  const struct sample_graph *g;
  u32 *events, n;
  u64 contradictions;
};

typedef VECTOR(struct frame) frame_stack;

static void push(frame_stack *stack, u8 *state, u32 event) {
  VECTOR_PUSH(stack, ((struct frame){event, 0}));
  state[event] = 1;
}

/* Depth first, without recursion: an event enters the order after all its predecessors. `state` of
 * each event: 0 not seen, 1 on the stack, 2 in order. */
static void put_in_order(struct order *o, frame_stack *stack, u8 *state, u32 root) {
  if (state[root])
    return;
  push(stack, state, root);
  while (stack->n) {
    struct frame *top = &stack->at[stack->n - 1];
    bool skip;
    u32 before = predecessor(o->g, top->event, top->k++, &skip);
    if (skip)
      continue;
    if (before == INDEX_NONE) {
      state[top->event] = 2;
      o->events[o->n++] = top->event;
      stack->n--;
    } else if (state[before] == 0) {
      push(stack, state, before);
    } else if (state[before] == 1) {
      o->contradictions++;
    }
  }
}

static void order_events(struct order *o) {
  frame_stack stack = {0};
  size_t events = size_sum(2 * (size_t)o->g->n, o->g->n_joins);
  u8 *state = memory_zeroed(size_sum(events, 1), 1);
  o->events = memory_array(size_sum(events, 1), sizeof(u32));
  for (u32 n = 0; n < o->g->n; n++) {
    put_in_order(o, &stack, state, n);
    if (ends_apart(o->g, n))
      put_in_order(o, &stack, state, o->g->n + n);
  }
  free(stack.at);
  free(state);
}

static void wait_for_others(const struct node *node, struct event *e) {
  e->first_dep = node->first_dep;
  e->n_deps = node[1].first_dep - node->first_dep;
}

static i64 latest_of_others(const struct sample_graph *g, const struct event *e) {
  i64 latest = INT64_MIN;
  for (u32 i = 0; i < e->n_deps; i++)
    latest = later(latest, g->nodes[g->deps[e->first_dep + i]].end);
  return latest;
}

static i64 time_after(i64 time, i64 before) {
  return time > before ? time - before : 0;
}

static void describe_device_start(const struct sample_graph *g, const struct node *node,
                                  struct event *e) {
  bool launch_bound = false;
  wait_for_others(node, e);
  i64 was = latest_of_others(g, e);
  if (e->after_previous)
    was = later(was, node[-1].end);
  if (node->launch != INDEX_NONE) {
    const struct node *launch = &g->nodes[node->launch];
    i64 called = launch->end < node->start ? launch->end : node->start;
    e->launch = node->launch;
    e->call = time_after(called, launch->start);
    launch_bound = called > was;
    was = later(was, called);
  }
  e->rule = was == INT64_MIN ? EVENT_FIXED : EVENT_AFTER;
  e->delay = was == INT64_MIN ? node->start : time_after(node->start, was);
  e->latency =
      launch_bound && e->delay <= LONGEST_LATENCY; /* else it waited for something unknown */
}

/* After a thread's own work; or, if it waited for another thread, the same time after both. */
static void describe_host_start(const struct sample_graph *g, u32 n, struct event *e) {
  const struct node *node = &g->nodes[n];
  if (node->kind == NODE_BLOCKED || node->first_dep == node[1].first_dep) {
    e->rule = EVENT_AFTER_GAP;
    e->delay = gap_ns(g, n);
    return;
  }
  wait_for_others(node, e);
  i64 was = latest_of_others(g, e);
  e->rule = EVENT_AFTER;
  e->delay = time_after(node->start, e->after_previous ? later(was, node[-1].end) : was);
}

static void describe_wait_end(const struct sample_graph *g, const struct node *node,
                              struct event *e) {
  wait_for_others(node, e);
  i64 was = latest_of_others(g, e);
  e->rule = EVENT_WAIT_ENDS;
  e->ended_before = was < node->start;
  e->delay = e->ended_before ? 0 : time_after(node->end, was);
}

static void describe_collective_end(const struct sample_graph *g, u32 n, struct event *e) {
  u32 last;
  e->rule = EVENT_COLLECTIVE_ENDS;
  e->first_dep = g->first_joined[n];
  e->n_deps = g->first_joined[n + 1] - g->first_joined[n];
  e->length = g->nodes[n].end - join_start(g, n, &last);
}

static void describe_event(const struct sample_graph *g, u32 event, struct event *e) {
  if (event >= 2 * g->n) {
    *e = (struct event){.node = event - 2 * g->n, .rule = EVENT_ARRIVED};
    return;
  }
  u32 n = event < g->n ? event : event - g->n;
  const struct node *node = &g->nodes[n];
  *e = (struct event){.node = n,
                      .launch = INDEX_NONE,
                      .key = node->key,
                      .rank = node->rank,
                      .length = node->end - node->start,
                      .kind = node->kind,
                      .phase = node->phase,
                      .on_gpu = g->slices[node->rank].on_gpu,
                      .after_previous = !node->first,
                      .ends_alone = !ends_apart(g, n),
                      .awaited_batch = node->batch == BATCH_AWAITED};
  if (event >= g->n && node->kind == NODE_COLLECTIVE)
    describe_collective_end(g, n, e);
  else if (event >= g->n)
    describe_wait_end(g, node, e);
  else if (NODE_ON_DEVICE(node->kind))
    describe_device_start(g, node, e);
  else
    describe_host_start(g, n, e);
}

u64 events_new(const struct sample_graph *g, struct event **events, u32 *n) {
  struct order order = {.g = g};
  order_events(&order);
  *n = order.n;
  *events = memory_array(size_sum(order.n, 1), sizeof(**events));
  for (u32 i = 0; i < order.n; i++)
    describe_event(g, order.events[i], &(*events)[i]);
  free(order.events);
  return order.contradictions;
}
