/* SPDX-License-Identifier: MIT
 *
 * Captures and graphs in the driver API. A node's handle is its address.
 */
#include "../standin.h"
#include "driver.h"

static struct sim_graph *as_graph(void *handle) {
  return handle;
}

/* The indices of the nodes in the graph, without those that are not in it. */
static struct sim_deps indices_of(const struct sim_graph *graph, const CUgraphNode *nodes,
                                  size_t n) {
  struct sim_deps deps = {0};
  for (size_t i = 0; i < n; i++) {
    size_t index = sim_graph_find(graph, (const struct sim_node *)nodes[i]);
    if (index < graph->n)
      sim_deps_add(&deps, &index, 1);
  }
  return deps;
}

TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
      sim_capture_begin(stream, own, (int)mode, NULL, NULL))

static CUresult begin_capture_to_graph(CUstream stream, bool own, CUstreamCaptureMode mode,
                                       CUgraph graph, const CUgraphNode *nodes, size_t n) {
  if (!graph)
    return CUDA_ERROR_INVALID_VALUE;
  struct sim_deps after = indices_of(as_graph(graph), nodes, n);
  cudaError_t error = sim_capture_begin(stream, own, (int)mode, as_graph(graph), &after);
  sim_deps_free(&after);
  return (CUresult)error;
}
TWINS(cuStreamBeginCaptureToGraph, _ptsz,
      (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
       size_t n, CUstreamCaptureMode mode),
      ((void)edges, begin_capture_to_graph(stream, own, mode, graph, nodes, n)))

TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph),
      sim_capture_end(stream, own, (struct sim_graph **)graph))

static CUresult capture_status(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                               bool own) {
  int found = SIM_NOT_CAPTURED;
  unsigned long long capture = 0;
  cudaError_t error = sim_capture_id(stream, own, &found, &capture, NULL);
  *status = (CUstreamCaptureStatus)found;
  if (id && found == SIM_CAPTURED)
    *id = capture;
  return (CUresult)error;
}

TWINS(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *status),
      capture_status(stream, status, NULL, own))

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **nodes, size_t *n, bool own) {
  if (nodes)
    *nodes = NULL;
  if (n)
    *n = 0;
  CUresult error = capture_status(stream, status, id, own);
  if (graph) {
    struct CUstream_st *capturing = sim_lock_stream(stream, own);
    *graph = capturing ? (CUgraph)capturing->graph : NULL;
    if (capturing)
      sim_unlock();
  }
  return error;
}

TWINS(cuStreamGetCaptureInfo_v2, _ptsz,
      (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
       const CUgraphNode **nodes, size_t *n),
      capture_info(stream, status, id, graph, nodes, n, own))

TWINS(cuStreamGetCaptureInfo_v3, _ptsz,
      (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
       const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *n),
      ((void)(edges && (*edges = NULL)), capture_info(stream, status, id, graph, nodes, n, own)))

ENTRY(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode)) {
  *mode = (CUstreamCaptureMode)sim_capture_exchange_mode((int)*mode);
  return CUDA_SUCCESS;
}

ENTRY(cuGraphCreate, (CUgraph * graph, unsigned flags)) {
  (void)flags;
  sim_lock();
  *graph = (CUgraph)sim_graph_new();
  sim_unlock();
  return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_inner(CUgraphNode *node, CUgraph graph, const CUgraphNode *nodes, size_t n,
                          enum sim_kind kind, unsigned type, struct sim_graph **inner,
                          unsigned n_inner) {
  struct sim_deps after = indices_of(as_graph(graph), nodes, n);
  *node = (CUgraphNode)sim_graph_add_inner(as_graph(graph), kind, type, inner, n_inner, 0, &after);
  sim_deps_free(&after);
  return CUDA_SUCCESS;
}

/* The child is a copy of the graph as it is now. */
ENTRY(cuGraphAddChildGraphNode,
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t n, CUgraph child)) {
  if (!graph || !child)
    return CUDA_ERROR_INVALID_VALUE;
  sim_lock();
  struct sim_graph *copy = sim_graph_copy(as_graph(child));
  CUresult error = add_inner(node, graph, nodes, n, SIM_CHILD, 0, &copy, 1);
  sim_unlock();
  return error;
}

ENTRY(cuGraphConditionalHandleCreate, (CUgraphConditionalHandle * handle, CUgraph graph,
                                       CUcontext context, unsigned value, unsigned flags)) {
  static unsigned long long last;
  (void)graph, (void)context, (void)value, (void)flags;
  *handle = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return CUDA_SUCCESS;
}

/* The array of the bodies' handles belongs to the node, as in the real driver, and lives as long.
 */
static CUresult add_condition(CUgraphNode *node, CUgraph graph, const CUgraphNode *nodes, size_t n,
                              CUDA_CONDITIONAL_NODE_PARAMS *parameters) {
  struct sim_graph *bodies[SIM_INNER];
  if (!parameters->size || parameters->size > SIM_INNER)
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < parameters->size; i++)
    bodies[i] = sim_graph_new();
  CUresult error = add_inner(node, graph, nodes, n, SIM_CONDITIONAL, (unsigned)parameters->type,
                             bodies, parameters->size);
  parameters->phGraph_out = (CUgraph *)(void *)((struct sim_node *)*node)->inner;
  return error;
}

static CUresult add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *nodes, size_t n,
                         CUgraphNodeParams *parameters) {
  if (!graph || !node || !parameters)
    return CUDA_ERROR_INVALID_VALUE;
  if (parameters->type == CU_GRAPH_NODE_TYPE_GRAPH)
    return cuGraphAddChildGraphNode(node, graph, nodes, n, parameters->graph.graph);
  if (parameters->type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return CUDA_ERROR_NOT_SUPPORTED;
  sim_lock();
  CUresult error = add_condition(node, graph, nodes, n, &parameters->conditional);
  sim_unlock();
  return error;
}

#undef cuGraphAddNode
ENTRY(cuGraphAddNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t n,
                       CUgraphNodeParams *parameters)) {
  return add_node(node, graph, nodes, n, parameters);
}

ENTRY(cuGraphAddNode_v2, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                          const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *parameters)) {
  (void)edges;
  return add_node(node, graph, nodes, n, parameters);
}

static CUresult copy_graph(void **copy, CUgraph graph) {
  sim_lock();
  *copy = sim_graph_copy(as_graph(graph));
  sim_unlock();
  return *copy ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphInstantiateWithFlags,
      (CUgraphExec * executable, CUgraph graph, unsigned long long flags)) {
  (void)flags;
  return copy_graph((void **)executable, graph);
}

TWINS(cuGraphInstantiateWithParams, _ptsz,
      (CUgraphExec * executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
      (parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS,
       copy_graph((void **)executable, graph)))

ENTRY(cuGraphClone, (CUgraph * clone, CUgraph graph)) {
  return copy_graph((void **)clone, graph);
}

/* The executable takes over the graph's work. */
ENTRY(cuGraphExecUpdate_v2,
      (CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *result)) {
  if (result)
    result->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return (CUresult)sim_graph_replace(as_graph(executable), as_graph(graph));
}

TWINS(cuGraphLaunch, _ptsz, (CUgraphExec executable, CUstream stream),
      sim_graph_launch(as_graph(executable), stream, own))

TWINS(cuGraphUpload, _ptsz, (CUgraphExec executable, CUstream stream),
      ((void)executable, (void)stream, CUDA_SUCCESS))

ENTRY(cuGraphDestroy, (CUgraph graph)) {
  return (CUresult)sim_graph_destroy(as_graph(graph));
}

ENTRY(cuGraphExecDestroy, (CUgraphExec executable)) {
  return (CUresult)sim_graph_destroy(as_graph(executable));
}

ENTRY(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n)) {
  const struct sim_graph *of = as_graph(graph);
  if (nodes)
    for (size_t i = 0; i < *n; i++)
      nodes[i] = i < of->n ? (CUgraphNode)of->nodes[i] : NULL;
  if (!nodes || *n > of->n)
    *n = of->n;
  return CUDA_SUCCESS;
}

ENTRY(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type)) {
  static const CUgraphNodeType types[] = {[SIM_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
                                          [SIM_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
                                          [SIM_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,
                                          [SIM_EVENT] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                          [SIM_WAIT] = CU_GRAPH_NODE_TYPE_EMPTY,
                                          [SIM_CALL] = CU_GRAPH_NODE_TYPE_HOST,
                                          [SIM_COLLECTIVE] = CU_GRAPH_NODE_TYPE_KERNEL,
                                          [SIM_CHILD] = CU_GRAPH_NODE_TYPE_GRAPH,
                                          [SIM_CONDITIONAL] = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  *type = types[((const struct sim_node *)node)->order.kind];
  return CUDA_SUCCESS;
}

ENTRY(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *graph)) {
  const struct sim_node *of = (const struct sim_node *)node;
  if (of->order.kind != SIM_CHILD)
    return CUDA_ERROR_INVALID_VALUE;
  *graph = (CUgraph)of->inner[0];
  return CUDA_SUCCESS;
}

SIM_API void standin_condition(unsigned value) {
  sim_lock();
  sim_graph_condition(value);
  sim_unlock();
}
