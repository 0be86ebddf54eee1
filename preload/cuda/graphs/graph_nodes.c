/* SPDX-License-Identifier: MIT */
#include "cuda/graphs/graph_nodes.h"

#include <sys/mman.h>

#include "hooks/handle_map.h"
#include "streams/stream_numbers.h"

enum { MAX_NODES = 1 << 20, MAX_DEPTH = 8, MAX_CASES = 16 };

/* CUgraphNodeType */
enum { KERNEL_NODE, MEMCPY_NODE, MEMSET_NODE, CHILD_NODE = 4, CONDITIONAL_NODE = 13 };

/* Bodies of conditional nodes, by node and number. An entry of a destroyed node is replaced when
 * its address belongs to a node again. */
HANDLE_MAP(bodies_of, 4096);

static u64 body_key(const void *node, u32 number) {
  return (u64)number << 56 | (u64)(uintptr_t)node;
}

/* Handles are addresses: the upper bits are free. */
static u64 body_value(const void *graph, u32 condition) {
  return (u64)condition << 56 | (u64)(uintptr_t)graph;
}

void graph_bodies_created(cudaGraphNode_t node, u32 condition, const cudaGraph_t *bodies, u32 n) {
  if (!tscope_lock(&bodies_of.lock))
    return;
  for (u32 i = 0; i < n && i < MAX_CASES; i++)
    handle_map_put_locked(&bodies_of, body_key(node, i), body_value(bodies[i], condition));
  if (n < MAX_CASES && handle_map_find(&bodies_of, body_key(node, n)))
    handle_map_put_locked(&bodies_of, body_key(node, n), 0);
  tscope_unlock(&bodies_of.lock);
}

struct counting {
  int (*get_nodes)(cudaGraph_t, void **, size_t *);
  int (*get_type)(void *, int *);
  int (*get_child)(void *, cudaGraph_t *);
  struct graph_body *bodies;
  u32 *n_bodies;
  size_t left; /* nodes that may still be counted */
  u32 counts[MEMSET_NODE + 1];
  u32 nodes;
};

static void add_bodies(struct counting *c, const void *node) {
  u64 value = 0;
  u32 n = 0;
  for (; n < MAX_CASES && handle_map_get(&bodies_of, body_key(node, n), &value) && value; n++)
    if (*c->n_bodies < MAX_BODIES)
      c->bodies[(*c->n_bodies)++] = (struct graph_body){
          (cudaGraph_t)(uintptr_t)(value & ((1ull << 56) - 1)), (u16)(value >> 56)};
  if (n == 0 && *c->n_bodies < MAX_BODIES)
    c->bodies[(*c->n_bodies)++] = (struct graph_body){NULL, TSCOPE_CONDITION_UNKNOWN};
}

static bool count_graph(struct counting *c, cudaGraph_t graph, u32 depth);

static bool count_node(struct counting *c, void *node, u32 depth) {
  int type;
  cudaGraph_t child;
  if (c->get_type(node, &type))
    return false;
  if (type == CHILD_NODE && c->get_child)
    return depth < MAX_DEPTH && !c->get_child(node, &child) && count_graph(c, child, depth + 1);
  c->nodes++;
  if (type == CONDITIONAL_NODE)
    add_bodies(c, node);
  if (type >= 0 && type <= MEMSET_NODE)
    c->counts[type]++;
  return true;
}

static bool count_graph(struct counting *c, cudaGraph_t graph, u32 depth) {
  size_t n = 0;
  if (c->get_nodes(graph, NULL, &n) || n > c->left)
    return false;
  if (!n)
    return true;
  c->left -= n;
  size_t room = n;
  void **nodes =
      mmap(NULL, n * sizeof(*nodes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (nodes == MAP_FAILED)
    return false;
  bool counted = !c->get_nodes(graph, nodes, &n) && n <= room;
  for (size_t i = 0; i < n && counted; i++)
    counted = count_node(c, nodes[i], depth);
  munmap(nodes, room * sizeof(*nodes));
  return counted;
}

void graph_nodes_count(cudaGraph_t graph, struct graph_content *content, struct graph_body *bodies,
                       u32 *n_bodies) {
  static struct tscope_symbol nodes_symbol = {.name = "cuGraphGetNodes",
                                              .sonames = tscope_driver_sonames};
  static struct tscope_symbol type_symbol = {.name = "cuGraphNodeGetType",
                                             .sonames = tscope_driver_sonames};
  static struct tscope_symbol child_symbol = {.name = "cuGraphChildGraphNodeGetGraph",
                                              .sonames = tscope_driver_sonames};
  struct counting c = {.bodies = bodies, .n_bodies = n_bodies, .left = MAX_NODES};
  c.get_nodes = tscope_resolve(&nodes_symbol, NULL);
  c.get_type = tscope_resolve(&type_symbol, NULL);
  c.get_child = tscope_resolve(&child_symbol, NULL);
  size_t n = 0;
  if (!c.get_nodes || !c.get_type || c.get_nodes(graph, NULL, &n))
    return;
  content->nodes = (u32)n;
  if (!count_graph(&c, graph, 0))
    return;
  content->nodes = c.nodes;
  content->kernels = c.counts[KERNEL_NODE];
  content->memcpys = c.counts[MEMCPY_NODE];
  content->memsets = c.counts[MEMSET_NODE];
}
