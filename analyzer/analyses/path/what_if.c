/* SPDX-License-Identifier: MIT
 *
 * What a step would take if something about it were different: its dependency graph is replayed
 * in topological order with edited durations. What the recorded dependencies do not explain of a
 * start is kept as a delay. Collective g: S_g = latest start of those it waits for, each member's
 * end = S_g + its own transfer.
 *
 * The unedited replay must give the step back; where it does not, dependencies contradict each
 * other (clocks, missing events) and what-ifs are said to be unreliable.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_graph.h"
#include "analyses/thresholds.h"
#include "base/statistics.h"

/* Events that must be put in order. The start of node n is event n. Its end is event n too, unless
 * other events decide it: then it is V + n. Join m is 2V + m. */
struct replay {
  const struct sample_graph *g;
  u32 *order, n_order;
  u8 *state; /* of each event: 0 not seen, 1 on the stack, 2 in order */
  i64 *start, *end, *arrived;
  double *mean;        /* [key * n_ranks + rank] of its work, as in sum_work() */
  u32 *count;          /* likewise */
  double *sorted;      /* [n_ranks] scratch */
  float *factor;       /* [key * n_ranks + rank] median of peers / own */
  float *group_factor; /* likewise, for the group of an edit; NULL without one */
  u64 contradictions;
};

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

struct stack {
  struct frame *at;
  u32 n, room;
};

static int push(struct stack *stack, struct replay *r, u32 event) {
  if (stack->n == stack->room) {
    u32 room = stack->room ? stack->room * 2 : 1024;
    struct frame *grown = realloc(stack->at, room * sizeof(*grown));
    if (!grown)
      return -ENOMEM;
    stack->at = grown;
    stack->room = room;
  }
  stack->at[stack->n++] = (struct frame){event, 0};
  r->state[event] = 1;
  return 0;
}

/* Depth first, without recursion: an event enters the order after all its predecessors. */
static int put_in_order(struct replay *r, struct stack *stack, u32 root) {
  if (r->state[root])
    return 0;
  int error = push(stack, r, root);
  while (stack->n && !error) {
    struct frame *top = &stack->at[stack->n - 1];
    bool skip;
    u32 before = predecessor(r->g, top->event, top->k++, &skip);
    if (skip)
      continue;
    if (before == INDEX_NONE) {
      r->state[top->event] = 2;
      r->order[r->n_order++] = top->event;
      stack->n--;
    } else if (r->state[before] == 0) {
      error = push(stack, r, before);
    } else if (r->state[before] == 1) {
      r->contradictions++;
    }
  }
  return error;
}

static int order_events(struct replay *r) {
  struct stack stack = {0};
  int error = 0;
  for (u32 n = 0; n < r->g->n && !error; n++) {
    error = put_in_order(r, &stack, n);
    if (!error && ends_apart(r->g, n))
      error = put_in_order(r, &stack, r->g->n + n);
  }
  free(stack.at);
  return error;
}

/* --- how long each kind of work takes on each rank, compared with its peers --- */

static i64 gap_before(const struct sample_graph *g, u32 n) {
  const struct node *node = &g->nodes[n];
  i64 from = node->first ? g->slices[node->rank].begin : g->nodes[n - 1].end;
  return node->start > from ? node->start - from : 0;
}

/* Kernels and calls are compared by their mean time; host time in a phase by its sum, because calls
 * divide it differently on each rank. */
static void sum_work(const struct sample_graph *g, double *sum, u32 *count) {
  for (u32 n = 0; n < g->n; n++) {
    const struct node *node = &g->nodes[n];
    size_t at = (size_t)node->key * g->n_ranks + node->rank;
    if (node->kind != NODE_BLOCKED && node->kind != NODE_COLLECTIVE) {
      sum[at] += (double)(node->end - node->start);
      count[at] += node->key >= HOST_KEYS || count[at] == 0;
    }
    if (!NODE_ON_DEVICE(node->kind)) {
      at = (size_t)phase_of_gap(node) * g->n_ranks + node->rank;
      sum[at] += (double)gap_before(g, n);
      count[at] = 1;
    }
  }
}

/* A host that spends no time in a phase is a peer all the same; a rank without a kernel does other
 * work. */
static bool is_peer(const struct replay *r, u32 key, u32 rank) {
  return r->count[(size_t)key * r->g->n_ranks + rank] ||
         (key < HOST_KEYS && r->g->slices[rank].present);
}

/* The ranks of a group do what they do as fast as the median of all others, where that is faster.
 */
static int compare_group(struct replay *r, const struct edit *edit) {
  const struct sample_graph *g = r->g;
  if (!r->group_factor)
    r->group_factor = malloc((size_t)g->n_keys * g->n_ranks * sizeof(float));
  if (!r->group_factor)
    return -ENOMEM;
  for (u32 key = 0; key < g->n_keys; key++) {
    const double *means = &r->mean[(size_t)key * g->n_ranks];
    u32 n = 0;
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      if (!edit->group[rank] && is_peer(r, key, rank))
        r->sorted[n++] = means[rank];
    double others = median_of(r->sorted, n);
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      r->group_factor[(size_t)key * g->n_ranks + rank] =
          edit->group[rank] && others < means[rank] ? (float)(others / means[rank]) : 1;
  }
  return 0;
}

static int compare_peers(struct replay *r) {
  const struct sample_graph *g = r->g;
  size_t cells = (size_t)g->n_keys * g->n_ranks;
  r->mean = calloc(cells, sizeof(double));
  r->count = calloc(cells, sizeof(u32));
  r->sorted = malloc(g->n_ranks * sizeof(double));
  r->factor = malloc(cells * sizeof(float));
  if (!r->mean || !r->count || !r->sorted || !r->factor)
    return -ENOMEM;
  sum_work(g, r->mean, r->count);
  for (u32 key = 0; key < g->n_keys; key++) {
    double *means = &r->mean[(size_t)key * g->n_ranks];
    const u32 *counts = &r->count[(size_t)key * g->n_ranks];
    u32 n = 0;
    for (u32 rank = 0; rank < g->n_ranks; rank++) {
      means[rank] /= counts[rank] ? counts[rank] : 1;
      if (is_peer(r, key, rank))
        r->sorted[n++] = means[rank];
    }
    qsort(r->sorted, n, sizeof(double), compare_doubles);
    for (u32 rank = 0; rank < g->n_ranks; rank++) {
      double factor = 1;
      if (counts[rank] && n > 1 && means[rank] > 0)
        factor = median_of_others(r->sorted, n, means[rank]) / means[rank];
      /* Host time outside all phases can be waiting that no record shows: it is only ever
       * shortened. */
      if (key == 0 && factor > 1)
        factor = 1;
      r->factor[(size_t)key * g->n_ranks + rank] = (float)factor;
    }
  }
  return 0;
}

/* --- the replay --- */

static double scale(const struct replay *r, const struct edit *edit, u32 key, u32 rank) {
  if (edit->group)
    return r->group_factor[(size_t)key * r->g->n_ranks + rank];
  if (edit->rank != EVERY_RANK && edit->rank != (i64)rank)
    return 1;
  return r->factor[(size_t)key * r->g->n_ranks + rank];
}

static i64 scaled(i64 ns, double factor) {
  return factor == 1 ? ns : (i64)((double)ns * factor);
}

/* Host time before a node: its phase's, unless the edit takes it away. */
static i64 edited_gap(const struct replay *r, const struct edit *edit, u32 n) {
  const struct node *node = &r->g->nodes[n];
  u8 phase = phase_of_gap(node);
  bool input = phase == TSCOPE_PHASE_DATA;
  if ((edit->free_input && input) ||
      (edit->free_launches && !input && r->g->slices[node->rank].on_gpu))
    return 0;
  return scaled(gap_before(r->g, n), scale(r, edit, phase, node->rank));
}

/* A wait of the host that the edit takes away. */
static bool is_free(const struct edit *edit, const struct node *node) {
  return edit->free_line && node->line == edit->free_line;
}

static i64 edited_duration(const struct replay *r, const struct edit *edit, u32 n) {
  const struct node *node = &r->g->nodes[n];
  bool host = node->kind == NODE_HOST || node->kind == NODE_LAUNCH;
  bool input = node->kind == NODE_HOST && node->phase == TSCOPE_PHASE_DATA;
  if ((edit->free_input && input) ||
      (edit->free_launches && host && !input && r->g->slices[node->rank].on_gpu) ||
      (edit->free_communication && node->kind == NODE_COLLECTIVE) || is_free(edit, node))
    return 0;
  if (node->kind == NODE_BLOCKED || node->kind == NODE_COLLECTIVE)
    return node->end - node->start;
  return scaled(node->end - node->start, scale(r, edit, node->key, node->rank));
}

/* The latest of the nodes that must end before this one starts, before and after the edit;
 * INT64_MIN if there is none. */
static void latest_before(const struct replay *r, u32 n, i64 *was, i64 *now) {
  const struct sample_graph *g = r->g;
  const struct node *node = &g->nodes[n];
  *was = *now = INT64_MIN;
  if (!node->first) {
    *was = g->nodes[n - 1].end;
    *now = r->end[n - 1];
  }
  for (u32 i = node->first_dep; i < node[1].first_dep; i++) {
    u32 from = g->deps[i];
    *was = g->nodes[from].end > *was ? g->nodes[from].end : *was;
    *now = r->end[from] > *now ? r->end[from] : *now;
  }
}

static i64 device_start(const struct replay *r, const struct edit *edit, u32 n) {
  const struct sample_graph *g = r->g;
  const struct node *node = &g->nodes[n];
  i64 was, now;
  bool launch_bound = false;
  latest_before(r, n, &was, &now);
  if (node->launch != INDEX_NONE) {
    const struct node *launch = &g->nodes[node->launch];
    i64 called = launch->end < node->start ? launch->end : node->start;
    i64 call = called > launch->start ? called - launch->start : 0;
    i64 then = r->start[node->launch];
    if (call > 0) { /* else it began with the call, whose end may depend on it */
      i64 duration = r->end[node->launch] - then;
      then += call < duration ? call : duration;
    }
    launch_bound = called > was;
    was = called > was ? called : was;
    now = then > now ? then : now;
  }
  if (was == INT64_MIN)
    return node->start;
  i64 delay = node->start > was ? node->start - was : 0;
  bool latency =
      launch_bound && delay <= LONGEST_LATENCY; /* else it waited for something unknown */
  return now + (edit->free_launches && latency ? 0 : delay);
}

/* After a thread's own work; or, if it waited for another thread, the same time after both. */
static i64 host_start(const struct replay *r, const struct edit *edit, u32 n) {
  const struct node *node = &r->g->nodes[n];
  if (node->kind != NODE_BLOCKED && node->first_dep < node[1].first_dep) {
    i64 was, now;
    latest_before(r, n, &was, &now);
    return now + (node->start > was ? node->start - was : 0);
  }
  i64 from = node->first ? r->g->slices[node->rank].begin : r->end[n - 1];
  return from + edited_gap(r, edit, n);
}

static void replay_start(struct replay *r, const struct edit *edit, u32 n) {
  const struct sample_graph *g = r->g;
  bool device = NODE_ON_DEVICE(g->nodes[n].kind);
  r->start[n] = device ? device_start(r, edit, n) : host_start(r, edit, n);
  if (!ends_apart(g, n))
    r->end[n] = r->start[n] + edited_duration(r, edit, n);
}

static i64 blocked_end(const struct replay *r, const struct edit *edit, u32 n) {
  const struct sample_graph *g = r->g;
  const struct node *node = &g->nodes[n];
  if (is_free(edit, node))
    return r->start[n];
  i64 was = INT64_MIN, now = INT64_MIN;
  for (u32 i = node->first_dep; i < node[1].first_dep; i++) {
    u32 from = g->deps[i];
    was = g->nodes[from].end > was ? g->nodes[from].end : was;
    now = r->end[from] > now ? r->end[from] : now;
  }
  i64 own = r->start[n];
  if (was < node->start) /* everything that it waited for had ended before */
    own += node->end - node->start;
  else if (node->end > was)
    now += node->end - was;
  return own > now ? own : now;
}

static i64 collective_end(const struct replay *r, const struct edit *edit, u32 n) {
  const struct sample_graph *g = r->g;
  const struct node *node = &g->nodes[n];
  u32 last;
  i64 was = join_start(g, n, &last), now = r->start[n];
  for (u32 i = g->first_joined[n]; i < g->first_joined[n + 1]; i++) {
    const struct collective_join *join = &g->joins[g->joined[i]];
    if (join->barrier && r->arrived[g->joined[i]] > now)
      now = r->arrived[g->joined[i]];
    for (u32 k = 0; !join->barrier && k < join->n; k++) {
      u32 member = g->members[join->first + k];
      if (g->nodes[member].start <= node->end && r->start[member] > now)
        now = r->start[member];
    }
  }
  return now + (edit->free_communication ? 0 : node->end - was);
}

static i64 later(i64 a, i64 b) {
  return a > b ? a : b;
}

/* A rank is done when its host and all of its streams are done, whichever is later: what an edit
 * does not change still takes its time. What the host did after its last node here is host time
 * like any other. */
static i64 rank_end(const struct replay *r, const struct edit *edit, u32 rank) {
  const struct sample_graph *g = r->g;
  const struct slice *slice = &g->slices[rank];
  i64 end = slice->begin;
  if (slice->last_host != INDEX_NONE) {
    i64 rest = slice->host_end - g->nodes[slice->last_host].end;
    end = r->end[slice->last_host] + (edit->free_launches && slice->on_gpu && rest > 0 ? 0 : rest);
  }
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++)
    if (NODE_ON_DEVICE(g->nodes[n].kind) && !g->nodes[n].cut)
      end = later(end, r->end[n]);
  if (slice->last_device == INDEX_NONE)
    return slice->last_host == INDEX_NONE ? slice->end : end;
  if (slice->ends_on_gpu || slice->last_host == INDEX_NONE)
    end = later(end, r->end[slice->last_device] + slice->end - g->nodes[slice->last_device].end);
  return end;
}

static i64 replay(struct replay *r, const struct edit *edit) {
  const struct sample_graph *g = r->g;
  for (u32 i = 0; i < r->n_order; i++) {
    u32 event = r->order[i];
    if (event >= 2 * g->n) {
      const struct collective_join *join = &g->joins[event - 2 * g->n];
      i64 last = INT64_MIN;
      for (u32 k = 0; k < join->n; k++) {
        i64 start = r->start[g->members[join->first + k]];
        last = start > last ? start : last;
      }
      r->arrived[event - 2 * g->n] = last;
    } else if (event >= g->n) {
      u32 n = event - g->n;
      r->end[n] = g->nodes[n].kind == NODE_COLLECTIVE ? collective_end(r, edit, n)
                                                      : blocked_end(r, edit, n);
    } else {
      replay_start(r, edit, event);
    }
  }
  i64 end = INT64_MIN;
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    i64 at = g->slices[rank].present ? rank_end(r, edit, rank) : INT64_MIN;
    end = at > end ? at : end;
  }
  return end;
}

int what_if_replay(const struct sample_graph *g, const struct edit *edits, u32 n_edits,
                   struct sample_outcome *out) {
  struct replay r = {.g = g};
  const struct edit none = {.rank = NO_RANK};
  size_t events = 2 * (size_t)g->n + g->n_joins;
  r.order = malloc((events + 1) * sizeof(u32));
  r.state = calloc(events + 1, 1);
  r.start = calloc(g->n + 1u, sizeof(i64));
  r.end = calloc(g->n + 1u, sizeof(i64));
  r.arrived = calloc(g->n_joins + 1u, sizeof(i64));
  int error = r.order && r.state && r.start && r.end && r.arrived ? 0 : -ENOMEM;
  if (!error)
    error = order_events(&r);
  if (!error)
    error = compare_peers(&r);
  if (!error) {
    i64 unedited = replay(&r, &none);
    out->replayed = unedited - g->begin;
    out->measured = g->end - g->begin;
    out->contradictions = r.contradictions;
    for (u32 i = 0; i < n_edits && !error; i++) {
      error = edits[i].group ? compare_group(&r, &edits[i]) : 0;
      out->saved[i] = error ? 0 : unedited - replay(&r, &edits[i]);
    }
  }
  free(r.order);
  free(r.state);
  free(r.start);
  free(r.end);
  free(r.arrived);
  free(r.mean);
  free(r.count);
  free(r.sorted);
  free(r.factor);
  free(r.group_factor);
  return error;
}
