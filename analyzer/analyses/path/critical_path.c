/* SPDX-License-Identifier: MIT
 *
 * The longest chain of work in which each piece had to follow the one before, across ranks. The
 * walk begins at the last end of a sample and goes back, always to the predecessor that finished
 * last; at a collective it goes over to the member that arrived last. The pieces on the way add up
 * to the sample exactly, so each nanosecond has one category and one rank.
 */
#include <malloc.h>
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/path/path_graph.h"
#include "analyses/path/path_labels.h"
#include "analyses/path/path_run.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/parallel.h"

static const char *const category_names[PATH_CATEGORIES] = {
    [PATH_COMPUTE] = "compute",    [PATH_COMMUNICATION] = "communication",
    [PATH_MEMCPY] = "memory copy", [PATH_LAUNCH] = "launch",
    [PATH_INPUT] = "input",        [PATH_HOST] = "host",
    [PATH_GPU_AWAY] = "GPU away",  [PATH_UNKNOWN] = "unknown"};

static const char *const edge_names[PATH_EDGES] = {[PATH_EDGE_THREAD] = "thread",
                                                   [PATH_EDGE_STREAM] = "stream",
                                                   [PATH_EDGE_LAUNCH] = "launch",
                                                   [PATH_EDGE_EVENT] = "event",
                                                   [PATH_EDGE_INFERRED] = "inferred",
                                                   [PATH_EDGE_SYNC] = "sync",
                                                   [PATH_EDGE_HANDOVER] = "other thread",
                                                   [PATH_EDGE_COLLECTIVE] = "collective",
                                                   [PATH_EDGE_BATCH] = "batch"};

const char *path_category_name(u8 category) {
  return category_names[category];
}

const char *path_edge_name(u8 edge) {
  return edge_names[edge];
}

/* What the host does in a phase: in a job without GPU the phases are the compute. */
static enum path_category host_category(const struct sample_graph *g, u32 rank, u8 phase) {
  if (phase == TSCOPE_PHASE_DATA)
    return PATH_INPUT;
  if (g->slices[rank].on_gpu || phase == 0 || phase == TSCOPE_PHASE_USER)
    return PATH_HOST;
  return PATH_COMPUTE;
}

static enum path_category node_category(const struct sample_graph *g, const struct node *node) {
  switch (node->kind) {
  case NODE_HOST:
    return host_category(g, node->rank, node->phase);
  case NODE_LAUNCH:
    return PATH_LAUNCH;
  case NODE_KERNEL:
    return PATH_COMPUTE;
  case NODE_MEMCPY:
  case NODE_MEMSET:
    return PATH_MEMCPY;
  case NODE_COLLECTIVE:
    return PATH_COMMUNICATION;
  default:
    return PATH_UNKNOWN; /* blocked, and no record says on what */
  }
}

struct path_walk {
  const struct sample_graph *g;
  struct sample_outcome *out;
  u32 node;
  i64 now; /* everything after it has its place on the path */
};

static void add_piece(struct path_walk *w, i64 until, enum path_category category, u32 rank,
                      u32 label) {
  if (until >= w->now)
    return;
  VECTOR_PUSH(&w->out->segments,
              ((struct path_segment){until, w->now, label, rank, (u8)category, PATH_EDGE_NONE}));
  w->out->by_category[category] += w->now - until;
  w->out->by_rank[rank] += w->now - until;
  w->now = until;
}

/* How the path came to the piece that was added last. */
static void record_edge(struct path_walk *w, enum path_edge edge) {
  w->out->crossed[edge]++;
  if (w->out->segments.n)
    w->out->segments.at[w->out->segments.n - 1].edge = (u8)edge;
}

/* The dependency that ended last, and when; INDEX_NONE if there is none. */
static u32 latest_dep(const struct sample_graph *g, u32 node, i64 *end) {
  u32 latest = INDEX_NONE;
  for (u32 i = g->nodes[node].first_dep; i < g->nodes[node + 1].first_dep; i++)
    if (latest == INDEX_NONE || g->nodes[g->deps[i]].end > *end) {
      latest = g->deps[i];
      *end = g->nodes[latest].end;
    }
  return latest;
}

/* From the end of a node to its start, or over to what held it up. True when the walk is at the
 * start of w->node, false when it went on to the end of another node. */
static bool cross_node(struct path_walk *w, bool at_end) {
  const struct sample_graph *g = w->g;
  const struct node *node = &g->nodes[w->node];
  if (at_end && node->kind == NODE_BLOCKED) {
    i64 end = INT64_MIN;
    u32 from = latest_dep(g, w->node, &end);
    if (from != INDEX_NONE && end >= node->start) {
      add_piece(w, end, PATH_LAUNCH, node->rank, LABEL_WAKE_UP);
      record_edge(w, NODE_ON_DEVICE(g->nodes[from].kind) ? PATH_EDGE_SYNC : PATH_EDGE_HANDOVER);
      w->node = from;
      return false;
    }
    if (from != INDEX_NONE) { /* it had ended before, so nothing waited for it */
      add_piece(w, node->start, host_category(g, node->rank, 0), node->rank, node->label);
      return true;
    }
  }
  if (at_end && node->is_batch && node->launch != INDEX_NONE) {
    add_piece(w, g->nodes[node->launch].end, PATH_INPUT, node->rank, node->label);
    record_edge(w, PATH_EDGE_BATCH);
    w->node = node->launch;
    return false;
  }
  if (at_end && joins_others(g, w->node)) {
    u32 last;
    i64 start = join_start(g, w->node, &last);
    add_piece(w, start, PATH_COMMUNICATION, node->rank, node->label);
    if (g->nodes[last].rank != node->rank)
      record_edge(w, PATH_EDGE_COLLECTIVE);
    bool by_call = comes_by_call(g, w->node, last);
    w->node = last;
    return !by_call;
  }
  add_piece(w, node->start, node_category(g, node), node->rank, node->label);
  return true;
}

/* What took the time from `end`, when all that is known to have held up a node was over, until it
 * started. */
static enum path_category gap_before(const struct sample_graph *g, const struct node *node, i64 end,
                                     u32 *label) {
  *label = LABEL_HOST_GAP;
  if (!NODE_ON_DEVICE(node->kind))
    return host_category(g, node->rank, phase_of_gap(node));
  *label = LABEL_NOT_KNOWN;
  if (node->launch == INDEX_NONE && !node->queued)
    return PATH_UNKNOWN;
  bool long_before = g->slices[node->rank].on_gpu && node->start - end > LONGEST_LATENCY;
  if (!long_before) {
    *label = LABEL_LAUNCH_LATENCY;
    return PATH_LAUNCH;
  }
  *label = node->late ? LABEL_GPU_AWAY : LABEL_NOT_RECORDED;
  return node->late ? PATH_GPU_AWAY : PATH_UNKNOWN;
}

/* From the start of a node to the end of the predecessor that finished last. False at the
 * beginning of the sample. */
static bool go_back(struct path_walk *w, bool *at_end) {
  const struct sample_graph *g = w->g;
  u32 index = w->node, before = INDEX_NONE;
  const struct node *node = &g->nodes[index];
  bool device = NODE_ON_DEVICE(node->kind);
  i64 end = INT64_MIN;
  enum path_edge edge = device ? PATH_EDGE_STREAM : PATH_EDGE_THREAD;
  *at_end = true;
  if (!node->alone) {
    before = index - 1;
    end = g->nodes[before].end;
  }
  if (node->kind != NODE_BLOCKED) {
    i64 dep_end = INT64_MIN;
    u32 dep = latest_dep(g, index, &dep_end);
    if (dep != INDEX_NONE && dep_end > end) {
      before = dep;
      end = dep_end;
      edge = !device ? PATH_EDGE_HANDOVER : node->inferred ? PATH_EDGE_INFERRED : PATH_EDGE_EVENT;
    }
  }
  if (device && node->launch != INDEX_NONE) {
    i64 launched = g->nodes[node->launch].end;
    launched = MIN(launched, node->start);
    if (before == INDEX_NONE || launched > end) {
      before = node->launch;
      end = launched;
      edge = PATH_EDGE_LAUNCH;
      *at_end = false;
    }
  }
  end = before == INDEX_NONE ? g->slices[node->rank].begin : end;
  u32 label;
  enum path_category gap = gap_before(g, node, end, &label);
  add_piece(w, end, gap, node->rank, label);
  if (before != INDEX_NONE)
    record_edge(w, edge);
  w->node = before;
  return before != INDEX_NONE;
}

/* Where a rank's sample ends: at the last node of its host, or of its device if the device finished
 * later. INDEX_NONE if there is none. */
static u32 sample_last_node(const struct slice *slice) {
  bool device = slice->ends_on_gpu && slice->last_device != INDEX_NONE;
  return device ? slice->last_device : slice->last_host;
}

void critical_path_walk(const struct sample_graph *g, struct sample_outcome *out) {
  const struct slice *last = &g->slices[g->last_rank];
  struct path_walk w = {.g = g, .out = out, .node = sample_last_node(last), .now = g->end};
  bool at_end = true;
  if (w.node != INDEX_NONE)
    add_piece(
        &w, g->nodes[w.node].end,
        NODE_ON_DEVICE(g->nodes[w.node].kind) ? PATH_UNKNOWN : host_category(g, g->last_rank, 0),
        g->last_rank, NODE_ON_DEVICE(g->nodes[w.node].kind) ? LABEL_NOT_KNOWN : LABEL_HOST_GAP);
  /* On the way back each node is crossed and left at most once. Clocks that contradict each other
   * must not make the walk endless. */
  for (u64 left = 2ull * g->n + 2; w.node != INDEX_NONE && left; left--) {
    if (!cross_node(&w, at_end)) {
      at_end = true;
      continue;
    }
    if (!go_back(&w, &at_end))
      break;
  }
  out->length = g->end - w.now;
}

static void join_sample(void *user, u32 sample, unsigned worker) {
  struct analysis *a = user;
  (void)worker;
  a->graph->outcomes[sample].valid =
      sample_graph_join(a, sample, &a->graph->joined[sample]) && a->graph->joined[sample].n;
}

static void analyse_sample(void *user, u32 sample, unsigned worker) {
  struct analysis *a = user;
  struct graph *graph = a->graph;
  struct sample_outcome *out = &graph->outcomes[sample];
  struct sample_graph *joined = &graph->joined[sample];
  if (!out->valid)
    return;
  critical_path_walk(joined, out);
  replay_new(a, sample, joined, &graph->runs[worker], out, &graph->replays[sample]);
}

static void report_path(struct analysis *a) {
  struct results *r = a->results;
  const struct graph *graph = a->graph;
  i64 length = 0, by_category[PATH_CATEGORIES] = {0};
  r->path_by_category = arena_array(a->arena, PATH_CATEGORIES, sizeof(*r->path_by_category));
  r->path_by_rank = arena_array(a->arena, a->model->n_ranks, sizeof(double));
  for (u32 i = 0; i < graph->n_samples; i++)
    r->path_steps_used += graph->outcomes[i].valid ? graph->samples[i].n : 0;
  if (r->path_steps_used == 0) {
    r->path_reason = overlap_why_no_steps(a);
    return;
  }
  double n = r->path_steps_used;
  FOR_EACH(graph->outcomes, graph->n_samples, out) {
    if (!out->valid)
      continue;
    length += out->length;
    for (u32 k = 0; k < PATH_CATEGORIES; k++)
      by_category[k] += out->by_category[k];
    for (u32 k = 0; k < a->model->n_ranks; k++)
      r->path_by_rank[k] += ns_to_ms(out->by_rank[k]) / n;
  }
  r->path_length_ms = ns_to_ms(length) / n;
  r->n_path_by_category = PATH_CATEGORIES;
  path_labels_report(a, n);
  for (u32 k = 0; k < PATH_CATEGORIES; k++)
    r->path_by_category[k] = (struct share){category_names[k], ns_to_ms(by_category[k]) / n};
}

/* All slices are free now, but the C library keeps their memory, in pieces. Times of small graphs
 * are put there again; those of a large one, of which fewer replays go side by side, are too long
 * for the pieces: so these go back to the kernel. */
static void give_slices_back(const struct graph *graph) {
  if (ANY(graph->joined, graph->n_samples, one, side_by_side(one) < MOST_SIDE_BY_SIDE))
    malloc_trim(0);
}

void critical_path_analyse(struct analysis *a) {
  struct results *r = a->results;
  r->path_selfcheck = NAN;
  if (r->path_reason)
    return;
  a->graph->n_threads = parallel_threads(INDEX_NONE, a->options->threads);
  a->graph->runs = memory_zeroed(a->graph->n_threads, sizeof(*a->graph->runs));
  parallel_for(a->graph->n_samples, a->options->threads, join_sample, a);
  give_slices_back(a->graph);
  parallel_for(a->graph->n_samples, a->options->threads, analyse_sample, a);
  report_path(a);
}
