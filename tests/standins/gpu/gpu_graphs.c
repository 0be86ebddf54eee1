/* SPDX-License-Identifier: MIT
 *
 * CUDA graphs: nodes in the order in which they were captured or added. There is one branch for
 * each stream of the capture. A launch runs the first branch on the launching stream and the
 * others on streams of the executable, in parallel as far as the nodes' dependencies allow.
 */
#include <stdlib.h>

#include "order.h"

static uint64_t last_id;
static unsigned condition = 1;

void sim_graph_condition(unsigned value) {
  condition = value;
}

struct sim_graph *sim_graph_new(void) {
  struct sim_graph *graph = calloc(1, sizeof(*graph));
  if (graph) {
    graph->id = ++last_id;
    graph->branches = 1;
  }
  return graph;
}

static void *grow(void *array, size_t n, size_t each) {
  void *larger = realloc(array, n * each);
  if (!larger)
    abort();
  return larger;
}

void sim_deps_add(struct sim_deps *deps, const size_t *nodes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    size_t at = 0;
    while (at < deps->n && deps->at[at] != nodes[i])
      at++;
    if (at < deps->n)
      continue;
    deps->at = grow(deps->at, deps->n + 1, sizeof(*deps->at));
    deps->at[deps->n++] = nodes[i];
  }
}

void sim_deps_free(struct sim_deps *deps) {
  free(deps->at);
  *deps = (struct sim_deps){0};
}

struct sim_node *sim_graph_add(struct sim_graph *graph, const struct order *order, unsigned branch,
                               const struct sim_deps *after) {
  struct sim_node *node = calloc(1, sizeof(*node));
  if (!node)
    abort();
  node->order = *order;
  node->branch = branch;
  if (after)
    sim_deps_add(&node->after, after->at, after->n);
  graph->nodes = grow(graph->nodes, graph->n + 1, sizeof(*graph->nodes));
  graph->nodes[graph->n++] = node;
  return node;
}

size_t sim_graph_find(const struct sim_graph *graph, const struct sim_node *node) {
  size_t i = 0;
  while (i < graph->n && graph->nodes[i] != node)
    i++;
  return i;
}

struct sim_node *sim_graph_add_inner(struct sim_graph *graph, enum sim_kind kind, unsigned type,
                                     struct sim_graph *const *inner, unsigned n, unsigned branch,
                                     const struct sim_deps *after) {
  struct order order = {.kind = kind};
  struct sim_node *node = sim_graph_add(graph, &order, branch, after);
  node->condition = type;
  for (unsigned i = 0; i < n && i < SIM_INNER; i++)
    node->inner[node->n_inner++] = inner[i];
  return node;
}

static struct order copy_order(const struct order *order) {
  struct order copy = *order;
  if (copy.copy_user)
    copy.user = copy.copy_user(copy.user);
  return copy;
}

static void copy_nodes(struct sim_graph *graph, const struct sim_graph *from) {
  for (size_t i = 0; i < from->n; i++) {
    const struct sim_node *node = from->nodes[i];
    struct order order = copy_order(&node->order);
    struct sim_node *copy = sim_graph_add(graph, &order, node->branch, &node->after);
    copy->condition = node->condition;
    for (unsigned k = 0; k < node->n_inner; k++)
      copy->inner[copy->n_inner++] = sim_graph_copy(node->inner[k]);
  }
  graph->branches = from->branches;
  sim_graph_hold_same(graph, from);
}

struct sim_graph *sim_graph_copy(const struct sim_graph *graph) {
  struct sim_graph *copy = graph ? sim_graph_new() : NULL;
  if (copy)
    copy_nodes(copy, graph);
  return copy;
}

static void free_nodes(struct sim_graph *graph) {
  for (size_t i = 0; i < graph->n; i++) {
    struct sim_node *node = graph->nodes[i];
    if (node->order.copy_user)
      free(node->order.user);
    for (unsigned k = 0; k < node->n_inner; k++)
      sim_graph_free(node->inner[k]);
    sim_deps_free(&node->after);
    free(node);
  }
  sim_graph_let_go(graph);
  free(graph->nodes);
  graph->nodes = NULL;
  graph->n = 0;
}

cudaError_t sim_graph_replace(struct sim_graph *graph, const struct sim_graph *by) {
  if (!graph || !by)
    return cudaErrorInvalidValue;
  sim_lock();
  free_nodes(graph);
  copy_nodes(graph, by);
  sim_unlock();
  return cudaSuccess;
}

void sim_graph_free(struct sim_graph *graph) {
  for (unsigned i = 0; i < graph->n_streams; i++)
    if (graph->streams[i])
      sim_stream_free(graph->streams[i]);
  free(graph->streams);
  free_nodes(graph);
  free(graph);
}

cudaError_t sim_graph_destroy(struct sim_graph *graph) {
  if (!graph)
    return cudaErrorInvalidValue;
  sim_lock();
  sim_graph_free(graph);
  sim_unlock();
  return cudaSuccess;
}

struct graph_launch {
  struct sim_graph *graph;
  struct CUstream_st *stream;
  struct sim_op *begin; /* the last operation of the stream before the launch */
  struct sim_op **ends; /* [graph->n]: the last operation of each node */
  bool *begun;          /* [branches]: whether the branch has an operation */
  uint32_t correlation;
  uint64_t executable;
};

static void launch_nodes(struct sim_graph *graph, struct CUstream_st *stream, uint32_t correlation,
                         uint64_t executable);

static void add_wait(struct CUstream_st *stream, struct sim_op *other) {
  if (!other || other->stream == stream)
    return;
  struct sim_op *wait = sim_op_new(stream, SIM_WAIT, NULL);
  sim_op_after(wait, other);
  sim_enqueue(wait);
}

static struct CUstream_st *stream_of(struct graph_launch *launch, unsigned branch) {
  struct sim_graph *graph = launch->graph;
  if (branch == 0)
    return launch->stream;
  if (branch >= graph->n_streams) {
    graph->streams = grow(graph->streams, branch + 1, sizeof(*graph->streams));
    while (graph->n_streams <= branch)
      graph->streams[graph->n_streams++] = NULL;
  }
  if (!graph->streams[branch])
    graph->streams[branch] = sim_stream_new(launch->stream->device, cudaStreamNonBlocking, 0);
  if (!graph->streams[branch])
    abort();
  return graph->streams[branch];
}

/* Runs a body as often as the condition says. CUPTI gets records of the first time only, as with
 * the real library. */
static void run_conditional(struct graph_launch *launch, const struct sim_node *node,
                            struct CUstream_st *stream) {
  unsigned times = node->condition == SIM_WHILE ? condition : condition != 0;
  unsigned which = node->condition == SIM_SWITCH ? condition : 0;
  if (node->condition == SIM_SWITCH)
    times = which < node->n_inner;
  for (unsigned i = 0; i < times; i++)
    launch_nodes(node->inner[which], stream, i ? 0 : launch->correlation, launch->executable);
}

static void launch_node(struct graph_launch *launch, size_t i) {
  const struct sim_node *node = launch->graph->nodes[i];
  struct CUstream_st *stream = stream_of(launch, node->branch);
  if (!launch->begun[node->branch])
    add_wait(stream, launch->begin);
  launch->begun[node->branch] = true;
  for (size_t k = 0; k < node->after.n; k++)
    add_wait(stream, launch->ends[node->after.at[k]]);
  if (node->order.kind == SIM_CHILD) {
    launch_nodes(node->inner[0], stream, launch->correlation, launch->executable);
  } else if (node->order.kind == SIM_CONDITIONAL) {
    run_conditional(launch, node, stream);
  } else {
    struct order order = copy_order(&node->order);
    sim_node_launched = launch->graph->id << 32 | (i + 1);
    sim_put(stream, &order, launch->correlation, launch->executable);
    sim_node_launched = 0;
  }
  launch->ends[i] = sim_op_keep(stream->last);
}

static void launch_nodes(struct sim_graph *graph, struct CUstream_st *stream, uint32_t correlation,
                         uint64_t executable) {
  struct graph_launch launch = {.graph = graph,
                                .stream = stream,
                                .begin = sim_op_keep(stream->last),
                                .ends = calloc(graph->n + 1, sizeof(struct sim_op *)),
                                .begun = calloc(graph->branches, 1),
                                .correlation = correlation,
                                .executable = executable};
  if (!launch.ends || !launch.begun)
    abort();
  for (size_t i = 0; i < graph->n; i++)
    launch_node(&launch, i);
  for (unsigned branch = 1; branch < graph->branches; branch++)
    if (launch.begun[branch])
      add_wait(stream, stream_of(&launch, branch)->last);
  for (size_t i = 0; i < graph->n; i++)
    sim_op_release(launch.ends[i]);
  sim_op_release(launch.begin);
  free(launch.ends);
  free(launch.begun);
}

/* On a captured stream, the graph becomes a child node of the captured graph. */
cudaError_t sim_graph_launch(struct sim_graph *graph, cudaStream_t handle, bool own) {
  cudaError_t error = cudaErrorInvalidResourceHandle;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (graph && sim_stream_is(stream)) {
    error = sim_capture_refuses(stream);
    if (!error && stream->graph) {
      struct sim_graph *child = sim_graph_copy(graph);
      sim_capture_add(stream, sim_graph_add_inner(stream->graph, SIM_CHILD, 0, &child, 1,
                                                  sim_capture_branch(stream), &stream->deps));
    } else if (!error) {
      launch_nodes(graph, stream, sim_correlation(), graph->id);
    }
  }
  sim_unlock();
  return error;
}
