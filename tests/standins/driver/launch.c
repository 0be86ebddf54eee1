/* SPDX-License-Identifier: MIT
 *
 * Launches, and graphs.
 */
#include "launch.h"

#include "../standin.h"
#include "driver.h"

static CUresult launch(CUfunction function, const unsigned grid[3], const unsigned block[3],
                       CUstream stream, bool own, void **extra) {
  const char *name = driver_kernel_name(function);
  if (!name)
    return CUDA_ERROR_INVALID_HANDLE;
  for (int i = 0; i < 3; i++)
    if (!grid[i] || !block[i])
      return CUDA_ERROR_INVALID_VALUE;
  struct order order = {.kind = SIM_KERNEL,
                        .name = name,
                        .duration = sim_kernel_duration(name),
                        .grid = {grid[0], grid[1], grid[2]},
                        .block = {block[0], block[1], block[2]}};
  if (extra && extra[0] == STANDIN_ORDER)
    order = *(const struct order *)extra[1];
  return (CUresult)sim_submit(stream, own, &order, false);
}

#define GEOMETRY                                                                                   \
  (unsigned[]){gx, gy, gz}, (unsigned[]) {                                                         \
    bx, by, bz                                                                                     \
  }

TWINS(cuLaunchKernel, _ptsz,
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
       unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra),
      ((void)shared, (void)parameters, launch(function, GEOMETRY, stream, own, extra)))

TWINS(cuLaunchCooperativeKernel, _ptsz,
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
       unsigned bz, unsigned shared, CUstream stream, void **parameters),
      ((void)shared, (void)parameters, launch(function, GEOMETRY, stream, own, NULL)))

static CUresult launch_config(const CUlaunchConfig *config, CUfunction function, bool own,
                              void **extra) {
  return launch(function, (unsigned[]){config->gridDimX, config->gridDimY, config->gridDimZ},
                (unsigned[]){config->blockDimX, config->blockDimY, config->blockDimZ},
                config->hStream, own, extra);
}

TWINS(cuLaunchKernelEx, _ptsz,
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
      ((void)parameters, launch_config(config, function, own, extra)))

TWINS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void *user),
      sim_call(function, user, stream, own))

/* Graphs. */
static struct sim_graph *as_graph(void *handle) {
  return handle;
}

TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
      sim_capture_begin(stream, own, (int)mode))

TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph),
      sim_capture_end(stream, own, (struct sim_graph **)graph))

static CUresult capture_status(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                               bool own) {
  unsigned long long capture = 0;
  cudaError_t error = sim_capture_id(stream, own, &capture);
  *status = capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (id)
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

static CUresult instantiate(CUgraphExec *executable, CUgraph graph) {
  *executable = (CUgraphExec)sim_graph_copy(as_graph(graph));
  return *executable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphInstantiateWithFlags,
      (CUgraphExec * executable, CUgraph graph, unsigned long long flags)) {
  (void)flags;
  return instantiate(executable, graph);
}

TWINS(cuGraphInstantiateWithParams, _ptsz,
      (CUgraphExec * executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
      (parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS, instantiate(executable, graph)))

ENTRY(cuGraphClone, (CUgraph * clone, CUgraph graph)) {
  return instantiate((CUgraphExec *)clone, graph);
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
  return (CUresult)sim_graph_free(as_graph(graph));
}

ENTRY(cuGraphExecDestroy, (CUgraphExec executable)) {
  return (CUresult)sim_graph_free(as_graph(executable));
}

/* Nodes are the graph's orders; a node's handle is the order's address. */
ENTRY(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n)) {
  const struct sim_graph *of = as_graph(graph);
  if (nodes)
    for (size_t i = 0; i < *n; i++)
      nodes[i] = i < of->n ? (CUgraphNode)&of->orders[i] : NULL;
  if (!nodes || *n > of->n)
    *n = of->n;
  return CUDA_SUCCESS;
}

ENTRY(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type)) {
  static const CUgraphNodeType types[] = {
      [SIM_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,    [SIM_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
      [SIM_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,      [SIM_EVENT] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      [SIM_WAIT] = CU_GRAPH_NODE_TYPE_EMPTY,       [SIM_CALL] = CU_GRAPH_NODE_TYPE_HOST,
      [SIM_COLLECTIVE] = CU_GRAPH_NODE_TYPE_KERNEL};
  *type = types[((const struct order *)node)->kind];
  return CUDA_SUCCESS;
}
