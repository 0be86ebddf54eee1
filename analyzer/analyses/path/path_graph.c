/* SPDX-License-Identifier: MIT
 *
 * Which steps are sampled, and how the ranks' slices of one sample become one graph.
 */
#include "analyses/path/path_graph.h"
#include "analyses/analyses.h"
#include "analyses/path/path_labels.h"
#include "analyses/path/path_run.h"
#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/hash_index.h"
#include "base/parallel.h"
#include "base/sorting.h"

#include <math.h>
#include <stdlib.h>

/* The number of nodes kept for all samples together: about 100 bytes each while they are used. One
 * step may be larger than this, up to the limit. */
#define NODES_WANTED 2e6
/* A quarter is enough for a longer run: its graph must not take more memory than its trace. */
#define NODES_ALWAYS 250e3
#define SHARE_WANTED 0.25
#define NODES_LIMIT 8e6
#define MAX_STEPS 128u

static const char *why_no_path(struct analysis *a, double nodes_per_step) {
  const struct model *model = a->model;
  if (model->n_ranks > 1 && !model->clock_aligned)
    return say(a, "the ranks' clocks are not on one axis (%s)",
               model->clock_method ? model->clock_method : "method not known");
  for (u32 i = 0; i < model->n_ranks; i++) {
    const char *why = gpu_timing_reason(model, &model->ranks[i]);
    if (model->ranks[i].launches && !model->ranks[i].gpu_kernels && path_has_rank(model, i))
      return say(a, "when kernels ran on rank %u is not known%s", model->ranks[i].rank,
                 say_why(a, why));
  }
  if (nodes_per_step > NODES_LIMIT)
    return say(a,
               a->whole_run ? "no steps were found, and the whole run has %.0f million events, too "
                              "many for the memory limit"
                            : "one step has %.0f million events, too many for the memory limit",
               nodes_per_step / 1e6);
  return NULL;
}

/* Whether the GPUs of all ranks were recorded throughout a step of training. */
static bool seen_by_all(const struct analysis *a, u32 step) {
  bool own = a->model->steps.kind && step == 0; /* begins with its work: steps/steps_on_gpu.c */
  if (!analysis_is_training(a, step))
    return false;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    struct window window;
    if (!path_has_rank(a->model, rank) || !analysis_window(a, rank, step, &window))
      continue;
    enum gpu_step known = analysis_gpu_step(a, rank, NULL, &window);
    if (known == GPU_STEP_LEFT_OUT || (known != GPU_STEP_KNOWN && !own))
      return false;
  }
  return true;
}

/* Of some rows some, spread evenly, with so many steps in all. */
static void keep_some(struct graph *graph, const struct sample *rows, u32 n, u32 steps) {
  u32 all = TOTAL(u32, rows, n, one, one->n);
  u32 wanted = all > steps ? (u32)((u64)n * steps / all) : n;
  wanted = wanted ? wanted : n > 0;
  for (u32 i = 0; i < wanted; i++) {
    struct sample *to = &graph->samples[i];
    *to = rows[(2 * (u64)i + 1) * n / (2 * wanted)];
    if (all > steps)
      to->n = MIN(steps / wanted, to->n);
  }
  graph->n_samples = wanted;
}

/* If GPU times were recorded for some steps only, or some are not of training: rows of the others.
 */
static void choose_seen_samples(struct analysis *a, u32 first, u32 steps) {
  VECTOR(struct sample) rows = {0};
  for (u32 step = first, end = a->first_step + a->n_steps; step < end;) {
    u32 n = 0;
    while (step + n < end && n < STEPS_IN_A_ROW && seen_by_all(a, step + n))
      n++;
    if (n)
      VECTOR_PUSH(&rows, ((struct sample){step, n}));
    step += MAX(n, 1);
  }
  keep_some(a->graph, rows.at, rows.n, steps);
  free(rows.at);
}

static bool seen_throughout(const struct analysis *a, u32 first) {
  return !ANY_NUMBER(first, a->first_step + a->n_steps, step, !seen_by_all(a, step));
}

/* Spread evenly over the usable steps. */
static void choose_samples(struct analysis *a, double nodes_per_step) {
  struct graph *graph = a->graph;
  double kept = model_share_kept(a->model);
  u32 end = a->first_step + a->n_steps;
  /* a tenth less than the rings should hold, because ranks and steps differ */
  u32 usable = kept < 1 ? (u32)(kept * 0.9 * a->model->steps.n) : a->n_steps;
  usable = CLAMP(usable, 1, a->n_steps);
  u32 timed = 0;
  for (u32 step = end - usable; step < end; step++)
    timed += analysis_times_of(a, (i32)step) == TIMES_KEPT;
  double nodes = fmin(NODES_WANTED, fmax(NODES_ALWAYS, SHARE_WANTED * nodes_per_step * timed));
  double wanted = nodes_per_step > 0 ? nodes / nodes_per_step : MAX_STEPS;
  u32 steps = MIN((u32)CLAMP(wanted, 1, MAX_STEPS), usable);
  if (a->model->steps.times && steps > timed / 2) /* the graph is most of a summary otherwise */
    steps = timed / 2 ? timed / 2 : 1;
  if (!seen_throughout(a, end - usable)) {
    choose_seen_samples(a, end - usable, steps);
    return;
  }
  u32 n = (steps + STEPS_IN_A_ROW - 1) / STEPS_IN_A_ROW, row = steps / n;
  for (u32 i = 0; i < n; i++) {
    u32 room_begin = (u32)((u64)usable * i / n), room_end = (u32)((u64)usable * (i + 1) / n);
    graph->samples[graph->n_samples++] =
        (struct sample){end - usable + room_begin + (room_end - room_begin - row) / 2, row};
  }
}

void graph_plan(struct analysis *a) {
  const struct model *model = a->model;
  double records = TOTAL(double, model->ranks, model->n_ranks, one, (double)one->records);
  double per_step = a->whole_run ? records : records / model->steps.n / model_share_kept(model);
  a->graph = arena_alloc(a->arena, sizeof(*a->graph));
  a->results->path_reason = why_no_path(a, per_step);
  if (a->results->path_reason)
    return;
  struct graph *graph = a->graph;
  path_labels_new(&graph->labels);
  graph->samples = arena_array(a->arena, MAX_STEPS, sizeof(*graph->samples));
  choose_samples(a, per_step);
  graph->slices =
      arena_array(a->arena, size_product(graph->n_samples, model->n_ranks), sizeof(*graph->slices));
  graph->outcomes = arena_array(a->arena, graph->n_samples, sizeof(*graph->outcomes));
  graph->joined = arena_array(a->arena, graph->n_samples, sizeof(*graph->joined));
  graph->replays = arena_array(a->arena, graph->n_samples, sizeof(*graph->replays));
  FOR_EACH_CHANGED(graph->outcomes, graph->n_samples, outcome)
    outcome->by_rank = arena_array(a->arena, model->n_ranks, sizeof(i64));
}

void graph_free(struct analysis *a) {
  if (!a->graph)
    return;
  path_labels_free(a->graph->labels);
  for (u32 i = 0; a->graph->outcomes && i < a->graph->n_samples; i++) {
    free(a->graph->outcomes[i].segments.at);
    if (!a->graph->replays)
      continue;
    replay_free(a->graph->replays[i]);
    sample_graph_free(&a->graph->joined[i]);
  }
  FOR_EACH_CHANGED(a->graph->runs, a->graph->n_threads, run)
    runs_free(run);
  free(a->graph->runs);
  for (u32 i = 0; i < a->graph->asked.n; i++)
    free((void *)(uintptr_t)a->graph->asked.at[i].cure.changes);
  free(a->graph->asked.at);
  if (!a->graph->slices)
    return;
  FOR_EACH_CHANGED(a->graph->slices, (size_t)a->graph->n_samples * a->model->n_ranks, slice)
    slice_free_all(slice);
}

struct appending {
  struct sample_graph *g;
  u32 *first_dep; /* [n_ranks] */
};

/* A large graph is all new memory: clearing its pages takes longer than copying the nodes. */
static void append_slice(void *user, u32 rank, unsigned worker) {
  const struct appending *appending = user;
  struct sample_graph *g = appending->g;
  struct slice *slice = &g->slices[rank];
  u32 base = g->base[rank], first_dep = appending->first_dep[rank];
  (void)worker;
  if (!slice->present)
    return;
  for (u32 i = 0; i < slice->n_nodes; i++) {
    struct node node = slice->nodes[i];
    node.launch = node.launch == INDEX_NONE ? INDEX_NONE : node.launch + base;
    node.call = node.call == INDEX_NONE ? INDEX_NONE : node.call + base;
    node.first_dep += first_dep;
    g->nodes[base + i] = node;
  }
  for (u32 i = 0; i < slice->n_deps; i++)
    g->deps[first_dep + i] = slice->deps[i] + base;
  slice->last_host = slice->last_host == INDEX_NONE ? INDEX_NONE : slice->last_host + base;
  slice->last_device = slice->last_device == INDEX_NONE ? INDEX_NONE : slice->last_device + base;
  slice_free(slice);
}

void sample_graph_find_limits(struct sample_graph *g) {
  g->begin = INT64_MAX;
  g->end = INT64_MIN;
  for (u32 i = 0; i < g->n_ranks; i++) {
    const struct slice *slice = &g->slices[i];
    if (!slice->present)
      continue;
    g->begin = MIN(slice->begin, g->begin);
    if (slice->end > g->end) {
      g->end = slice->end;
      g->last_rank = i;
    }
  }
}

static bool append_all(struct sample_graph *g, unsigned threads) {
  size_t n = 0, n_deps = 0;
  FOR_EACH(g->slices, g->n_ranks, one) {
    n += one->n_nodes;
    n_deps += one->n_deps;
  }
  if (n > NODES_LIMIT * 2)
    return false;
  g->nodes = memory_array(size_sum(n, 1), sizeof(*g->nodes));
  g->deps = memory_array(size_sum(n_deps, 1), sizeof(u32));
  g->base = memory_array(size_sum(g->n_ranks, 1), sizeof(u32));
  u32 deps = 0;
  SCOPED u32 *first_dep = memory_array(size_sum(g->n_ranks, 1), sizeof(u32));
  for (u32 i = 0; i < g->n_ranks; i++) {
    struct slice *slice = &g->slices[i];
    g->base[i] = g->n;
    first_dep[i] = deps;
    if (!slice->present)
      continue;
    g->n += slice->n_nodes;
    deps += slice->n_deps;
  }
  parallel_for(g->n_ranks, threads, append_slice, &(struct appending){g, first_dep});
  g->base[g->n_ranks] = g->n;
  g->nodes[g->n] = (struct node){.first_dep = deps};
  sample_graph_find_limits(g);
  return true;
}

/* The node of a rank at its collective, and the one that shows when the rank came. */
struct join_arrival {
  i64 start; /* of the latter */
  u32 collective, node, came;
};

/* A rank waits for a message on the host, and so has its node, only when it needs it. */
static u32 node_of_coming(const struct model *model, const struct sample_graph *g, u32 n,
                          const struct collective *collective) {
  const struct node *node = &g->nodes[n];
  bool on_host = collective_is_message_of_host(model, collective);
  return on_host && node_calling(node) != INDEX_NONE ? node->call : n;
}

ORDER_BY(by_collective_and_start, struct join_arrival, UP(collective) UP(start) UP(node))

/* All calls of all collective nodes; counts them if `arrivals` is NULL. */
static size_t list_arrivals(const struct analysis *a, const struct sample_graph *g,
                            struct join_arrival *arrivals) {
  const struct model *model = a->model;
  size_t n = 0;
  for (u32 i = 0; i < g->n; i++) {
    const struct node *node = &g->nodes[i];
    if (node->kind != NODE_COLLECTIVE || node->arrival == INDEX_NONE)
      continue;
    u32 call = node->arrival;
    do {
      u32 collective = model->arrivals[call].collective;
      if (collective != INDEX_NONE) {
        u32 came = node_of_coming(model, g, i, &model->collectives[collective]);
        if (arrivals)
          arrivals[n] = (struct join_arrival){g->nodes[came].start, collective, i, came};
        n++;
      }
      call = a->next_call[call];
    } while (call != node->arrival);
  }
  return n;
}

static void number_joins(const struct model *model, struct sample_graph *g,
                         const struct join_arrival *arrivals, size_t n) {
  for (size_t i = 0; i < n; i++) {
    u32 collective = arrivals[i].collective;
    if (i == 0 || collective != arrivals[i - 1].collective)
      g->joins[g->n_joins++] = (struct collective_join){
          .first = (u32)i, .barrier = op_is_barrier_like(model->collectives[collective].op)};
    g->members[i] = arrivals[i].came;
    g->joins[g->n_joins - 1].n++;
    g->first_joined[arrivals[i].node]++;
  }
  for (u32 i = 0, sum = 0; i <= g->n; i++)
    sum = g->first_joined[i] += sum;
  for (u32 m = g->n_joins; m-- > 0;)
    for (u32 k = g->joins[m].n; k-- > 0;)
      g->joined[--g->first_joined[arrivals[g->joins[m].first + k].node]] = m;
}

/* Of a rank that has no steps there are no nodes, but it is known when it came. What the others
 * wait for it then is no transfer. */
static void find_absent(const struct model *model, struct sample_graph *g,
                        const struct join_arrival *arrivals) {
  FOR_EACH_CHANGED(g->joins, g->n_joins, join) {
    const struct collective *collective = &model->collectives[arrivals[join->first].collective];
    i64 last = arrivals[join->first + join->n - 1].start;
    if (join->barrier && join->n < collective->n_arrivals && collective->last_start != NS_UNKNOWN)
      join->late = MAX(collective->last_start - last, 0);
  }
}

/* Brings together the nodes of one collective. */
static void join_collectives(const struct analysis *a, struct sample_graph *g) {
  size_t n = list_arrivals(a, g, NULL);
  SCOPED struct join_arrival *arrivals = memory_array(size_sum(n, 1), sizeof(*arrivals));
  g->members = memory_array(size_sum(n, 1), sizeof(u32));
  g->joined = memory_array(size_sum(n, 1), sizeof(u32));
  g->joins = memory_array(size_sum(n, 1), sizeof(*g->joins));
  g->first_joined = memory_zeroed(size_sum(g->n, 1), sizeof(u32));
  list_arrivals(a, g, arrivals);
  SORT(arrivals, n, by_collective_and_start);
  number_joins(a->model, g, arrivals, n);
  find_absent(a->model, g, arrivals);
}

/* Makes the nodes' keys dense: phases first, then in order of appearance. */
static void number_keys(struct sample_graph *g) {
  SCOPED struct hash_index index = {0};
  VECTOR(u32) first = {0}; /* node of each number */
  for (u32 phase = 0; phase < HOST_KEYS; phase++)
    VECTOR_PUSH(&first, INDEX_NONE);
  for (u32 n = 0; n < g->n; n++) {
    struct node *node = &g->nodes[n];
    if (node->key < HOST_KEYS)
      continue;
    u32 number = hash_index_first(&index, node->key);
    if (number == INDEX_NONE) {
      number = first.n;
      hash_index_add(&index, node->key, number);
      VECTOR_PUSH(&first, n);
    }
    node->key = number;
  }
  g->node_of_key = first.at;
  g->n_keys = first.n;
}

static void free_joins(struct sample_graph *g) {
  FREE_EACH(g, joins, members, joined, first_joined);
  g->n_joins = 0;
}

bool sample_graph_join(const struct analysis *a, u32 sample, struct sample_graph *g) {
  *g = (struct sample_graph){.n_ranks = a->model->n_ranks,
                             .slices = &a->graph->slices[(size_t)sample * a->model->n_ranks]};
  if (!append_all(g, a->graph->n_samples == 1 ? a->options->threads : 1))
    return false;
  join_collectives(a, g);
  if (path_settle_hosts(a, g)) {
    free_joins(g);
    join_collectives(a, g);
  }
  sample_graph_find_batches(g);
  number_keys(g);
  sample_graph_add_shown(g);
  return true;
}

void sample_graph_free(struct sample_graph *g) {
  FREE_EACH(g, nodes, deps, base, node_of_key, batches);
  free_joins(g);
}

bool comes_by_call(const struct sample_graph *g, u32 node, u32 member) {
  return g->nodes[member].kind == NODE_LAUNCH && g->nodes[member].end <= g->nodes[node].end;
}

i64 join_start(const struct sample_graph *g, u32 node, u32 *last) {
  i64 end = g->nodes[node].end, latest = g->nodes[node].start;
  *last = node;
  for (u32 i = g->first_joined[node]; i < g->first_joined[node + 1]; i++) {
    const struct collective_join *join = &g->joins[g->joined[i]];
    const u32 *members = &g->members[join->first];
    u32 k = join->n - 1;
    /* A root that need not wait can end before other members start. */
    while (!join->barrier && k > 0 && g->nodes[members[k]].start > end)
      k--;
    /* A call that starts before another can end after it. */
    do {
      const struct node *member = &g->nodes[members[k]];
      i64 came = comes_by_call(g, node, members[k]) ? member->end : member->start;
      if (came > latest || (came == latest && *last == node)) {
        latest = came;
        *last = members[k];
      }
    } while (g->nodes[members[k]].kind == NODE_LAUNCH && k-- > 0);
    if (join->late)
      latest = MAX(latest, g->nodes[members[join->n - 1]].start + join->late);
  }
  return MIN(latest, end);
}
