/* SPDX-License-Identifier: MIT
 *
 * Replays samples with other durations. What the recorded dependencies do not explain of a start is
 * kept as a delay. Collective g: S_g = latest start of those it waits for, each member's end = S_g
 * + its own transfer.
 *
 * The unedited replay must give the step back; where it does not, dependencies contradict each
 * other (clocks, missing events) and nothing is promised.
 */
#include "analyses/path/path_replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_graph.h"
#include "analyses/queries.h"
#include "base/intervals.h"
#include "base/parallel.h"
#include "base/statistics.h"

#define COMMON_WORK 0.9 /* of a rank's, for ranks that do the same */

/* Events that must be put in order. The start of node n is event n. Its end is event n too, unless
 * other events decide it: then it is V + n. Join m is 2V + m. */
struct replay {
  const struct analysis *a;
  const struct sample_graph *g;
  u32 *order, n_order;
  double *work;       /* [key * n_ranks + rank] its time, ns */
  float *factor;      /* likewise: median of peers / own */
  float *to_median;   /* likewise: median of all ranks / own */
  bool alike;         /* the ranks do the same, but for a little */
  u32 *node_of_key;   /* [key] one that has it, INDEX_NONE */
  i64 batch_of_peers; /* how long workers of the median rank take for one, as far as known */
  u32 n_steps;
  i64 *step_ends; /* [n_steps] without changes */
  i64 exposed;    /* communication of all ranks, without changes; -1: not yet known */
  u64 contradictions;
};

/* One replay with a cure. */
struct run {
  const struct replay *r;
  const struct cure *cure;
  const float *factor; /* of the ranks that work as fast as others; NULL: none */
  const bool *ranks;   /* which these are; NULL: all */
  float *own_factor;   /* if it was made for this cure */
  float *by_name;      /* [key] what work with such names keeps; NULL: no name is changed */
  double launches_left;
  double kind_left[NODE_COLLECTIVE + 1], host_left[2][HOST_KEYS]; /* by kind; on a GPU, by phase */
  bool special;                                                   /* some changes depend on more */
  i64 *start, *end, *arrived;
  i64 *batch_ready; /* [n_ranks] the last batch that was waited for */
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

static int push(struct stack *stack, u8 *state, u32 event) {
  if (stack->n == stack->room) {
    u32 room = stack->room ? stack->room * 2 : 1024;
    struct frame *grown = realloc(stack->at, room * sizeof(*grown));
    if (!grown)
      return -ENOMEM;
    stack->at = grown;
    stack->room = room;
  }
  stack->at[stack->n++] = (struct frame){event, 0};
  state[event] = 1;
  return 0;
}

/* Depth first, without recursion: an event enters the order after all its predecessors. `state` of
 * each event: 0 not seen, 1 on the stack, 2 in order. */
static int put_in_order(struct replay *r, struct stack *stack, u8 *state, u32 root) {
  if (state[root])
    return 0;
  int error = push(stack, state, root);
  while (stack->n && !error) {
    struct frame *top = &stack->at[stack->n - 1];
    bool skip;
    u32 before = predecessor(r->g, top->event, top->k++, &skip);
    if (skip)
      continue;
    if (before == INDEX_NONE) {
      state[top->event] = 2;
      r->order[r->n_order++] = top->event;
      stack->n--;
    } else if (state[before] == 0) {
      error = push(stack, state, before);
    } else if (state[before] == 1) {
      r->contradictions++;
    }
  }
  return error;
}

static int order_events(struct replay *r) {
  struct stack stack = {0};
  size_t events = 2 * (size_t)r->g->n + r->g->n_joins;
  u8 *state = calloc(events + 1, 1);
  r->order = malloc((events + 1) * sizeof(u32));
  int error = state && r->order ? 0 : -ENOMEM;
  for (u32 n = 0; n < r->g->n && !error; n++) {
    error = put_in_order(r, &stack, state, n);
    if (!error && ends_apart(r->g, n))
      error = put_in_order(r, &stack, state, r->g->n + n);
  }
  free(stack.at);
  free(state);
  return error;
}

/* --- how long each kind of work takes on each rank, compared with its peers --- */

static i64 gap_before(const struct sample_graph *g, u32 n) {
  const struct node *node = &g->nodes[n];
  i64 from = node->first ? g->slices[node->rank].begin : g->nodes[n - 1].end;
  return node->start > from ? node->start - from : 0;
}

/* Ranks are compared by all of their time for a kind of work: one may do it more often than its
 * peers, and calls divide a host's time differently on each rank. */
static void sum_work(const struct sample_graph *g, double *work) {
  for (u32 n = 0; n < g->n; n++) {
    const struct node *node = &g->nodes[n];
    if (node->kind != NODE_BLOCKED && node->kind != NODE_COLLECTIVE)
      work[(size_t)node->key * g->n_ranks + node->rank] += (double)(node->end - node->start);
    if (!NODE_ON_DEVICE(node->kind))
      work[(size_t)phase_of_gap(node) * g->n_ranks + node->rank] += (double)gap_before(g, n);
  }
}

/* Ranks do the same if half of them do hardly anything that not all do. */
static bool do_the_same(const struct replay *r, double *scratch) {
  const struct sample_graph *g = r->g;
  u32 n = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    n += g->slices[rank].present;
  double *common = scratch, *all = scratch + g->n_ranks;
  memset(scratch, 0, 2 * (size_t)g->n_ranks * sizeof(double));
  for (u32 key = HOST_KEYS; key < g->n_keys; key++) {
    const double *work = &r->work[(size_t)key * g->n_ranks];
    u32 have = 0;
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      have += work[rank] > 0;
    for (u32 rank = 0; rank < g->n_ranks; rank++) {
      all[rank] += work[rank];
      common[rank] += have == n ? work[rank] : 0;
    }
  }
  u32 the_same = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    the_same += all[rank] > 0 && common[rank] >= COMMON_WORK * all[rank];
  return n > 1 && 2 * the_same >= n;
}

/* A host that spends no time in a phase is a peer all the same. A rank without a kernel does other
 * work, unless the ranks do the same: then that kernel is what others do in addition. */
static bool is_peer(const struct replay *r, u32 key, u32 rank) {
  return r->work[(size_t)key * r->g->n_ranks + rank] > 0 ||
         ((key < HOST_KEYS || r->alike) && r->g->slices[rank].present);
}

/* Several ranks do what they do as fast as the median of all others, where that is faster. */
static float *compare_group(const struct replay *r, const bool *group) {
  const struct sample_graph *g = r->g;
  float *factor = malloc((size_t)g->n_keys * g->n_ranks * sizeof(float));
  double *others = malloc((g->n_ranks + 1u) * sizeof(double));
  for (u32 key = 0; factor && others && key < g->n_keys; key++) {
    const double *work = &r->work[(size_t)key * g->n_ranks];
    u32 n = 0;
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      if (!group[rank] && is_peer(r, key, rank))
        others[n++] = work[rank];
    double usual = median_of(others, n);
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      factor[(size_t)key * g->n_ranks + rank] =
          group[rank] && usual < work[rank] ? (float)(usual / work[rank]) : 1;
  }
  if (!others) {
    free(factor);
    factor = NULL;
  }
  free(others);
  return factor;
}

/* Host time outside the phases can be waiting that no record shows, and so can that in calls of
 * collectives that the host runs: it is only ever shortened. */
static bool can_wait(const struct replay *r, u32 key) {
  u32 n = r->node_of_key[key];
  return key == 0 || key == TSCOPE_PHASE_USER ||
         (n != INDEX_NONE && r->g->nodes[n].kind == NODE_LAUNCH &&
          !r->g->slices[r->g->nodes[n].rank].on_gpu);
}

static int compare_peers(struct replay *r) {
  const struct sample_graph *g = r->g;
  size_t cells = (size_t)g->n_keys * g->n_ranks;
  r->work = calloc(cells, sizeof(double));
  double *sorted = malloc((2 * (size_t)g->n_ranks + 1u) * sizeof(double));
  r->factor = malloc(cells * sizeof(float));
  r->to_median = malloc(cells * sizeof(float));
  if (!r->work || !sorted || !r->factor || !r->to_median) {
    free(sorted);
    return -ENOMEM;
  }
  sum_work(g, r->work);
  r->alike = do_the_same(r, sorted);
  for (u32 key = 0; key < g->n_keys; key++) {
    const double *work = &r->work[(size_t)key * g->n_ranks];
    u32 n = 0;
    for (u32 rank = 0; rank < g->n_ranks; rank++)
      if (is_peer(r, key, rank))
        sorted[n++] = work[rank];
    qsort(sorted, n, sizeof(double), compare_doubles);
    for (u32 rank = 0; rank < g->n_ranks; rank++) {
      double of_peers = 1, of_all = 1;
      if (n > 1 && work[rank] > 0) {
        of_peers = median_of_others(sorted, n, work[rank]) / work[rank];
        of_all = sorted[(n - 1) / 2] / work[rank];
      }
      if (can_wait(r, key)) {
        of_peers = fmin(1, of_peers);
        of_all = fmin(1, of_all);
      }
      r->factor[(size_t)key * g->n_ranks + rank] = (float)of_peers;
      r->to_median[(size_t)key * g->n_ranks + rank] = (float)of_all;
    }
  }
  free(sorted);
  return 0;
}

/* --- the replay --- */

static i64 later(i64 a, i64 b) {
  return a > b ? a : b;
}

static i64 scaled(i64 ns, double factor) {
  return factor == 1 ? ns : (i64)((double)ns * factor);
}

/* How much of its time work on a rank keeps because the rank works as fast as others. */
static double rank_factor(const struct run *run, u32 key, u32 rank) {
  if (!run->factor || (run->ranks && !run->ranks[rank]))
    return 1;
  return run->factor[(size_t)key * run->r->g->n_ranks + rank];
}

/* Whether a change is about the host's own time in a phase, 0 for none. */
static bool is_host_time(const struct cure_change *change, bool on_gpu, u8 phase) {
  switch (change->kind) {
  case CHANGE_INPUT:
    return phase == TSCOPE_PHASE_DATA;
  case CHANGE_OUTSIDE:
    return phase == 0 || phase == TSCOPE_PHASE_USER;
  case CHANGE_LAUNCHES:
    return on_gpu && phase != TSCOPE_PHASE_DATA;
  case CHANGE_COMPUTE:
    return !on_gpu && phase != 0 && phase != TSCOPE_PHASE_USER && phase != TSCOPE_PHASE_DATA;
  case CHANGE_PHASE:
    return phase == change->which;
  default:
    return false;
  }
}

/* Whether work on the device was launched in a phase. */
static bool launched_in(const struct sample_graph *g, const struct node *node, u32 phase) {
  return node->launch != INDEX_NONE && g->nodes[node->launch].phase == phase;
}

static bool is_transfer_of(const struct run *run, const struct node *node,
                           const struct cure_change *change) {
  const struct model *model = run->r->a->model;
  if (node->arrival == INDEX_NONE || model->arrivals[node->arrival].op != change->of)
    return false;
  u32 collective = model->arrivals[node->arrival].collective;
  return collective != INDEX_NONE && model->collectives[collective].comm == change->which;
}

/* Whether a change is about all work of a kind on devices. */
static bool is_kind(const struct cure_change *change, u8 kind) {
  switch (change->kind) {
  case CHANGE_COMMUNICATION:
    return kind == NODE_COLLECTIVE;
  case CHANGE_COPIES:
    return kind == NODE_MEMCPY || kind == NODE_MEMSET;
  case CHANGE_FILLS:
    return kind == NODE_MEMSET;
  case CHANGE_COMPUTE:
    return kind == NODE_KERNEL;
  default:
    return false;
  }
}

/* Changes that depend on more of a node than its kind and phase. */
static bool is_special(const struct run *run, const struct node *node,
                       const struct cure_change *change) {
  switch (change->kind) {
  case CHANGE_LINE:
    return node->kind == NODE_BLOCKED && node->line == change->which;
  case CHANGE_TRANSFERS:
    return node->kind == NODE_COLLECTIVE && is_transfer_of(run, node, change);
  case CHANGE_PHASE:
    return NODE_ON_DEVICE(node->kind) && node->kind != NODE_COLLECTIVE &&
           launched_in(run->r->g, node, change->which);
  default:
    return false;
  }
}

/* What is left by kind and phase, once for all nodes. */
static void prepare_shares(struct run *run) {
  run->special = false;
  for (u32 kind = 0; kind <= NODE_COLLECTIVE; kind++)
    run->kind_left[kind] = 1;
  for (u32 phase = 0; phase < HOST_KEYS; phase++)
    run->host_left[0][phase] = run->host_left[1][phase] = 1;
  for (u32 i = 0; i < run->cure->n; i++) {
    const struct cure_change *change = &run->cure->changes[i];
    run->special |= change->kind == CHANGE_LINE || change->kind == CHANGE_TRANSFERS ||
                    change->kind == CHANGE_PHASE;
    for (u8 kind = 0; kind <= NODE_COLLECTIVE; kind++)
      if (is_kind(change, kind))
        run->kind_left[kind] = fmin(run->kind_left[kind], change->left);
    for (u32 gpu = 0; gpu < 2; gpu++)
      for (u8 phase = 0; phase < HOST_KEYS; phase++)
        if (is_host_time(change, gpu, phase))
          run->host_left[gpu][phase] = fmin(run->host_left[gpu][phase], change->left);
  }
}

static double host_left(const struct run *run, u32 rank, u8 phase) {
  return phase < HOST_KEYS ? run->host_left[run->r->g->slices[rank].on_gpu][phase] : 1;
}

/* The share of its time that a node keeps; of a wait, only 0 means anything. */
static double left_of(const struct run *run, const struct node *node) {
  double left = run->by_name ? run->by_name[node->key] : 1;
  if (node->kind == NODE_HOST || node->kind == NODE_LAUNCH)
    left = fmin(left, host_left(run, node->rank, node->phase));
  else
    left = fmin(left, run->kind_left[node->kind]);
  for (u32 i = 0; run->special && i < run->cure->n; i++)
    if (is_special(run, node, &run->cure->changes[i]))
      left = fmin(left, run->cure->changes[i].left);
  if (node->kind == NODE_BLOCKED || node->kind == NODE_COLLECTIVE)
    return left;
  return left * rank_factor(run, node->key, node->rank);
}

/* Host time before a node: its phase's. */
static i64 edited_gap(const struct run *run, u32 n) {
  const struct node *node = &run->r->g->nodes[n];
  u8 phase = phase_of_gap(node);
  return scaled(gap_before(run->r->g, n),
                host_left(run, node->rank, phase) * rank_factor(run, phase, node->rank));
}

/* The latest of the nodes that must end before this one starts, before and after the changes;
 * INT64_MIN if there is none. */
static void latest_before(const struct run *run, u32 n, i64 *was, i64 *now) {
  const struct sample_graph *g = run->r->g;
  const struct node *node = &g->nodes[n];
  *was = *now = INT64_MIN;
  if (!node->first) {
    *was = g->nodes[n - 1].end;
    *now = run->end[n - 1];
  }
  for (u32 i = node->first_dep; i < node[1].first_dep; i++) {
    u32 from = g->deps[i];
    *was = g->nodes[from].end > *was ? g->nodes[from].end : *was;
    *now = run->end[from] > *now ? run->end[from] : *now;
  }
}

static i64 device_start(const struct run *run, u32 n) {
  const struct sample_graph *g = run->r->g;
  const struct node *node = &g->nodes[n];
  i64 was, now;
  bool launch_bound = false;
  latest_before(run, n, &was, &now);
  if (node->launch != INDEX_NONE) {
    const struct node *launch = &g->nodes[node->launch];
    i64 called = launch->end < node->start ? launch->end : node->start;
    i64 call = called > launch->start ? called - launch->start : 0;
    i64 then = run->start[node->launch];
    if (call > 0) { /* else it began with the call, whose end may depend on it */
      i64 duration = run->end[node->launch] - then;
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
  return now + (latency ? scaled(delay, run->launches_left) : delay);
}

/* After a thread's own work; or, if it waited for another thread, the same time after both. */
static i64 host_start(const struct run *run, u32 n) {
  const struct node *node = &run->r->g->nodes[n];
  if (node->kind != NODE_BLOCKED && node->first_dep < node[1].first_dep) {
    i64 was, now;
    latest_before(run, n, &was, &now);
    return now + (node->start > was ? node->start - was : 0);
  }
  i64 from = node->first ? run->r->g->slices[node->rank].begin : run->end[n - 1];
  return from + edited_gap(run, n);
}

/* A batch that is waited for is there so long after the one before as it was: the processes that
 * prepare them do not work faster because the program does. What a change takes from the wait, it
 * takes from that time; without any wait, batches are always ready. */
static i64 batch_end(struct run *run, u32 n) {
  const struct sample_graph *g = run->r->g;
  const struct node *node = &g->nodes[n];
  i64 waited = node->end - node->start, waits = scaled(waited, left_of(run, node));
  i64 *ready = &run->batch_ready[node->rank], end = run->start[n] + waits;
  i64 between = node->launch == INDEX_NONE ? 0 : node->end - g->nodes[node->launch].end;
  i64 changed = between - waited + waits, of_peers = run->r->batch_of_peers;
  if (changed < between && rank_factor(run, node->key, node->rank) < 1)
    changed = later(changed, between < of_peers ? between : of_peers);
  *ready = node->launch == INDEX_NONE ? end : *ready + changed;
  if (node->launch == INDEX_NONE || waits == 0)
    return end;
  i64 at_once = run->start[n] + g->slices[node->rank].batch_ns;
  return *ready > at_once ? *ready : at_once;
}

static void replay_start(struct run *run, u32 n) {
  const struct node *node = &run->r->g->nodes[n];
  run->start[n] = NODE_ON_DEVICE(node->kind) ? device_start(run, n) : host_start(run, n);
  if (node->batch == BATCH_AWAITED)
    run->end[n] = batch_end(run, n);
  else if (!ends_apart(run->r->g, n))
    run->end[n] = run->start[n] + scaled(node->end - node->start, left_of(run, node));
}

static i64 blocked_end(const struct run *run, u32 n) {
  const struct sample_graph *g = run->r->g;
  const struct node *node = &g->nodes[n];
  if (left_of(run, node) == 0)
    return run->start[n];
  i64 was = INT64_MIN, now = INT64_MIN;
  for (u32 i = node->first_dep; i < node[1].first_dep; i++) {
    u32 from = g->deps[i];
    was = g->nodes[from].end > was ? g->nodes[from].end : was;
    now = run->end[from] > now ? run->end[from] : now;
  }
  i64 own = run->start[n];
  if (was < node->start) /* everything that it waited for had ended before */
    own += node->end - node->start;
  else if (node->end > was)
    now += node->end - was;
  return own > now ? own : now;
}

static i64 collective_end(const struct run *run, u32 n) {
  const struct sample_graph *g = run->r->g;
  const struct node *node = &g->nodes[n];
  u32 last;
  i64 was = join_start(g, n, &last), now = run->start[n];
  for (u32 i = g->first_joined[n]; i < g->first_joined[n + 1]; i++) {
    const struct collective_join *join = &g->joins[g->joined[i]];
    if (join->barrier && run->arrived[g->joined[i]] > now)
      now = run->arrived[g->joined[i]];
    for (u32 k = 0; !join->barrier && k < join->n; k++) {
      u32 member = g->members[join->first + k];
      if (g->nodes[member].start <= node->end && run->start[member] > now)
        now = run->start[member];
    }
  }
  return now + scaled(node->end - was, left_of(run, node));
}

/* A rank is done when its host and all of its streams are done, whichever is later: what a cure
 * does not change still takes its time. What the host did after its last node here is host time
 * like any other. */
static i64 rank_end(const struct run *run, u32 rank) {
  const struct sample_graph *g = run->r->g;
  const struct slice *slice = &g->slices[rank];
  i64 end = slice->begin;
  if (slice->last_host != INDEX_NONE) {
    i64 rest = slice->host_end - g->nodes[slice->last_host].end;
    bool changed = slice->on_gpu && rest > 0;
    end = run->end[slice->last_host] + (changed ? scaled(rest, run->launches_left) : rest);
  }
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++)
    if (NODE_ON_DEVICE(g->nodes[n].kind) && !g->nodes[n].cut)
      end = later(end, run->end[n]);
  if (slice->last_device == INDEX_NONE)
    return slice->last_host == INDEX_NONE ? slice->end : end;
  if (slice->ends_on_gpu || slice->last_host == INDEX_NONE)
    end = later(end, run->end[slice->last_device] + slice->end - g->nodes[slice->last_device].end);
  return end;
}

static void replay_events(struct run *run) {
  const struct sample_graph *g = run->r->g;
  for (u32 i = 0; i < run->r->n_order; i++) {
    u32 event = run->r->order[i];
    if (event >= 2 * g->n) {
      const struct collective_join *join = &g->joins[event - 2 * g->n];
      i64 last = INT64_MIN;
      for (u32 k = 0; k < join->n; k++)
        last = later(last, run->start[g->members[join->first + k]]);
      run->arrived[event - 2 * g->n] = last;
    } else if (event >= g->n) {
      u32 n = event - g->n;
      run->end[n] =
          g->nodes[n].kind == NODE_COLLECTIVE ? collective_end(run, n) : blocked_end(run, n);
    } else {
      replay_start(run, event);
    }
  }
}

/* Where each step of the sample ends, on the rank that is done last. */
static void find_step_ends(const struct run *run, i64 *ends) {
  const struct replay *r = run->r;
  const struct sample_graph *g = r->g;
  for (u32 i = 0; i < r->n_steps; i++)
    ends[i] = INT64_MIN;
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    const struct slice *slice = &g->slices[rank];
    for (u32 i = 0; slice->present && i + 1 < r->n_steps; i++) {
      u32 n = slice->last_of_step[i].node;
      if (n != INDEX_NONE)
        ends[i] = later(ends[i], run->end[n + g->base[rank]] + slice->last_of_step[i].rest);
    }
    if (slice->present)
      ends[r->n_steps - 1] = later(ends[r->n_steps - 1], rank_end(run, rank));
  }
}

/* --- cures --- */

/* Which ranks work as fast as which others. */
static int prepare_ranks(struct run *run) {
  const struct replay *r = run->r;
  u32 n_ranks = r->g->n_ranks, n = 0;
  bool *together = NULL;
  for (u32 i = 0; i < run->cure->n; i++) {
    const struct cure_change *change = &run->cure->changes[i];
    if (change->kind == CHANGE_LAUNCHES)
      run->launches_left = fmin(run->launches_left, change->left);
    if (change->kind == CHANGE_EVERY_RANK) {
      free(together);
      run->factor = r->to_median;
      return 0;
    }
    if (change->kind != CHANGE_RANKS)
      continue;
    if (!together && !(together = calloc(n_ranks + 1u, sizeof(bool))))
      return -ENOMEM;
    for (u32 rank = 0; rank < n_ranks; rank++)
      together[rank] |= change->ranks[rank];
  }
  for (u32 rank = 0; together && rank < n_ranks; rank++)
    n += together[rank];
  if (n > 1)
    run->factor = run->own_factor = compare_group(r, together);
  else if (n == 1)
    run->factor = r->factor;
  run->ranks = together;
  return n && !run->factor ? -ENOMEM : 0;
}

/* Work of one key has one name. */
static int prepare_names(struct run *run) {
  const struct replay *r = run->r;
  for (u32 i = 0; i < run->cure->n; i++) {
    const struct cure_change *change = &run->cure->changes[i];
    if (change->kind != CHANGE_NAME)
      continue;
    bool first = !run->by_name;
    if (first && !(run->by_name = malloc((r->g->n_keys + 1u) * sizeof(float))))
      return -ENOMEM;
    for (u32 key = 0; key < r->g->n_keys; key++) {
      if (first)
        run->by_name[key] = 1;
      const struct node *node =
          r->node_of_key[key] == INDEX_NONE ? NULL : &r->g->nodes[r->node_of_key[key]];
      if (node && node->label == change->which && node->kind == change->of)
        run->by_name[key] = fminf(run->by_name[key], (float)change->left);
    }
  }
  return 0;
}

static int run_cure(struct run *run, const struct replay *r, const struct cure *cure) {
  run->r = r;
  run->cure = cure;
  run->factor = NULL;
  run->ranks = NULL;
  run->own_factor = NULL;
  run->by_name = NULL;
  run->launches_left = 1;
  prepare_shares(run);
  int error = prepare_ranks(run);
  if (!error)
    error = prepare_names(run);
  if (!error)
    replay_events(run);
  free(run->own_factor);
  free(run->by_name);
  if (run->ranks)
    free((void *)(uintptr_t)run->ranks);
  return error;
}

/* The workers of the faster half of the ranks are busy for this share of a step: as long as they
 * take for a batch, if all of them work on one. */
static i64 find_batch_of_peers(const struct replay *r) {
  const struct sample_graph *g = r->g;
  double *busy = malloc((g->n_ranks + 1u) * sizeof(double)), ns = 0;
  u32 n = 0;
  for (u32 rank = 0; busy && rank < g->n_ranks; rank++)
    if (g->slices[rank].present && !isnan(g->slices[rank].workers_busy))
      busy[n++] = g->slices[rank].workers_busy;
  if (n) {
    qsort(busy, n, sizeof(double), compare_doubles);
    ns = busy[(n - 1) / 2] * (double)(g->end - g->begin) / r->n_steps;
  }
  free(busy);
  return (i64)ns;
}

static int run_begin(struct run *run, const struct sample_graph *g) {
  *run = (struct run){.start = malloc((g->n + 1u) * sizeof(i64)),
                      .end = malloc((g->n + 1u) * sizeof(i64)),
                      .arrived = malloc((g->n_joins + 1u) * sizeof(i64)),
                      .batch_ready = calloc(g->n_ranks + 1u, sizeof(i64))};
  if (!run->start || !run->end || !run->arrived || !run->batch_ready)
    return -ENOMEM;
  memset(run->start, 0, (g->n + 1u) * sizeof(i64));
  memset(run->end, 0, (g->n + 1u) * sizeof(i64));
  memset(run->arrived, 0, (g->n_joins + 1u) * sizeof(i64));
  return 0;
}

static void run_end(struct run *run) {
  free(run->start);
  free(run->end);
  free(run->arrived);
  free(run->batch_ready);
}

static int find_keys(struct replay *r) {
  r->node_of_key = malloc((r->g->n_keys + 1u) * sizeof(u32));
  for (u32 key = 0; r->node_of_key && key < r->g->n_keys; key++)
    r->node_of_key[key] = INDEX_NONE;
  for (u32 n = r->g->n; r->node_of_key && n-- > 0;)
    if (r->g->nodes[n].key >= HOST_KEYS)
      r->node_of_key[r->g->nodes[n].key] = n;
  return r->node_of_key ? 0 : -ENOMEM;
}

int replay_new(const struct analysis *a, u32 sample, const struct sample_graph *g,
               struct sample_outcome *out, struct replay **replay) {
  struct replay *r = *replay = calloc(1, sizeof(*r));
  struct run run = {0};
  const struct cure none = {0};
  if (!r)
    return -ENOMEM;
  *r = (struct replay){.a = a, .g = g, .n_steps = a->graph->samples[sample].n, .exposed = -1};
  r->batch_of_peers = find_batch_of_peers(r);
  r->step_ends = calloc(r->n_steps + 1u, sizeof(i64));
  int error = r->step_ends ? order_events(r) : -ENOMEM;
  if (!error)
    error = find_keys(r);
  if (!error)
    error = compare_peers(r);
  if (!error)
    error = run_begin(&run, g);
  if (!error)
    error = run_cure(&run, r, &none);
  if (!error) {
    find_step_ends(&run, r->step_ends);
    out->replayed = r->step_ends[r->n_steps - 1] - g->begin;
    out->measured = g->end - g->begin;
    out->contradictions = r->contradictions;
  }
  run_end(&run);
  return error;
}

void replay_free(struct replay *r) {
  if (!r)
    return;
  free(r->order);
  free(r->work);
  free(r->factor);
  free(r->to_median);
  free(r->step_ends);
  free(r->node_of_key);
  free(r);
}

/* --- how much communication is exposed --- */

static int by_start(const void *left, const void *right) {
  const struct interval *x = left, *y = right;
  return (x->start > y->start) - (x->start < y->start);
}

static bool is_compute(const struct sample_graph *g, const struct node *node) {
  u8 phase = node->phase;
  return node->kind == NODE_KERNEL ||
         (!g->slices[node->rank].on_gpu && node->kind == NODE_HOST && phase &&
          phase != TSCOPE_PHASE_USER && phase != TSCOPE_PHASE_DATA);
}

/* The union of a rank's work of one class, as it was replayed. */
static void unite(const struct run *run, u32 rank, bool compute, struct interval *scratch,
                  struct intervals *out) {
  const struct sample_graph *g = run->r->g;
  u32 n = 0;
  for (u32 i = g->base[rank]; i < g->base[rank + 1]; i++) {
    const struct node *node = &g->nodes[i];
    if (compute ? is_compute(g, node) : node->kind == NODE_COLLECTIVE)
      scratch[n++] = (struct interval){run->start[i], run->end[i]};
  }
  bool sorted = true; /* as the work of one lane is */
  for (u32 i = 1; i < n && sorted; i++)
    sorted = scratch[i - 1].start <= scratch[i].start;
  if (!sorted)
    qsort(scratch, n, sizeof(*scratch), by_start);
  out->n = 0;
  for (u32 i = 0; i < n; i++)
    intervals_append(out, scratch[i].start, scratch[i].end);
}

static int exposed_time(const struct run *run, i64 *exposed) {
  const struct sample_graph *g = run->r->g;
  u32 most = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    most = g->base[rank + 1] - g->base[rank] > most ? g->base[rank + 1] - g->base[rank] : most;
  struct interval *scratch = malloc((most + 1u) * sizeof(*scratch));
  struct intervals compute = {malloc((most + 1u) * sizeof(*compute.at)), 0};
  struct intervals comm = {malloc((most + 1u) * sizeof(*comm.at)), 0};
  int error = scratch && compute.at && comm.at ? 0 : -ENOMEM;
  *exposed = 0;
  for (u32 rank = 0; rank < g->n_ranks && !error; rank++) {
    u32 cursor = 0;
    unite(run, rank, true, scratch, &compute);
    unite(run, rank, false, scratch, &comm);
    for (u32 i = 0; i < comm.n; i++)
      *exposed += comm.at[i].end - comm.at[i].start -
                  intervals_covered(&compute, &cursor, comm.at[i].start, comm.at[i].end);
  }
  free(scratch);
  free(compute.at);
  free(comm.at);
  return error;
}

/* --- all samples --- */

static u32 first_sample(const struct analysis *a) {
  u32 first = 0;
  while (first < a->graph->n_samples &&
         !(a->graph->replays[first] && a->graph->outcomes[first].valid))
    first++;
  return first;
}

struct question {
  const struct analysis *a;
  const struct cure *cures;
  u32 n;
  bool exposed, first_only;
  i64 **saved;  /* [n_samples][cure * steps + step] in all, up to the end of that step */
  i64 **hidden; /* [n_samples][cure] */
};

static int ask_sample(void *user, u32 sample, unsigned worker) {
  struct question *q = user;
  struct replay *r = q->a->graph->replays[sample];
  struct run run;
  i64 exposed;
  (void)worker;
  if (!r || !q->a->graph->outcomes[sample].valid || (q->first_only && sample != first_sample(q->a)))
    return 0;
  q->saved[sample] = calloc((size_t)q->n * r->n_steps + 1u, sizeof(i64));
  q->hidden[sample] = calloc(q->n + 1u, sizeof(i64));
  int error = run_begin(&run, r->g);
  if (!q->saved[sample] || !q->hidden[sample])
    error = -ENOMEM;
  const struct cure none = {0};
  if (!error && q->exposed && r->exposed < 0 && !(error = run_cure(&run, r, &none)))
    error = exposed_time(&run, &r->exposed);
  for (u32 i = 0; i < q->n && !error; i++) {
    i64 *saved = &q->saved[sample][(size_t)i * r->n_steps];
    error = run_cure(&run, r, &q->cures[i]);
    find_step_ends(&run, saved);
    for (u32 k = 0; k < r->n_steps; k++)
      saved[k] = saved[k] == INT64_MIN ? 0 : r->step_ends[k] - saved[k];
    if (!error && q->exposed && !(error = exposed_time(&run, &exposed)))
      q->hidden[sample][i] = r->exposed - exposed;
  }
  run_end(&run);
  return error;
}

static bool has_change(const struct cure *cure, enum change_kind kind) {
  for (u32 i = 0; i < cure->n; i++)
    if (cure->changes[i].kind == kind)
      return true;
  return false;
}

/* If steps that are longer than the median take as long as it: `saved` grows by what is left of
 * them above that. */
static void shorten_long_steps(double *saved, const double *length, double *scratch, u32 n) {
  for (u32 i = 0; i < n; i++)
    scratch[i] = length[i] - saved[i];
  double usual = median_of(scratch, n);
  for (u32 i = 0; i < n; i++)
    saved[i] += fmax(0, length[i] - saved[i] - usual);
}

/* The mean over all steps, and quartiles of what each step saves. `scratch` has room for three
 * figures of every step. */
static struct worth summarise(const struct question *q, u32 cure, double *scratch, u32 room,
                              u32 samples) {
  const struct graph *graph = q->a->graph;
  double *saved_ms = scratch, *length_ms = scratch + room;
  i64 hidden = 0;
  u32 n = 0;
  for (u32 s = 0; s < samples; s++) {
    u32 in_sample = graph->samples[s].n;
    if (!q->saved[s])
      continue;
    const struct replay *r = graph->replays[s];
    const i64 *saved = &q->saved[s][(size_t)cure * in_sample];
    for (u32 k = 0; k < in_sample; k++, n++) {
      saved_ms[n] = ns_to_ms(saved[k] - (k ? saved[k - 1] : 0));
      i64 from = k ? r->step_ends[k - 1] : r->g->begin, to = r->step_ends[k];
      length_ms[n] = from == NS_UNKNOWN || to == NS_UNKNOWN ? 0 : ns_to_ms(to - from);
    }
    hidden += q->hidden[s][cure];
  }
  if (!n)
    return (struct worth){NAN, NAN, NAN, NAN};
  if (has_change(&q->cures[cure], CHANGE_LONG_STEPS))
    shorten_long_steps(saved_ms, length_ms, scratch + 2 * (size_t)room, n);
  double ms = fmax(0, mean_of(saved_ms, n));
  return (struct worth){ms, fmax(0, quantile_of(saved_ms, n, 0.25)),
                        fmax(0, quantile_of(saved_ms, n, 0.75)),
                        fmax(0, ns_to_ms(hidden) / n / q->a->model->n_ranks)};
}

static int ask_samples(struct question *q, struct worth *worths) {
  const struct graph *graph = q->a->graph;
  u32 samples = q->first_only ? first_sample(q->a) + 1 : graph->n_samples, steps = 0;
  q->saved = calloc(samples + 1u, sizeof(i64 *));
  q->hidden = calloc(samples + 1u, sizeof(i64 *));
  for (u32 i = 0; i < samples; i++)
    steps += graph->samples[i].n;
  double *scratch = malloc((3 * (size_t)steps + 1u) * sizeof(double));
  int error = q->saved && q->hidden && scratch ? 0 : -ENOMEM;
  if (!error)
    error = parallel_for(samples, q->a->options->threads, ask_sample, q);
  for (u32 i = 0; i < q->n && !error; i++)
    worths[i] = summarise(q, i, scratch, steps, samples);
  for (u32 i = 0; i < samples && q->saved && q->hidden; i++) {
    free(q->saved[i]);
    free(q->hidden[i]);
  }
  free(q->saved);
  free(q->hidden);
  free(scratch);
  return error;
}

static bool same_change(const struct cure_change *x, const struct cure_change *y, u32 n_ranks) {
  bool ranks = x->ranks == y->ranks ||
               (x->ranks && y->ranks && memcmp(x->ranks, y->ranks, n_ranks * sizeof(bool)) == 0);
  return x->kind == y->kind && x->which == y->which && x->of == y->of && x->left == y->left &&
         ranks;
}

static bool same_cure(const struct cure *x, const struct cure *y, u32 n_ranks) {
  bool same = x->n == y->n;
  for (u32 i = 0; same && i < x->n; i++)
    same = same_change(&x->changes[i], &y->changes[i], n_ranks);
  return same;
}

bool cure_has(const struct analysis *a, const struct cure *cure, const struct cure_change *change) {
  for (u32 i = 0; i < cure->n; i++)
    if (same_change(&cure->changes[i], change, a->model->n_ranks))
      return true;
  return false;
}

static const struct asked *asked_before(const struct analysis *a, const struct cure *cure,
                                        bool exposed) {
  const struct graph *graph = a->graph;
  for (u32 i = 0; i < graph->asked.n; i++) {
    const struct asked *asked = &graph->asked.at[i];
    if (same_cure(&asked->cure, cure, a->model->n_ranks) &&
        (!exposed || !isnan(asked->worth.hidden_ms)))
      return asked;
  }
  return NULL;
}

static int remember(const struct analysis *a, const struct cure *cure, struct worth worth) {
  struct cure_change *changes = malloc((cure->n + 1u) * sizeof(*changes));
  if (changes && cure->n)
    memcpy(changes, cure->changes, cure->n * sizeof(*changes));
  if (changes && VECTOR_PUSH(&a->graph->asked, ((struct asked){{changes, cure->n}, worth})))
    return 0;
  free(changes);
  return -ENOMEM;
}

/* The least time that a step takes: compute and copies of ranks that the cure leaves as they are.
 * Work of two streams that only met in a replay would not run as fast, and the steps that are
 * replayed may be shorter than the others. */
static double least_ms(const struct analysis *a, const struct cure *cure) {
  double most = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    bool changed = !rank->steps || !rank->has_compute;
    for (u32 k = 0; k < cure->n; k++) {
      const struct cure_change *change = &cure->changes[k];
      bool only_waits = change->kind == CHANGE_COMMUNICATION || change->kind == CHANGE_TRANSFERS ||
                        change->kind == CHANGE_INPUT || change->kind == CHANGE_LINE ||
                        (change->kind == CHANGE_LAUNCHES && rank->on_gpu);
      changed |= change->kind == CHANGE_RANKS ? change->ranks[i] : !only_waits;
    }
    if (!changed)
      most = fmax(most, ns_to_ms(rank->compute + rank->exposed_memcpy) / rank->steps);
  }
  return most;
}

int replay_worths(const struct analysis *a, const struct cure *cures, u32 n, bool exposed,
                  struct worth *worths) {
  bool replays = a->graph && a->graph->replays && !a->results->what_if_reason;
  double now_ms = a->whole_run ? a->results->path_length_ms : a->results->step_mean_ms;
  struct question q = {.a = a, .exposed = exposed};
  struct cure *unknown = malloc((n + 1u) * sizeof(*unknown));
  struct worth *found = malloc((n + 1u) * sizeof(*found));
  int error = unknown && found ? 0 : -ENOMEM;
  for (u32 i = 0; i < n && !error && replays; i++)
    if (cures[i].n && !asked_before(a, &cures[i], exposed))
      unknown[q.n++] = cures[i];
  q.cures = unknown;
  if (!error && q.n)
    error = ask_samples(&q, found);
  for (u32 i = 0; i < q.n && !error; i++) {
    double most_ms = fmax(0, now_ms - least_ms(a, &unknown[i]));
    found[i].ms = fmin(found[i].ms, most_ms);
    found[i].low_ms = fmin(found[i].low_ms, most_ms);
    found[i].high_ms = fmin(found[i].high_ms, most_ms);
    found[i].hidden_ms = exposed ? found[i].hidden_ms : NAN;
    error = remember(a, &unknown[i], found[i]);
  }
  for (u32 i = 0; i < n && !error; i++) {
    const struct asked *asked = replays && cures[i].n ? asked_before(a, &cures[i], exposed) : NULL;
    double nothing = replays && !cures[i].n ? 0 : NAN;
    worths[i] =
        asked ? asked->worth : (struct worth){nothing, nothing, nothing, exposed ? nothing : NAN};
  }
  free(unknown);
  free(found);
  return error;
}

u32 replay_first_nodes(const struct analysis *a) {
  u32 first = a->graph && a->graph->replays ? first_sample(a) : 0;
  return a->graph && a->graph->replays && first < a->graph->n_samples
             ? a->graph->replays[first]->g->n
             : 0;
}

int replay_first_worths(const struct analysis *a, const struct cure *cures, u32 n,
                        struct worth *worths) {
  struct question q = {.a = a, .cures = cures, .n = n, .first_only = true};
  return ask_samples(&q, worths);
}

static int by_name_and_kind(const void *left, const void *right) {
  const struct work_of_name *x = left, *y = right;
  if (x->label != y->label)
    return x->label < y->label ? -1 : 1;
  return (x->kind > y->kind) - (x->kind < y->kind);
}

int replay_names(const struct analysis *a, struct work_of_name **works, u32 *n) {
  VECTOR(struct work_of_name) all = {0};
  bool room = true;
  for (u32 s = 0; s < a->graph->n_samples; s++) {
    const struct replay *r = a->graph->replays[s];
    for (u32 key = HOST_KEYS; r && key < r->g->n_keys && room; key++) {
      if (r->node_of_key[key] == INDEX_NONE)
        continue;
      const struct node *node = &r->g->nodes[r->node_of_key[key]];
      struct work_of_name work = {.label = node->label, .kind = node->kind};
      for (u32 rank = 0; rank < r->g->n_ranks; rank++)
        work.ns += r->work[(size_t)key * r->g->n_ranks + rank];
      if (node->kind != NODE_BLOCKED)
        room = VECTOR_PUSH(&all, work);
    }
  }
  if (all.n)
    qsort(all.at, all.n, sizeof(*all.at), by_name_and_kind);
  u32 kept = 0;
  for (u32 i = 0; i < all.n; i++) {
    if (!kept || by_name_and_kind(&all.at[kept - 1], &all.at[i]) != 0)
      all.at[kept++] = all.at[i];
    else
      all.at[kept - 1].ns += all.at[i].ns;
  }
  *works = all.at;
  *n = kept;
  return room ? 0 : -ENOMEM;
}

void replay_excess(const struct analysis *a, double *excess_ms) {
  const struct graph *graph = a->graph;
  u32 steps = 0;
  memset(excess_ms, 0, a->model->n_ranks * sizeof(double));
  for (u32 s = 0; graph && graph->replays && s < graph->n_samples; s++) {
    const struct replay *r = graph->replays[s];
    if (!r || !graph->outcomes[s].valid)
      continue;
    steps += graph->samples[s].n;
    for (u32 key = 0; key < r->g->n_keys; key++)
      for (u32 rank = 0; rank < r->g->n_ranks; rank++) {
        size_t at = (size_t)key * r->g->n_ranks + rank;
        excess_ms[rank] += (1 - r->factor[at]) * r->work[at] / 1e6;
      }
  }
  for (u32 rank = 0; steps && rank < a->model->n_ranks; rank++)
    excess_ms[rank] /= steps;
}
