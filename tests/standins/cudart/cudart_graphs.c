/* SPDX-License-Identifier: MIT
 *
 * CUDA graphs in the runtime API; gpu/gpu_graphs.c says what is simulated.
 */
#include "cudart.h"

TWINS(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
      remember(sim_capture_begin(stream, own, (int)mode, NULL, NULL)))

TWINS(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph),
      remember(sim_capture_end(stream, own, (struct sim_graph **)graph)))

static cudaError_t is_capturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                unsigned long long *id, cudaGraph_t *graph, bool own) {
  int found = SIM_NOT_CAPTURED;
  cudaError_t error = sim_capture_id(handle, own, &found, id, (struct sim_graph **)graph);
  *status = (enum cudaStreamCaptureStatus)found;
  return remember(error);
}
TWINS(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
      is_capturing(stream, status, NULL, NULL, own))

/* Both versions begin with the same three parameters. The others are optional; what the captured
 * work depends on is not told. */
CUDART_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                   enum cudaStreamCaptureStatus *status,
                                                   unsigned long long *id);
CUDART_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                   enum cudaStreamCaptureStatus *status,
                                                   unsigned long long *id) {
  return is_capturing(stream, status, id, NULL, false);
}

CUDART_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                enum cudaStreamCaptureStatus *status,
                                                unsigned long long *id, cudaGraph_t *graph,
                                                const cudaGraphNode_t **dependencies,
                                                const cudaGraphEdgeData **edges, size_t *n) {
  if (dependencies)
    *dependencies = NULL;
  if (edges)
    *edges = NULL;
  if (n)
    *n = 0;
  return is_capturing(stream, status, id, graph, false);
}

CUDART_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  *mode = (enum cudaStreamCaptureMode)sim_capture_exchange_mode((int)*mode);
  return cudaSuccess;
}

static cudaError_t instantiate(cudaGraphExec_t *executable, cudaGraph_t graph) {
  sim_lock();
  *executable = (cudaGraphExec_t)sim_graph_copy((const struct sim_graph *)graph);
  sim_unlock();
  return remember(*executable ? cudaSuccess : cudaErrorInvalidValue);
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

TWINS(cudaGraphLaunch, _ptsz, (cudaGraphExec_t executable, cudaStream_t stream),
      remember(sim_graph_launch((struct sim_graph *)executable, stream, own)))

CUDART_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return remember(sim_graph_destroy((struct sim_graph *)graph));
}

CUDART_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return remember(sim_graph_destroy((struct sim_graph *)executable));
}

/* A captured graph does not list its nodes here. */
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

/* The executable takes over the graph's work. */
CUDART_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo *result) {
  if (result)
    result->result = cudaGraphExecUpdateSuccess;
  return remember(
      sim_graph_replace((struct sim_graph *)executable, (const struct sim_graph *)graph));
}

CUDART_API cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  return instantiate((cudaGraphExec_t *)clone, graph);
}

CUDART_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *what,
                                            cudaHostFn_t destroy, unsigned holders,
                                            unsigned flags) {
  (void)flags;
  *object = (cudaUserObject_t)sim_user_object_new(what, destroy, holders);
  return remember(*object ? cudaSuccess : cudaErrorMemoryAllocation);
}

CUDART_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned holders) {
  sim_lock();
  sim_user_object_release((struct sim_user_object *)object, holders);
  sim_unlock();
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                                 unsigned holders, unsigned flags) {
  sim_lock();
  if (!(flags & cudaGraphUserObjectMove))
    sim_user_object_hold((struct sim_user_object *)object, holders);
  sim_graph_hold((struct sim_graph *)graph, (struct sim_user_object *)object, holders);
  sim_unlock();
  return cudaSuccess;
}
