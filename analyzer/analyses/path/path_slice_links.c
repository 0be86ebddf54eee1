/* SPDX-License-Identifier: MIT
 *
 * What the nodes of a slice waited for.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_slice.h"
#include "base/sorting.h"

/* The chance that a thread is taken for one that another calls and waits for. */
#define CALLED_BY_CHANCE 0.01

static u32 position_of(const struct slice_builder *c, u32 span) {
  if (span >= c->low && span < c->high)
    return c->n_carried + span - c->low;
  const u32 *carried = FIND(c->carried, c->n_carried, one, *one == span);
  return carried ? (u32)(carried - c->carried) : INDEX_NONE;
}

static u32 node_of_span(const struct slice_builder *c, u32 span) {
  u32 position = span == INDEX_NONE ? INDEX_NONE : position_of(c, span);
  return position == INDEX_NONE ? INDEX_NONE : c->node_of[position];
}

static void link_launches(struct slice_builder *c, u32 n_spans) {
  for (u32 i = 0; i < n_spans; i++) {
    const struct span *span = &c->t->spans[span_at(c, i)];
    if (!SPAN_ON_DEVICE(span->kind) || span->start < c->slice->begin)
      continue;
    struct node *node = &c->slice->nodes[c->node_of[i]];
    node->launch = node->call = node_of_span(c, span->launch);
    node->queued = span->launch == INDEX_NONE ? lane_was_queued(&c->t->lanes[span->lane], span)
                                              : c->t->spans[span->launch].start < c->slice->begin;
    if (node->queued)
      node->call = span->launch;
  }
}

static u32 first_edge_to(const struct timeline *t, u32 span) {
  return FIRST_NOT(0, t->n_edges, i, t->edges[i].to < span);
}

/* Threads that wait for each other: nothing records it, but the backward pass on the GPU runs in
 * a thread of its own while the thread that called it waits. */

static bool has_host_nodes(const struct slice_builder *c, u32 lane) {
  return !c->t->lanes[lane].device && c->lanes[lane].next > c->lanes[lane].base;
}

/* The first node of a lane that starts at `time` or later. */
static u32 first_node_from(const struct slice_builder *c, u32 lane, i64 time) {
  return FIRST_NOT(c->lanes[lane].base, c->lanes[lane].next, i, c->slice->nodes[i].start < time);
}

/* If another thread made calls during the own time of a backward pass, the pass waited for it in
 * that time, and these calls are of the pass. */
static void wait_for_thread(struct slice_builder *c, u32 lane, u32 waiting) {
  struct node *node = &c->slice->nodes[waiting];
  u32 first = INDEX_NONE, last = INDEX_NONE;
  for (u32 other = 0; other < c->t->n_lanes; other++) {
    if (other == lane || !has_host_nodes(c, other))
      continue;
    u32 from = first_node_from(c, other, node->start), to = first_node_from(c, other, node->end);
    while (to > from && c->slice->nodes[to - 1].end > node->end)
      to--;
    if (to == from ||
        (last != INDEX_NONE && c->slice->nodes[last].end >= c->slice->nodes[to - 1].end))
      continue;
    first = from;
    last = to - 1;
  }
  if (last == INDEX_NONE)
    return;
  for (u32 i = first; i <= last; i++)
    if (!c->slice->nodes[i].phase)
      c->slice->nodes[i].phase = TSCOPE_PHASE_BACKWARD;
  node->kind = NODE_BLOCKED;
  c->thread_deps[c->n_thread_deps++] = (struct dep){waiting, last};
  if (!node->alone)
    c->thread_deps[c->n_thread_deps++] = (struct dep){first, waiting - 1};
}

/* Passes of a thread that did nothing but wait for each other thread's calls. A thread that another
 * one calls and waits for (autograd's, in most frameworks) works only while its caller does
 * nothing. If a thread did so n times, and the other does nothing for a share s of the time, the
 * chance of that is s^n. */
struct passes {
  u32 caller, n;
  double idle; /* share of the time in which the caller does nothing */
};

/* One pass of a thread: from its node `first` until the caller goes on. Returns the node after it;
 * 0 if the caller was not idle all the time. */
static u32 end_of_pass(const struct slice_builder *c, u32 lane, u32 first, u32 caller, u32 *next) {
  const struct node *nodes = c->slice->nodes;
  u32 end = first + 1;
  *next = first_node_from(c, caller, nodes[first].start);
  i64 until = *next < c->lanes[caller].next ? nodes[*next].start : INT64_MAX;
  if (*next > c->lanes[caller].base && nodes[*next - 1].end > nodes[first].start)
    return 0;
  while (end < c->lanes[lane].next && nodes[end].start < until)
    end++;
  return nodes[end - 1].end > until ? 0 : end;
}

static struct passes count_passes(const struct slice_builder *c, u32 lane, u32 caller) {
  struct passes passes = {.caller = caller};
  i64 busy = 0;
  for (u32 i = c->lanes[caller].base; i < c->lanes[caller].next; i++)
    busy += c->slice->nodes[i].end - c->slice->nodes[i].start;
  passes.idle = 1 - (double)busy / (double)(c->slice->end - c->slice->begin);
  for (u32 first = c->lanes[lane].base, end, next; first < c->lanes[lane].next; first = end) {
    end = end_of_pass(c, lane, first, caller, &next);
    if (!end)
      return (struct passes){.caller = INDEX_NONE};
    passes.n++;
  }
  return passes;
}

/* Each pass began after what its caller had done by then, and the caller went on after it. */
static void link_passes(struct slice_builder *c, u32 lane, u32 caller) {
  for (u32 first = c->lanes[lane].base, end, next; first < c->lanes[lane].next; first = end) {
    end = end_of_pass(c, lane, first, caller, &next);
    if (next > c->lanes[caller].base)
      c->thread_deps[c->n_thread_deps++] = (struct dep){first, next - 1};
    if (next < c->lanes[caller].next)
      c->thread_deps[c->n_thread_deps++] = (struct dep){next, end - 1};
  }
}

static void find_caller(struct slice_builder *c, u32 lane, u32 host_lanes) {
  for (u32 caller = 0; caller < c->t->n_lanes; caller++) {
    if (caller == lane || !has_host_nodes(c, caller))
      continue;
    struct passes passes = count_passes(c, lane, caller);
    if (passes.caller == INDEX_NONE ||
        pow(passes.idle, passes.n) * host_lanes * host_lanes > CALLED_BY_CHANCE)
      continue;
    link_passes(c, lane, caller);
    return;
  }
}

static void join_threads(struct slice_builder *c) {
  u32 host_lanes = 0, room = 0;
  c->n_thread_deps = 0;
  for (u32 i = 0; i < c->t->n_lanes; i++)
    host_lanes += has_host_nodes(c, i);
  if (host_lanes < 2)
    return;
  FOR_EACH(c->slice->nodes, c->slice->n_nodes, node)
    room += NODE_ON_DEVICE(node->kind) ? 0 : 4;
  c->thread_deps = arena_array(&c->scratch, room, sizeof(*c->thread_deps));
  for (u32 lane = 0; lane < c->t->n_lanes; lane++)
    if (has_host_nodes(c, lane))
      find_caller(c, lane, host_lanes);
  for (u32 lane = 0; lane < c->t->n_lanes; lane++)
    for (u32 i = c->lanes[lane].base; has_host_nodes(c, lane) && i < c->lanes[lane].next; i++)
      if (c->slice->nodes[i].kind == NODE_HOST && c->slice->nodes[i].key == TSCOPE_PHASE_BACKWARD)
        wait_for_thread(c, lane, i);
}

/* Calls visit(node, from) for every dependency inside the slice. */
static void each_dep(struct slice_builder *c, void (*visit)(struct slice *, u32, u32)) {
  const struct timeline *t = c->t;
  for (u32 i = 0; i < c->n_carried + 1; i++) {
    bool rest = i == c->n_carried;
    u32 to = rest ? c->low : c->carried[i], end = rest ? c->high : to + 1;
    for (u32 e = first_edge_to(t, to); e < t->n_edges && t->edges[e].to < end; e++) {
      u32 node = node_of_span(c, t->edges[e].to), from = node_of_span(c, t->edges[e].from);
      if (node != INDEX_NONE && from != INDEX_NONE && node != from)
        visit(c->slice, node, from);
    }
  }
  FOR_EACH(c->thread_deps, c->n_thread_deps, thread_dep)
    visit(c->slice, thread_dep->node, thread_dep->from);
  FOR_EACH(c->inferred, c->n_inferred, one)
    visit(c->slice, one->node, one->from);
}

static void count_dep(struct slice *slice, u32 node, u32 from) {
  (void)from;
  slice->nodes[node].first_dep++;
  slice->n_deps++;
}

static void store_dep(struct slice *slice, u32 node, u32 from) {
  slice->deps[--slice->nodes[node].first_dep] = from;
}

static void link_deps(struct slice_builder *c) {
  struct slice *slice = c->slice;
  free(slice->deps);
  slice->n_deps = 0;
  for (u32 i = 0; i <= slice->n_nodes; i++)
    slice->nodes[i].first_dep = 0;
  each_dep(c, count_dep);
  slice->deps = memory_array(size_sum(slice->n_deps, 1), sizeof(u32));
  u32 sum = 0;
  FOR_EACH_CHANGED(slice->nodes, slice->n_nodes, node)
    sum = node->first_dep += sum;
  slice->nodes[slice->n_nodes].first_dep = sum;
  each_dep(c, store_dep);
}

/* A receive that runs while the program waits for it begins when the program comes to the wait. And
 * what was waited for had ended when the wait ended: a gloo worker may record its end late, if it
 * loses its CPU to the thread that it has just woken. */
static void adjust_to_waits(struct slice *slice) {
  for (u32 i = 0; i < slice->n_nodes; i++) {
    const struct node *wait = &slice->nodes[i];
    for (u32 k = wait->first_dep; k < wait[1].first_dep && wait->kind == NODE_BLOCKED; k++) {
      struct node *from = &slice->nodes[slice->deps[k]];
      if (from->kind != NODE_COLLECTIVE)
        continue;
      if (from->start == wait->start && from->start > slice->begin)
        from->launch = i;
      if (from->end > wait->end && from->start <= wait->end)
        from->end = wait->end;
    }
  }
}

void slice_link(struct slice_builder *c, u32 n_spans) {
  link_launches(c, n_spans);
  join_threads(c);
  slice_watch_workers(c);
  c->n_inferred = 0;
  link_deps(c);
  slice_infer(c);
  if (c->n_inferred)
    link_deps(c);
  adjust_to_waits(c->slice);
}
