/* SPDX-License-Identifier: MIT
 *
 * CUDA graphs, as far as capturing streams and launching the result goes: the captured work is
 * replayed on the launching stream, in the order in which it was captured.
 */
#include <pthread.h>
#include <stdlib.h>

#include "order.h"

static uint64_t last_id;

static struct sim_graph *graph_new(void) {
  struct sim_graph *graph = calloc(1, sizeof *graph);
  if (graph)
    graph->id = ++last_id;
  return graph;
}

static void add(struct sim_graph *graph, const struct order *order) {
  graph->orders = realloc(graph->orders, (graph->n + 1) * sizeof *graph->orders);
  if (!graph->orders)
    abort();
  graph->orders[graph->n++] = *order;
}

/* Takes `user` over, as a stream would. */
void sim_graph_add(struct sim_graph *graph, const struct order *order) {
  add(graph, order);
}

cudaError_t sim_capture_begin(cudaStream_t handle, bool own, int mode) {
  cudaError_t error = cudaErrorStreamCaptureUnsupported;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (sim_stream_is(stream) && !stream->legacy)
    error = stream->graph ? cudaErrorIllegalState : cudaSuccess;
  if (!error) {
    stream->graph = graph_new();
    stream->captures = true;
    stream->capture_mode = mode;
    stream->capture_thread = (uint64_t)pthread_self();
    stream->capture_lost = false;
  }
  sim_unlock();
  return error;
}

/* Streams that joined the capture through an event leave it. */
cudaError_t sim_capture_end(cudaStream_t handle, bool own, struct sim_graph **graph) {
  cudaError_t error = cudaErrorIllegalState;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (sim_stream_is(stream) && stream->graph && stream->captures) {
    struct sim_graph *captured = stream->graph;
    for (struct CUstream_st *each = sim_streams(); each; each = each->next)
      if (each->graph == captured) {
        each->graph = NULL;
        each->captures = false;
      }
    error = stream->capture_lost ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    *graph = error ? NULL : captured;
    if (error)
      sim_graph_free(captured);
  }
  sim_unlock();
  return error;
}

cudaError_t sim_capture_id(cudaStream_t handle, bool own, unsigned long long *id) {
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  bool known = sim_stream_is(stream);
  *id = known && stream->graph ? stream->graph->id : 0;
  bool implied = known && sim_capture_implied(stream);
  sim_unlock();
  return !known    ? cudaErrorInvalidResourceHandle
         : implied ? cudaErrorStreamCaptureImplicit
                   : cudaSuccess;
}

static void add_all(struct sim_graph *graph, const struct sim_graph *from) {
  for (size_t i = 0; i < from->n; i++) {
    struct order order = from->orders[i];
    if (order.copy_user)
      order.user = order.copy_user(order.user);
    add(graph, &order);
  }
}

struct sim_graph *sim_graph_copy(const struct sim_graph *graph) {
  struct sim_graph *copy = graph ? graph_new() : NULL;
  if (copy)
    add_all(copy, graph);
  return copy;
}

static void empty(struct sim_graph *graph) {
  for (size_t i = 0; i < graph->n; i++)
    if (graph->orders[i].copy_user)
      free(graph->orders[i].user);
  free(graph->orders);
  graph->orders = NULL;
  graph->n = 0;
}

cudaError_t sim_graph_replace(struct sim_graph *graph, const struct sim_graph *by) {
  if (!graph || !by)
    return cudaErrorInvalidValue;
  sim_lock();
  empty(graph);
  add_all(graph, by);
  sim_unlock();
  return cudaSuccess;
}

cudaError_t sim_graph_launch(const struct sim_graph *graph, cudaStream_t handle, bool own) {
  cudaError_t error = cudaErrorInvalidResourceHandle;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (graph && sim_stream_is(stream)) {
    uint32_t correlation = sim_correlation();
    for (size_t i = 0; i < graph->n; i++) {
      struct order order = graph->orders[i];
      if (order.copy_user)
        order.user = order.copy_user(order.user);
      sim_put(stream, &order, correlation, graph->id);
    }
    error = cudaSuccess;
  }
  sim_unlock();
  return error;
}

cudaError_t sim_graph_free(struct sim_graph *graph) {
  if (!graph)
    return cudaErrorInvalidValue;
  empty(graph);
  free(graph);
  return cudaSuccess;
}
