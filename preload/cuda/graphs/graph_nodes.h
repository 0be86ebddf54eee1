/* SPDX-License-Identifier: MIT
 *
 * The nodes of a graph as the driver lists them, including those of graphs within it. The driver
 * does not list the bodies of conditional nodes: they are known from the creation of the node.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/graphs/graph_content.h"

enum { MAX_BODIES = 64 }; /* most bodies of one graph that are recorded */

/* Part of a graph that runs as often as the GPU decides. */
struct graph_body {
  cudaGraph_t graph; /* NULL: its creation was not seen, so it is not known */
  u16 condition;     /* enum tscope_condition */
};

/* Counts a graph's nodes by kind, if the driver lists them; else `content` does not change. If
 * there are too many nodes, it sets only `nodes`. Stores the bodies in the graph, up to MAX_BODIES
 * in total; `n_bodies` is their number so far. */
void graph_nodes_count(cudaGraph_t graph, struct graph_content *content, struct graph_body *bodies,
                       u32 *n_bodies);

/* A conditional node was created, with this many bodies. */
void graph_bodies_created(cudaGraphNode_t node, u32 condition, const cudaGraph_t *bodies, u32 n);
