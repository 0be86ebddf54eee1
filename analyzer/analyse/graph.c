/* SPDX-License-Identifier: MIT
 *
 * Which steps are sampled, and how the ranks' slices of one step become one graph.
 */
#include "graph.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Nodes kept for all samples together: about 100 bytes each while they are looked at. One step may
 * be larger than what is wanted, up to the limit. */
#define NODES_WANTED 2e6
#define NODES_LIMIT 8e6
#define MAX_SAMPLES 64u

/* Share of the run, at its end, whose detail the rings still hold. */
static double share_kept(const struct model *model) {
  double share = 1;
  for (u32 i = 0; i < model->n_ranks; i++) {
    double kept = (double)model->ranks[i].records,
           lost = (double)model->ranks[i].lost[TSCOPE_LOSS_RING];
    if (lost > 0 && kept / (kept + lost) < share)
      share = kept / (kept + lost);
  }
  return share;
}

static const char *why_no_path(struct analysis *a, double nodes_per_step) {
  const struct model *model = a->model;
  if (a->whole_run)
    return "no steps were found";
  if (model->n_ranks > 1 && !model->clock_aligned)
    return arena_printf(a->arena, "the ranks' clocks are not on one axis (%s)",
                        model->clock_method ? model->clock_method : "method not known");
  if (nodes_per_step > NODES_LIMIT)
    return arena_printf(a->arena,
                        "one step holds %.0f million events, more than memory is kept for",
                        nodes_per_step / 1e6);
  return NULL;
}

static void choose_samples(struct analysis *a, double nodes_per_step) {
  struct graph *graph = a->graph;
  double kept = share_kept(a->model);
  u32 last = a->first_step + a->n_steps;
  /* a tenth less than the rings should hold: ranks and steps differ */
  u32 usable = kept < 1 ? (u32)(kept * 0.9 * a->model->steps.n) : a->n_steps;
  usable = usable < 1 ? 1 : usable > a->n_steps ? a->n_steps : usable;
  double wanted = nodes_per_step > 0 ? NODES_WANTED / nodes_per_step : MAX_SAMPLES;
  u32 n = wanted < 1 ? 1 : wanted > MAX_SAMPLES ? MAX_SAMPLES : (u32)wanted;
  n = n > usable ? usable : n;
  for (u32 i = 0; i < n; i++)
    graph->samples[graph->n_samples++] =
        last - usable + (u32)(((u64)usable * (2 * i + 1)) / (2 * n));
}

int graph_plan(struct analysis *a) {
  const struct model *model = a->model;
  double records = 0;
  for (u32 i = 0; i < model->n_ranks; i++)
    records += (double)model->ranks[i].records;
  double per_step = a->whole_run ? 0 : records / model->steps.n / share_kept(model);
  a->graph = arena_alloc(a->arena, sizeof(*a->graph));
  if (!a->graph)
    return -ENOMEM;
  a->results->path_reason = why_no_path(a, per_step);
  if (a->results->path_reason)
    return 0;
  struct graph *graph = a->graph;
  graph->samples = arena_array(a->arena, MAX_SAMPLES, sizeof(u32));
  if (!graph->samples)
    return -ENOMEM;
  choose_samples(a, per_step);
  graph->slices =
      arena_array(a->arena, (size_t)graph->n_samples * model->n_ranks + 1, sizeof(*graph->slices));
  graph->outcomes = arena_array(a->arena, graph->n_samples + 1u, sizeof(*graph->outcomes));
  if (!graph->slices || !graph->outcomes)
    return -ENOMEM;
  for (u32 i = 0; i < graph->n_samples; i++) {
    graph->outcomes[i].by_rank = arena_array(a->arena, model->n_ranks + 1u, sizeof(i64));
    if (!graph->outcomes[i].by_rank)
      return -ENOMEM;
  }
  return 0;
}

void graph_free(struct analysis *a) {
  if (!a->graph || !a->graph->slices)
    return;
  for (size_t i = 0; i < (size_t)a->graph->n_samples * a->model->n_ranks; i++)
    slice_free(&a->graph->slices[i]);
}

static void append_slice(struct step_graph *g, struct slice *slice, u32 *n_deps) {
  u32 base = g->n;
  for (u32 i = 0; i < slice->n_nodes; i++) {
    struct node node = slice->nodes[i];
    node.launch = node.launch == INDEX_NONE ? INDEX_NONE : node.launch + base;
    node.first_dep += *n_deps;
    g->nodes[g->n++] = node;
  }
  for (u32 i = 0; i < slice->n_deps; i++)
    g->deps[(*n_deps)++] = slice->deps[i] + base;
  slice->last_host = slice->last_host == INDEX_NONE ? INDEX_NONE : slice->last_host + base;
  slice->last_device = slice->last_device == INDEX_NONE ? INDEX_NONE : slice->last_device + base;
  slice_free(slice);
}

static int append_all(struct step_graph *g) {
  size_t n = 0, n_deps = 0;
  for (u32 i = 0; i < g->n_ranks; i++) {
    n += g->slices[i].n_nodes;
    n_deps += g->slices[i].n_deps;
  }
  if (n > NODES_LIMIT * 2)
    return -E2BIG;
  g->nodes = malloc((n + 1) * sizeof(*g->nodes));
  g->deps = malloc((n_deps + 1) * sizeof(u32));
  g->base = malloc((g->n_ranks + 1) * sizeof(u32));
  if (!g->nodes || !g->deps || !g->base)
    return -ENOMEM;
  u32 deps = 0;
  g->begin = INT64_MAX;
  g->end = INT64_MIN;
  for (u32 i = 0; i < g->n_ranks; i++) {
    struct slice *slice = &g->slices[i];
    g->base[i] = g->n;
    if (!slice->present)
      continue;
    g->begin = slice->begin < g->begin ? slice->begin : g->begin;
    if (slice->end > g->end) {
      g->end = slice->end;
      g->last_rank = i;
    }
    append_slice(g, slice, &deps);
  }
  g->base[g->n_ranks] = g->n;
  g->nodes[g->n] = (struct node){.first_dep = deps};
  return 0;
}

/* A node at its collective. */
struct attendance {
  i64 start;
  u32 collective, node;
};

static int by_collective_and_start(const void *left, const void *right) {
  const struct attendance *a = left, *b = right;
  if (a->collective != b->collective)
    return a->collective < b->collective ? -1 : 1;
  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return a->node < b->node ? -1 : 1;
}

/* Brings the nodes of one collective together; their `instance` becomes the meeting's index. */
static int join_collectives(const struct analysis *a, struct step_graph *g) {
  const struct model *model = a->model;
  size_t n = 0;
  for (u32 i = 0; i < g->n; i++)
    n += g->nodes[i].kind == NODE_COLLECTIVE;
  struct attendance *met = malloc((n + 1) * sizeof(*met));
  g->members = malloc((n + 1) * sizeof(u32));
  g->meetings = malloc((n + 1) * sizeof(*g->meetings));
  if (!met || !g->members || !g->meetings) {
    free(met);
    return -ENOMEM;
  }
  n = 0;
  for (u32 i = 0; i < g->n; i++) {
    struct node *node = &g->nodes[i];
    if (node->kind != NODE_COLLECTIVE)
      continue;
    u32 arrival = node->instance;
    u32 collective = arrival == INDEX_NONE ? INDEX_NONE : model->arrivals[arrival].collective;
    node->instance = INDEX_NONE;
    if (collective != INDEX_NONE)
      met[n++] = (struct attendance){node->start, collective, i};
  }
  qsort(met, n, sizeof(*met), by_collective_and_start);
  for (size_t i = 0; i < n; i++) {
    u32 collective = met[i].collective;
    if (i == 0 || collective != met[i - 1].collective)
      g->meetings[g->n_meetings++] =
          (struct meeting){(u32)i, 0, op_is_barrier_like(model->collectives[collective].op)};
    g->members[i] = met[i].node;
    g->meetings[g->n_meetings - 1].n++;
    g->nodes[met[i].node].instance = g->n_meetings - 1;
  }
  free(met);
  return 0;
}

/* Makes the nodes' keys dense: phases first, then by open addressing in order of appearance. */
static int number_keys(struct step_graph *g) {
  u32 mask = 1023, *slots = NULL, *keys = NULL, n = 0;
  for (;;) {
    slots = calloc(mask + 1u, sizeof(u32));
    keys = malloc((mask / 2 + 1u) * sizeof(u32));
    if (!slots || !keys)
      break;
    n = 0;
    u32 i = 0;
    for (; i < g->n && n < mask / 2; i++) {
      u32 key = g->nodes[i].key;
      if (key < HOST_KEYS)
        continue;
      u32 at = (key * 0x9e3779b9u >> 8) & mask;
      while (slots[at] && keys[slots[at] - 1] != key)
        at = (at + 1) & mask;
      if (!slots[at]) {
        keys[n] = key;
        slots[at] = ++n;
      }
    }
    if (i == g->n)
      break;
    free(slots);
    free(keys);
    mask = mask * 2 + 1;
  }
  if (slots && keys)
    for (u32 i = 0; i < g->n; i++) {
      u32 key = g->nodes[i].key;
      if (key < HOST_KEYS)
        continue;
      u32 at = (key * 0x9e3779b9u >> 8) & mask;
      while (keys[slots[at] - 1] != key)
        at = (at + 1) & mask;
      g->nodes[i].key = HOST_KEYS + slots[at] - 1;
    }
  int error = slots && keys ? 0 : -ENOMEM;
  free(slots);
  free(keys);
  g->n_keys = HOST_KEYS + (error ? 0 : n);
  return error;
}

int step_graph_join(const struct analysis *a, u32 sample, struct step_graph *g) {
  *g = (struct step_graph){.n_ranks = a->model->n_ranks,
                           .slices = &a->graph->slices[(size_t)sample * a->model->n_ranks]};
  int error = append_all(g);
  if (!error)
    error = join_collectives(a, g);
  if (!error)
    error = number_keys(g);
  return error;
}

void step_graph_free(struct step_graph *g) {
  free(g->nodes);
  free(g->deps);
  free(g->base);
  free(g->meetings);
  free(g->members);
}

i64 meeting_start(const struct step_graph *g, u32 node, u32 *last) {
  const struct meeting *meeting = &g->meetings[g->nodes[node].instance];
  const u32 *members = &g->members[meeting->first];
  i64 end = g->nodes[node].end;
  u32 k = meeting->n - 1;
  /* A root that need not wait can end before others start. */
  while (!meeting->barrier && k > 0 && g->nodes[members[k]].start > end)
    k--;
  *last = members[k];
  i64 start = g->nodes[members[k]].start;
  return start < end ? start : end;
}
