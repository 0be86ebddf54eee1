/* SPDX-License-Identifier: MIT
 *
 * Submits work to a stream, for all APIs.
 */
#include <stdlib.h>

#include "engine.h"
#include "order.h"

uint32_t sim_correlation(void) {
  const struct sim_activity *activity = sim_activity();
  return activity && activity->launch ? activity->launch() : 0;
}

struct sim_op *sim_put(struct CUstream_st *stream, const struct order *order, uint32_t correlation,
                       uint64_t graph) {
  if (order->enqueue) {
    order->enqueue(order->user, stream, correlation, graph);
    return NULL;
  }
  struct sim_op *op = sim_op_new(stream, order->kind, order->work);
  op->duration = order->duration;
  op->name = order->name;
  for (int i = 0; i < 3; i++) {
    op->grid[i] = order->grid[i];
    op->block[i] = order->block[i];
  }
  op->bytes = order->bytes;
  op->copy_kind = order->copy_kind;
  op->value = order->value;
  op->source = order->source;
  op->target = order->target;
  op->user = order->user;
  op->correlation = correlation;
  op->graph = graph;
  sim_enqueue(op);
  return op;
}

cudaError_t sim_submit(cudaStream_t handle, bool own, const struct order *order, bool wait) {
  cudaError_t error = cudaSuccess;
  if (!sim_usable()) {
    free(order->user);
    return cudaErrorInitializationError;
  }
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (!sim_stream_is(stream)) {
    error = cudaErrorInvalidResourceHandle;
  } else if ((error = sim_capture_refuses(stream))) {
    /* the call fails */
  } else if (stream->graph) {
    if (wait || (order->user && !order->copy_user))
      error = sim_capture_conflict(stream);
    else
      sim_capture_add(
          stream, sim_graph_add(stream->graph, order, sim_capture_branch(stream), &stream->deps));
  } else if (wait && sim_capture_forbids()) {
    error = cudaErrorStreamCaptureUnsupported;
  } else {
    struct sim_op *op = sim_put(stream, order, sim_correlation(), 0);
    if (wait)
      sim_wait(op);
  }
  sim_unlock();
  if (error)
    free(order->user);
  return error;
}
