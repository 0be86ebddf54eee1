/* SPDX-License-Identifier: MIT
 *
 * The slices of one rank, written or read.
 */

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/path/path_labels.h"
#include "analyses/path/path_slice.h"

/* What names the nodes: each label once, in the order of the nodes that it is first in. */
static void write_labels(struct path_labels *labels, const struct slice *slice, struct carrier *c) {
  for (u32 i = 0; i < slice->n_nodes; i++) {
    u32 number = slice->nodes[i].label;
    bool is_kernel, known = false;
    for (u32 k = i; k > 0 && i - k < 64 && !known; k--)
      known = slice->nodes[k - 1].label == number;
    const char *text = known ? NULL : path_labels_find(labels, number, &is_kernel);
    if (!text)
      continue;
    CARRY(c, &text);
    CARRY(c, &number);
    CARRY(c, &is_kernel);
  }
  const char *end = NULL;
  CARRY(c, &end);
}

static void read_labels(struct path_labels *labels, struct carrier *c) {
  for (;;) {
    const char *text = NULL;
    u32 number = 0;
    bool is_kernel = false;
    CARRY(c, &text);
    if (!text)
      return;
    CARRY(c, &number);
    CARRY(c, &is_kernel);
    if (!c->bad)
      path_labels_add(labels, number, text, is_kernel);
  }
}

static void carry_nodes(struct slice *slice, struct carrier *c) {
  static const struct column columns[] = {
      COLUMN_LASTING(struct node, start, end),
      EACH_COLUMN(struct node, key, label, launch, line, first_dep, kind, phase, marks, call)};
  /* The last node only closes first_dep. */
  u32 n = carry_count(c, slice->n_nodes + 1, LENGTH_OF(columns));
  if (c->reads) {
    slice->nodes = memory_zeroed(size_sum(n, 1), sizeof(*slice->nodes));
    slice->n_nodes = n ? n - 1 : 0;
  }
  carry_columns(c, slice->nodes, n, sizeof(*slice->nodes), COLUMNS(columns));
}

static void carry_deps(struct slice *slice, struct carrier *c) {
  slice->n_deps = carry_count(c, slice->n_deps, 1);
  if (c->reads)
    slice->deps = memory_zeroed(size_sum(slice->n_deps, 1), sizeof(*slice->deps));
  FOR_EACH_CHANGED(slice->deps, slice->n_deps, dep)
    CARRY(c, dep);
}

static void carry_step_ends(struct slice *slice, u32 n, struct carrier *c) {
  if (c->reads)
    slice->last_of_step = memory_zeroed(size_sum(n, 1), sizeof(*slice->last_of_step));
  FOR_EACH_CHANGED(slice->last_of_step, n, one) {
    CARRY_EACH(c, one, node, other, rest);
  }
}

static bool is_node(const struct slice *slice, u32 node) {
  return node < slice->n_nodes || node == INDEX_NONE;
}

static void check_slice(const struct analysis *a, struct slice *slice, u32 n, u32 rank,
                        struct carrier *c) {
  bool good = !c->bad && is_node(slice, slice->last_host) && is_node(slice, slice->last_device);
  u32 before = 0;
  for (u32 i = 0; i < slice->n_nodes && good; i++) {
    struct node *node = &slice->nodes[i];
    node->rank = rank;
    good = is_node(slice, node->launch) && is_node(slice, node_calling(node)) &&
           node->first_dep >= before && node->first_dep <= slice->n_deps &&
           node->phase < HOST_KEYS &&
           (node->kind != NODE_COLLECTIVE || node->arrival < a->model->n_arrivals ||
            node->arrival == INDEX_NONE);
    before = node->first_dep;
  }
  good = good && slice->nodes[slice->n_nodes].first_dep >= before &&
         slice->nodes[slice->n_nodes].first_dep <= slice->n_deps;
  for (u32 i = 0; i < slice->n_deps && good; i++)
    good = slice->deps[i] < slice->n_nodes;
  for (u32 i = 0; i < n && good; i++)
    good =
        is_node(slice, slice->last_of_step[i].node) && is_node(slice, slice->last_of_step[i].other);
  c->bad |= !good;
}

static void carry_slice(struct analysis *a, u32 sample, u32 rank, struct carrier *c) {
  struct graph *graph = a->graph;
  struct slice *slice = &graph->slices[(size_t)sample * a->model->n_ranks + rank];
  u32 n = graph->samples[sample].n;
  CARRY_EACH(c, slice, present, on_gpu, ends_on_gpu, begin, end, host_end, workers, workers_busy,
             workers_busy_most, one_worker_is_busier, busiest_worker);
  if (!slice->present || c->bad)
    return;
  CARRY_EACH(c, slice, last_host, last_device);
  carry_nodes(slice, c);
  carry_deps(slice, c);
  carry_step_ends(slice, n, c);
  if (c->reads) {
    read_labels(graph->labels, c);
    check_slice(a, slice, n, rank, c);
    if (!c->bad)
      return;
    slice_free_all(slice);
    *slice = (struct slice){0};
  } else {
    write_labels(graph->labels, slice, c);
  }
}

void slice_carry(struct analysis *a, u32 rank, struct carrier *c) {
  u32 n = a->graph ? a->graph->n_samples : 0;
  u32 samples = n;
  CARRY(c, &samples);
  c->bad |= samples != n;
  for (u32 i = 0; i < n && !c->bad; i++)
    carry_slice(a, i, rank, c);
}
