/* SPDX-License-Identifier: MIT */
#include "cuda/graphs/graph_nodes.h"

#include <string.h>
#include <sys/mman.h>

#include "hooks/handle_map.h"
#include "streams/stream_numbers.h"

enum { MAX_NODES = 1 << 20, MAX_DEPTH = 8, MAX_CASES = 16 };

/* CUgraphNodeType */
enum { KERNEL_NODE, MEMCPY_NODE, MEMSET_NODE, CHILD_NODE = 4, CONDITIONAL_NODE = 13 };

enum { MAX_CONDITIONALS = 4096 };

/* The bodies of conditional nodes. An entry is used again when its node's address belongs to a node
 * again, or when the table is full and it is the oldest: mostly its graph was destroyed long
 * before. */
static struct conditional {
  const void *node;
  u16 condition;
  u16 n; /* bodies, all of them */
  cudaGraph_t bodies[MAX_CASES];
} conditionals[MAX_CONDITIONALS];
static u32 n_conditionals; /* ever entered; guarded by by_node's lock, like all of this */
HANDLE_MAP(by_node, 4 * MAX_CONDITIONALS);

/* NULL if there is no place for it. */
static struct conditional *enter(const void *node) {
  u64 place;
  if (handle_map_get(&by_node, (u64)(uintptr_t)node, &place))
    return &conditionals[place];
  struct conditional *entry = &conditionals[n_conditionals++ % MAX_CONDITIONALS];
  handle_map_remove_locked(&by_node, (u64)(uintptr_t)entry->node, &place);
  entry->node = node;
  place = (u64)(entry - conditionals);
  if (!handle_map_put_locked(&by_node, (u64)(uintptr_t)node, place))
    entry->node = NULL;
  return entry->node ? entry : NULL;
}

void graph_bodies_created(cudaGraphNode_t node, u32 condition, const cudaGraph_t *bodies, u32 n) {
  if (!tscope_lock(&by_node.lock))
    return;
  struct conditional *entry = enter(node);
  if (entry) {
    entry->condition = (u16)condition;
    entry->n = (u16)MIN(n, MAX_CASES);
    memcpy(entry->bodies, bodies, entry->n * sizeof(*bodies));
  }
  tscope_unlock(&by_node.lock);
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
  struct conditional entry = {.condition = TSCOPE_CONDITION_UNKNOWN, .n = 1};
  u64 place;
  if (tscope_lock(&by_node.lock)) {
    if (handle_map_get(&by_node, (u64)(uintptr_t)node, &place))
      entry = conditionals[place];
    tscope_unlock(&by_node.lock);
  }
  for (u32 i = 0; i < entry.n && *c->n_bodies < MAX_BODIES; i++)
    c->bodies[(*c->n_bodies)++] = (struct graph_body){entry.bodies[i], entry.condition};
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
  struct counting c = {.get_nodes = DRIVER_FUNCTION("cuGraphGetNodes"),
                       .get_type = DRIVER_FUNCTION("cuGraphNodeGetType"),
                       .get_child = DRIVER_FUNCTION("cuGraphChildGraphNodeGetGraph"),
                       .bodies = bodies,
                       .n_bodies = n_bodies,
                       .left = MAX_NODES};
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
