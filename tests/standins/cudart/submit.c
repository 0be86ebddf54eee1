/* SPDX-License-Identifier: MIT
 *
 * The way of all work onto a stream.
 */
#include <stdlib.h>

#include "cudart.h"

static __thread cudaError_t last_error;

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady)
    last_error = error;
  return error;
}

cudaError_t CUDART_API cudaGetLastError(void) {
  cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t CUDART_API cudaPeekAtLastError(void) {
  return last_error;
}

uint32_t next_correlation(void) {
  const struct sim_activity *activity = sim_activity();
  return activity && activity->launch ? activity->launch() : 0;
}

struct sim_op *put(struct CUstream_st *stream, const struct order *order, uint32_t correlation,
                   uint64_t graph) {
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

cudaError_t submit(cudaStream_t handle, bool own, const struct order *order, bool wait) {
  cudaError_t error = cudaSuccess;
  if (!sim_usable()) {
    free(order->user);
    return remember(cudaErrorInitializationError);
  }
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (!sim_stream_is(stream)) {
    error = cudaErrorInvalidResourceHandle;
  } else if (stream->graph) {
    if (wait || order->user)
      error = cudaErrorStreamCaptureUnsupported;
    else
      graph_capture(stream->graph, order);
  } else {
    struct sim_op *op = put(stream, order, next_correlation(), 0);
    if (wait)
      sim_wait(op);
  }
  sim_unlock();
  if (error)
    free(order->user);
  return remember(error);
}
