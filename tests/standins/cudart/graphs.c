/* SPDX-License-Identifier: MIT
 *
 * CUDA graphs, as far as capturing one stream and launching the result goes: the captured work is
 * replayed in order. Events across streams are not captured.
 */
#include <stdlib.h>

#include "cudart.h"

struct sim_graph {
  uint64_t id;
  struct order *orders;
  size_t n;
};

static uint64_t last_id;

static struct sim_graph *graph_new(void) {
  struct sim_graph *graph = calloc(1, sizeof *graph);
  if (graph)
    graph->id = ++last_id;
  return graph;
}

void graph_capture(struct sim_graph *graph, const struct order *order) {
  graph->orders = realloc(graph->orders, (graph->n + 1) * sizeof *graph->orders);
  if (!graph->orders)
    abort();
  graph->orders[graph->n++] = *order;
}

static cudaError_t begin_capture(cudaStream_t handle, bool own) {
  cudaError_t error = cudaErrorIllegalState;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (sim_stream_is(stream) && !stream->legacy && !stream->graph) {
    stream->graph = graph_new();
    error = cudaSuccess;
  }
  sim_unlock();
  return remember(error);
}
TWINS(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
      ((void)mode, begin_capture(stream, own)))

static cudaError_t end_capture(cudaStream_t handle, cudaGraph_t *graph, bool own) {
  cudaError_t error = cudaErrorIllegalState;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (sim_stream_is(stream) && stream->graph) {
    *graph = (cudaGraph_t)stream->graph;
    stream->graph = NULL;
    error = cudaSuccess;
  }
  sim_unlock();
  return remember(error);
}
TWINS(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph),
      end_capture(stream, graph, own))

static cudaError_t is_capturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                unsigned long long *id, bool own) {
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  bool known = sim_stream_is(stream);
  const struct sim_graph *graph = known ? stream->graph : NULL;
  *status = graph ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id && graph)
    *id = graph->id;
  sim_unlock();
  return remember(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
TWINS(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
      is_capturing(stream, status, NULL, own))

/* Both spellings begin with the same three parameters; what follows is optional and left alone. */
CUDART_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                   enum cudaStreamCaptureStatus *status,
                                                   unsigned long long *id);
CUDART_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                   enum cudaStreamCaptureStatus *status,
                                                   unsigned long long *id) {
  return is_capturing(stream, status, id, false);
}

CUDART_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                enum cudaStreamCaptureStatus *status,
                                                unsigned long long *id, cudaGraph_t *graph,
                                                const cudaGraphNode_t **dependencies,
                                                const cudaGraphEdgeData **edges, size_t *n) {
  if (graph)
    *graph = NULL;
  if (dependencies)
    *dependencies = NULL;
  if (edges)
    *edges = NULL;
  if (n)
    *n = 0;
  return is_capturing(stream, status, id, false);
}

CUDART_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  static __thread enum cudaStreamCaptureMode current;
  enum cudaStreamCaptureMode before = current;
  current = *mode;
  *mode = before;
  return cudaSuccess;
}

static cudaError_t instantiate(cudaGraphExec_t *executable, cudaGraph_t graph) {
  const struct sim_graph *from = (const struct sim_graph *)graph;
  struct sim_graph *copy = from ? graph_new() : NULL;
  if (!copy)
    return remember(cudaErrorInvalidValue);
  for (size_t i = 0; i < from->n; i++)
    graph_capture(copy, &from->orders[i]);
  *executable = (cudaGraphExec_t)copy;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                            unsigned long long flags) {
  (void)flags;
  return instantiate(executable, graph);
}

CUDART_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                                     unsigned long long flags) {
  (void)flags;
  return instantiate(executable, graph);
}

static cudaError_t graph_launch(cudaGraphExec_t executable, cudaStream_t handle, bool own) {
  const struct sim_graph *graph = (const struct sim_graph *)executable;
  cudaError_t error = cudaErrorInvalidResourceHandle;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (graph && sim_stream_is(stream)) {
    uint32_t correlation = next_correlation();
    for (size_t i = 0; i < graph->n; i++)
      put(stream, &graph->orders[i], correlation, graph->id);
    error = cudaSuccess;
  }
  sim_unlock();
  return remember(error);
}
TWINS(cudaGraphLaunch, _ptsz, (cudaGraphExec_t executable, cudaStream_t stream),
      graph_launch(executable, stream, own))

static cudaError_t graph_free(struct sim_graph *graph) {
  if (!graph)
    return remember(cudaErrorInvalidValue);
  free(graph->orders);
  free(graph);
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return graph_free((struct sim_graph *)graph);
}

CUDART_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return graph_free((struct sim_graph *)executable);
}

/* A captured graph does not show its nodes here. */
CUDART_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n) {
  (void)graph, (void)nodes;
  *n = 0;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                                    cudaGraphNode_t *dependencies,
                                                    cudaGraphEdgeData *edges, size_t *n) {
  (void)node, (void)dependencies, (void)edges;
  *n = 0;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
  (void)graph, (void)path, (void)flags;
  return remember(cudaErrorNotSupported);
}
