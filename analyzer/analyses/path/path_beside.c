/* SPDX-License-Identifier: MIT
 *
 * How much of a rank's compute may run side by side with the rest of it once nothing waits: what is
 * on other streams than its busiest, of names that some rank is seen to run beside other work.
 */
#include <math.h>

#include "analyses/path/path_graph.h"
#include "base/checked_memory.h"
#include "base/sorting.h"

#define LEAST_SHOWN 3u /* that work of a name runs side by side with that of another stream */

/* A rank's nodes of one stream. The next begins with a node that is alone. */
struct stream {
  u32 first, end;
  i64 compute;
};

static struct stream next_stream(const struct sample_graph *g, u32 first, u32 end) {
  struct stream stream = {.first = first, .end = first};
  for (u32 n = first; n < end && (n == first || !g->nodes[n].alone); n++) {
    stream.end = n + 1;
    stream.compute += g->nodes[n].kind == NODE_KERNEL ? g->nodes[n].end - g->nodes[n].start : 0;
  }
  return stream;
}

/* Calls visit(c, node) for each kernel on other streams than the busiest of its rank. */
struct side_work {
  const struct sample_graph *g;
  u32 *shown; /* [n_keys] */
  struct stream busiest;
  double beside, compute; /* on other streams, of names that run side by side; on all */
};

static void each_aside(struct side_work *c, u32 rank, void (*visit)(struct side_work *, u32)) {
  const struct sample_graph *g = c->g;
  u32 end = g->base[rank + 1];
  c->busiest = (struct stream){0};
  for (u32 n = g->base[rank]; n < end;) {
    struct stream stream = next_stream(g, n, end);
    c->busiest = stream.compute > c->busiest.compute ? stream : c->busiest;
    c->compute += (double)stream.compute;
    n = stream.end;
  }
  for (u32 n = g->base[rank]; n < end; n++)
    if (g->nodes[n].kind == NODE_KERNEL && (n < c->busiest.first || n >= c->busiest.end))
      visit(c, n);
}

/* For half of the time of the shorter of both. */
static void note_shown(struct side_work *c, u32 n) {
  const struct node *nodes = c->g->nodes, *node = &nodes[n];
  for (u32 i = FIRST_NOT(c->busiest.first, c->busiest.end, k, nodes[k].end <= node->start);
       i < c->busiest.end && nodes[i].start < node->end; i++) {
    i64 both = MIN(node->end, nodes[i].end) - MAX(node->start, nodes[i].start);
    i64 shorter = MIN(node->end - node->start, nodes[i].end - nodes[i].start);
    bool shown = nodes[i].kind == NODE_KERNEL && 2 * both >= shorter && both > 0;
    c->shown[node->key] += shown;
    c->shown[nodes[i].key] += shown;
  }
}

static void add_beside(struct side_work *c, u32 n) {
  const struct node *node = &c->g->nodes[n];
  if (c->shown[node->key] >= LEAST_SHOWN)
    c->beside += (double)(node->end - node->start);
}

void graph_find_beside(const struct analysis *a) {
  struct graph *graph = a->graph;
  u32 n_ranks = a->model->n_ranks;
  SCOPED double *compute = memory_zeroed(size_sum(n_ranks, 1), sizeof(double));
  graph->beside = arena_array(a->arena, n_ranks, sizeof(double));
  for (u32 s = 0; s < graph->n_samples; s++) {
    const struct sample_graph *g = &graph->joined[s];
    if (!graph->outcomes[s].valid)
      continue;
    SCOPED u32 *shown = memory_zeroed(size_sum(g->n_keys, 1), sizeof(*shown));
    struct side_work c = {.g = g, .shown = shown};
    for (u32 rank = 0; rank < n_ranks; rank++)
      each_aside(&c, rank, note_shown);
    for (u32 rank = 0; rank < n_ranks; rank++) {
      c.beside = c.compute = 0;
      each_aside(&c, rank, add_beside);
      graph->beside[rank] += c.beside;
      compute[rank] += c.compute;
    }
  }
  for (u32 rank = 0; rank < n_ranks; rank++)
    graph->beside[rank] /= fmax(1, compute[rank]);
}
