/* SPDX-License-Identifier: MIT
 *
 * Streams and events in the driver API.
 */
#include "driver.h"

static CUresult stream_new(CUstream *stream, unsigned flags, int priority) {
  if (!sim_usable())
    return CUDA_ERROR_NOT_INITIALIZED;
  sim_lock();
  *stream = sim_stream_new(*sim_device(), flags, priority);
  if (*stream)
    (*stream)->green = driver_green_context();
  sim_unlock();
  return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY(cuStreamCreate, (CUstream * stream, unsigned flags)) {
  return stream_new(stream, flags, 0);
}

ENTRY(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority)) {
  return stream_new(stream, flags, priority);
}

ENTRY(cuStreamDestroy_v2, (CUstream stream)) {
  sim_lock();
  bool known = sim_stream_is(stream) && !stream->legacy;
  if (known)
    sim_stream_free(stream);
  sim_unlock();
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Waits for the stream, or queries whether its work is done. */
static CUresult wait_or_query(CUstream handle, bool own, bool wait) {
  struct CUstream_st *stream = sim_lock_stream(handle, own);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  CUresult error = (CUresult)sim_capture_conflict(stream);
  if (!error && wait && stream->last)
    sim_wait(stream->last);
  sim_progress();
  if (!error && stream->head && !wait)
    error = CUDA_ERROR_NOT_READY;
  sim_unlock();
  return error;
}
TWINS(cuStreamSynchronize, _ptsz, (CUstream stream), wait_or_query(stream, own, true))
TWINS(cuStreamQuery, _ptsz, (CUstream stream), wait_or_query(stream, own, false))

static CUresult get_properties(CUstream handle, bool own, unsigned *flags, int *priority,
                               unsigned long long *id, CUdevice *device) {
  struct CUstream_st *stream = sim_lock_stream(handle, own);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (flags)
    *flags = stream->flags;
  if (priority)
    *priority = stream->priority;
  if (id)
    *id = stream->id;
  if (device)
    *device = stream->device;
  sim_unlock();
  return CUDA_SUCCESS;
}
TWINS(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned *flags),
      get_properties(stream, own, flags, NULL, NULL, NULL))
TWINS(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority),
      get_properties(stream, own, NULL, priority, NULL, NULL))
TWINS(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id),
      get_properties(stream, own, NULL, NULL, id, NULL))
TWINS(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *device),
      get_properties(stream, own, NULL, NULL, NULL, device))

static void *get_green(CUstream stream) {
  bool special = (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD;
  return special ? driver_green_context() : stream->green;
}

ENTRY(cuStreamGetGreenCtx, (CUstream stream, struct CUgreenCtx_st **context)) {
  *context = get_green(stream);
  return CUDA_SUCCESS;
}

ENTRY(cuGreenCtxStreamCreate,
      (CUstream * stream, struct CUgreenCtx_st *context, unsigned flags, int priority)) {
  CUresult error = stream_new(stream, flags, priority);
  if (!error)
    (*stream)->green = context;
  return error;
}

static CUresult get_context(CUstream stream, bool own, CUcontext *context) {
  CUdevice device = 0;
  CUresult error = get_properties(stream, own, NULL, NULL, NULL, &device);
  *context = get_green(stream);
  if (!*context)
    *context = driver_primary_context(device);
  return error;
}
TWINS(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *context),
      get_context(stream, own, context))

TWINS(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
      ((void)flags, sim_event_wait(stream, own, event)))
TWINS(cuEventRecord, _ptsz, (CUevent event, CUstream stream), sim_event_record(event, stream, own))
TWINS(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
      ((void)flags, sim_event_record(event, stream, own)))

ENTRY(cuEventCreate, (CUevent * event, unsigned flags)) {
  return (CUresult)sim_event_new(event, flags);
}

ENTRY(cuEventDestroy_v2, (CUevent event)) {
  return (CUresult)sim_event_free(event);
}

ENTRY(cuEventQuery, (CUevent event)) {
  return (CUresult)sim_event_query(event);
}

ENTRY(cuEventSynchronize, (CUevent event)) {
  return (CUresult)sim_event_sync(event);
}

ENTRY(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end)) {
  return (CUresult)sim_event_elapsed(ms, start, end);
}

#undef cuEventElapsedTime
ENTRY(cuEventElapsedTime, (float *ms, CUevent start, CUevent end)) {
  return (CUresult)sim_event_elapsed(ms, start, end);
}
