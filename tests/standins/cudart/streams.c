/* SPDX-License-Identifier: MIT
 *
 * Streams, events and waiting for them.
 */
#include <stdlib.h>

#include "cudart.h"

static cudaError_t stream_new(cudaStream_t *stream, unsigned flags, int priority) {
  if (!sim_usable())
    return remember(cudaErrorInitializationError);
  sim_lock();
  *stream = sim_stream_new(*sim_device(), flags, priority);
  sim_unlock();
  return remember(*stream ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t CUDART_API cudaStreamCreate(cudaStream_t *stream) {
  return stream_new(stream, cudaStreamDefault, 0);
}

cudaError_t CUDART_API cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return stream_new(stream, flags, 0);
}

cudaError_t CUDART_API cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                                    int priority) {
  return stream_new(stream, flags, priority);
}

cudaError_t CUDART_API cudaStreamDestroy(cudaStream_t stream) {
  sim_lock();
  bool known = sim_stream_is(stream) && !stream->legacy;
  if (known)
    sim_stream_free(stream);
  sim_unlock();
  return remember(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

/* Looks a stream up with the lock taken; NULL with the lock released when there is none. */
static struct CUstream_st *lock_stream(cudaStream_t handle, bool own) {
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (sim_stream_is(stream))
    return stream;
  sim_unlock();
  return NULL;
}

static cudaError_t stream_sync(cudaStream_t handle, bool own) {
  struct CUstream_st *stream = lock_stream(handle, own);
  if (!stream)
    return remember(cudaErrorInvalidResourceHandle);
  cudaError_t error = stream->graph ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  if (!error && stream->last)
    sim_wait(stream->last);
  sim_unlock();
  return remember(error);
}
TWINS(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), stream_sync(stream, own))

static cudaError_t stream_query(cudaStream_t handle, bool own) {
  struct CUstream_st *stream = lock_stream(handle, own);
  if (!stream)
    return remember(cudaErrorInvalidResourceHandle);
  sim_progress();
  bool busy = stream->head != NULL;
  sim_unlock();
  return busy ? cudaErrorNotReady : cudaSuccess;
}
TWINS(cudaStreamQuery, _ptsz, (cudaStream_t stream), stream_query(stream, own))

static cudaError_t stream_get(cudaStream_t handle, bool own, unsigned *flags, int *priority,
                              unsigned long long *id, int *device) {
  struct CUstream_st *stream = lock_stream(handle, own);
  if (!stream)
    return remember(cudaErrorInvalidResourceHandle);
  if (flags)
    *flags = stream->flags;
  if (priority)
    *priority = stream->priority;
  if (id)
    *id = stream->id;
  if (device)
    *device = stream->device;
  sim_unlock();
  return cudaSuccess;
}
TWINS(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned *flags),
      stream_get(stream, own, flags, NULL, NULL, NULL))
TWINS(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority),
      stream_get(stream, own, NULL, priority, NULL, NULL))
TWINS(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id),
      stream_get(stream, own, NULL, NULL, id, NULL))
TWINS(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device),
      stream_get(stream, own, NULL, NULL, NULL, device))

cudaError_t CUDART_API cudaDeviceSynchronize(void) {
  if (!sim_usable())
    return remember(cudaErrorInitializationError);
  sim_lock();
  sim_wait_all(*sim_device());
  sim_unlock();
  return cudaSuccess;
}

cudaError_t CUDART_API cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  *event = calloc(1, sizeof **event);
  if (!*event)
    return remember(cudaErrorMemoryAllocation);
  (*event)->flags = flags;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t CUDART_API cudaEventDestroy(cudaEvent_t event) {
  if (!event)
    return remember(cudaErrorInvalidResourceHandle);
  sim_lock();
  sim_op_release(event->op);
  sim_unlock();
  free(event);
  return cudaSuccess;
}

static cudaError_t event_record(cudaEvent_t event, cudaStream_t handle, bool own) {
  struct CUstream_st *stream = event ? lock_stream(handle, own) : NULL;
  if (!stream)
    return remember(cudaErrorInvalidResourceHandle);
  if (!stream->graph) {
    struct order order = {.kind = SIM_EVENT};
    struct sim_op *op = sim_op_keep(put(stream, &order, 0, 0));
    sim_op_release(event->op);
    event->op = op;
  }
  sim_unlock();
  return cudaSuccess;
}
TWINS(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
      event_record(event, stream, own))
TWINS(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
      ((void)flags, event_record(event, stream, own)))

static cudaError_t wait_event(cudaStream_t handle, cudaEvent_t event, bool own) {
  struct CUstream_st *stream = event ? lock_stream(handle, own) : NULL;
  if (!stream)
    return remember(cudaErrorInvalidResourceHandle);
  if (event->op && !stream->graph) {
    struct sim_op *op = sim_op_new(stream, SIM_WAIT, NULL);
    sim_op_after(op, event->op);
    sim_enqueue(op);
  }
  sim_unlock();
  return cudaSuccess;
}
TWINS(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
      ((void)flags, wait_event(stream, event, own)))

cudaError_t CUDART_API cudaEventQuery(cudaEvent_t event) {
  if (!event)
    return remember(cudaErrorInvalidResourceHandle);
  sim_lock();
  sim_progress();
  bool busy = event->op && !event->op->done;
  sim_unlock();
  return busy ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t CUDART_API cudaEventSynchronize(cudaEvent_t event) {
  if (!event)
    return remember(cudaErrorInvalidResourceHandle);
  sim_lock();
  if (event->op)
    sim_wait(event->op);
  sim_unlock();
  return cudaSuccess;
}

static cudaError_t elapsed(float *ms, cudaEvent_t start, cudaEvent_t end) {
  if (!start || !end)
    return remember(cudaErrorInvalidResourceHandle);
  sim_lock();
  sim_progress();
  cudaError_t error = cudaSuccess;
  if (!start->op || !end->op || (start->flags | end->flags) & cudaEventDisableTiming)
    error = cudaErrorInvalidResourceHandle;
  else if (!start->op->done || !end->op->done)
    error = cudaErrorNotReady;
  else
    *ms = (float)((double)(end->op->end - start->op->end) / 1e6);
  sim_unlock();
  return remember(error);
}

cudaError_t CUDART_API cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  return elapsed(ms, start, end);
}

CUDART_API cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end);
CUDART_API cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end) {
  return elapsed(ms, start, end);
}

struct callback {
  cudaHostFn_t function;
  cudaStreamCallback_t stream_function;
  cudaStream_t stream;
  void *user;
};

static bool finish_call(struct sim_op *op) {
  const struct callback *callback = op->user;
  if (callback->function)
    callback->function(callback->user);
  else
    callback->stream_function(callback->stream, cudaSuccess, callback->user);
  return true;
}

static void drop_call(struct sim_op *op) {
  free(op->user);
}

static cudaError_t call(struct callback wanted, bool own) {
  static const struct sim_work work = {.finish = finish_call, .unlocked = true, .drop = drop_call};
  struct callback *callback = malloc(sizeof *callback);
  if (!callback)
    return remember(cudaErrorMemoryAllocation);
  *callback = wanted;
  struct order order = {.kind = SIM_CALL, .work = &work, .user = callback};
  return submit(wanted.stream, own, &order, false);
}
TWINS(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *user),
      call((struct callback){.function = function, .stream = stream, .user = user}, own))
TWINS(cudaStreamAddCallback, _ptsz,
      (cudaStream_t stream, cudaStreamCallback_t function, void *user, unsigned flags),
      ((void)flags,
       call((struct callback){.stream_function = function, .stream = stream, .user = user}, own)))
