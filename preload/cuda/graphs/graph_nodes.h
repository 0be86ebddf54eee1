/* SPDX-License-Identifier: MIT
 *
 * The nodes of a graph as the driver lists them, with those of graphs within it. Of conditional
 * nodes the driver lists no bodies: they are known from when the node was made.
 */
#ifndef TSCOPE_GRAPH_NODES_H
#define TSCOPE_GRAPH_NODES_H

#include <cuda_runtime_api.h>

#include "cuda/graphs/graph_content.h"

enum { MOST_BODIES = 64 }; /* of one graph that are recorded; further ones are not */

/* Part of a graph that runs as often as the GPU decides. */
struct graph_body {
  cudaGraph_t graph; /* NULL: its creation was not seen, so it is not known */
  u16 condition;     /* enum tscope_condition */
};

/* Counts a graph's nodes by kind, if the driver lists them: else `content` is as it was. With too
 * many to look at, `nodes` alone. Writes down the bodies in the graph, up to MOST_BODIES in all;
 * `n_bodies` says how many there are so far. */
void graph_nodes_count(cudaGraph_t graph, struct graph_content *content, struct graph_body *bodies,
                       u32 *n_bodies);

/* A conditional node was made, with so many bodies. */
void graph_bodies_made(cudaGraphNode_t node, u32 condition, const cudaGraph_t *bodies, u32 n);

#endif
