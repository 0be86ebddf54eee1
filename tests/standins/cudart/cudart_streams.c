/* SPDX-License-Identifier: MIT
 *
 * Streams, events, waits for them, and host functions.
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

static cudaError_t stream_sync(cudaStream_t handle, bool own) {
  struct CUstream_st *stream = sim_lock_stream(handle, own);
  if (!stream)
    return remember(cudaErrorInvalidResourceHandle);
  cudaError_t error = sim_capture_conflict(stream);
  if (!error && stream->last)
    sim_wait(stream->last);
  sim_unlock();
  return remember(error);
}
TWINS(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), stream_sync(stream, own))

static cudaError_t stream_query(cudaStream_t handle, bool own) {
  struct CUstream_st *stream = sim_lock_stream(handle, own);
  if (!stream)
    return remember(cudaErrorInvalidResourceHandle);
  sim_progress();
  cudaError_t error = sim_capture_conflict(stream);
  if (!error && stream->head)
    error = cudaErrorNotReady;
  sim_unlock();
  return remember(error);
}
TWINS(cudaStreamQuery, _ptsz, (cudaStream_t stream), stream_query(stream, own))

static cudaError_t stream_get(cudaStream_t handle, bool own, unsigned *flags, int *priority,
                              unsigned long long *id, int *device) {
  struct CUstream_st *stream = sim_lock_stream(handle, own);
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
  cudaError_t error = sim_capture_device_conflict(*sim_device());
  if (!error)
    sim_wait_all(*sim_device());
  sim_unlock();
  return remember(error);
}

cudaError_t CUDART_API cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  return remember(sim_event_new(event, flags));
}

cudaError_t CUDART_API cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t CUDART_API cudaEventDestroy(cudaEvent_t event) {
  return remember(sim_event_free(event));
}

TWINS(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
      remember(sim_event_record(event, stream, own)))
TWINS(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
      ((void)flags, remember(sim_event_record(event, stream, own))))
TWINS(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
      ((void)flags, remember(sim_event_wait(stream, own, event))))

cudaError_t CUDART_API cudaEventQuery(cudaEvent_t event) {
  return remember(sim_event_query(event));
}

cudaError_t CUDART_API cudaEventSynchronize(cudaEvent_t event) {
  return remember(sim_event_sync(event));
}

cudaError_t CUDART_API cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  return remember(sim_event_elapsed(ms, start, end));
}

CUDART_API cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end);
CUDART_API cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end) {
  return remember(sim_event_elapsed(ms, start, end));
}

TWINS(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *user),
      remember(sim_call(function, user, stream, own)))

struct stream_callback {
  cudaStreamCallback_t function;
  cudaStream_t stream;
  void *user;
};

static void call_back(void *user) {
  struct stream_callback callback = *(struct stream_callback *)user;
  free(user);
  callback.function(callback.stream, cudaSuccess, callback.user);
}

static cudaError_t add_callback(struct stream_callback wanted, bool own) {
  struct stream_callback *callback = malloc(sizeof(*callback));
  if (!callback)
    return remember(cudaErrorMemoryAllocation);
  *callback = wanted;
  return remember(sim_call(call_back, callback, wanted.stream, own));
}
TWINS(cudaStreamAddCallback, _ptsz,
      (cudaStream_t stream, cudaStreamCallback_t function, void *user, unsigned flags),
      ((void)flags, add_callback((struct stream_callback){function, stream, user}, own)))
