/* SPDX-License-Identifier: MIT
 *
 * Events. An event that is recorded on a captured stream has no time: a stream that waits for it
 * joins the capture.
 */
#include <stdlib.h>

#include "clock.h"
#include "order.h"

/* Takes the lock and looks up the stream. If there is none, releases the lock and returns NULL. */
struct CUstream_st *sim_lock_stream(cudaStream_t handle, bool own) {
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (sim_stream_is(stream))
    return stream;
  sim_unlock();
  return NULL;
}

static unsigned generation;

void sim_events_end(void) {
  __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

static void assert_alive(const struct CUevent_st *event) {
  if (event && event->generation != __atomic_load_n(&generation, __ATOMIC_RELAXED)) {
    fprintf(stderr, "stand-in GPU: an event was used after its context was gone\n");
    abort();
  }
}

cudaError_t sim_event_new(struct CUevent_st **event, unsigned flags) {
  *event = calloc(1, sizeof(**event));
  if (!*event)
    return cudaErrorMemoryAllocation;
  (*event)->flags = flags;
  (*event)->generation = __atomic_load_n(&generation, __ATOMIC_RELAXED);
  return cudaSuccess;
}

cudaError_t sim_event_free(struct CUevent_st *event) {
  if (!event)
    return cudaErrorInvalidResourceHandle;
  sim_lock();
  sim_op_release(event->op);
  sim_deps_free(&event->deps);
  sim_unlock();
  free(event);
  return cudaSuccess;
}

cudaError_t sim_event_record(struct CUevent_st *event, cudaStream_t handle, bool own) {
  assert_alive(event);
  struct CUstream_st *stream = event ? sim_lock_stream(handle, own) : NULL;
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  cudaError_t error = sim_capture_refuses(stream);
  if (error) {
    sim_unlock();
    return error;
  }
  sim_capture_record(event, stream);
  if (!stream->graph) {
    struct order order = {.kind = SIM_EVENT};
    struct sim_op *op = sim_op_keep(sim_put(stream, &order, 0, 0));
    sim_op_release(event->op);
    event->op = op;
    if (sim_activity() && sim_activity()->record)
      sim_activity()->record(event, stream);
  }
  sim_unlock();
  return cudaSuccess;
}

cudaError_t sim_event_wait(cudaStream_t handle, bool own, struct CUevent_st *event) {
  struct CUstream_st *stream = event ? sim_lock_stream(handle, own) : NULL;
  cudaError_t error = cudaSuccess;
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  error = sim_capture_wait(stream, event);
  if (!error && event->op && !stream->graph) {
    struct sim_op *op = sim_op_new(stream, SIM_WAIT, NULL);
    sim_op_after(op, event->op);
    sim_enqueue(op);
    if (sim_activity() && sim_activity()->wait)
      sim_activity()->wait(event, stream, false, op->launched, op->launched);
  }
  sim_unlock();
  return error;
}

/* An event that was recorded in a capture cannot be queried. */
cudaError_t sim_event_query(struct CUevent_st *event) {
  assert_alive(event);
  if (!event)
    return cudaErrorInvalidResourceHandle;
  sim_lock();
  bool forbidden = sim_capture_forbids();
  sim_progress();
  cudaError_t error = forbidden                       ? cudaErrorStreamCaptureUnsupported
                      : event->capture                ? cudaErrorCapturedEvent
                      : event->op && !event->op->done ? cudaErrorNotReady
                                                      : cudaSuccess;
  if (sim_activity() && sim_activity()->query)
    sim_activity()->query(event, error);
  sim_unlock();
  return error;
}

cudaError_t sim_event_sync(struct CUevent_st *event) {
  if (!event)
    return cudaErrorInvalidResourceHandle;
  sim_lock();
  cudaError_t error = sim_capture_forbids() ? cudaErrorStreamCaptureUnsupported
                      : event->capture      ? cudaErrorCapturedEvent
                                            : cudaSuccess;
  int64_t from = clock_now();
  if (!error && event->op)
    sim_wait(event->op);
  if (!error && sim_activity() && sim_activity()->wait)
    sim_activity()->wait(event, NULL, true, from, clock_now());
  sim_unlock();
  return error;
}

cudaError_t sim_event_elapsed(float *ms, struct CUevent_st *start, struct CUevent_st *end) {
  assert_alive(start);
  assert_alive(end);
  if (!start || !end)
    return cudaErrorInvalidResourceHandle;
  sim_lock();
  sim_progress();
  cudaError_t error = cudaSuccess;
  if (start->capture || end->capture)
    error = cudaErrorCapturedEvent;
  else if (!start->op || !end->op || (start->flags | end->flags) & cudaEventDisableTiming)
    error = cudaErrorInvalidResourceHandle;
  else if (!start->op->done || !end->op->done)
    error = cudaErrorNotReady;
  else
    *ms = (float)((double)(end->op->end - start->op->end) / 1e6);
  sim_unlock();
  return error;
}

struct callback {
  void (*function)(void *);
  void *user;
};

static bool finish_call(struct sim_op *op) {
  const struct callback *callback = op->user;
  callback->function(callback->user);
  return true;
}

static void drop_call(struct sim_op *op) {
  free(op->user);
}

static void *copy_call(const void *callback) {
  struct callback *copy = malloc(sizeof(*copy));
  if (copy)
    *copy = *(const struct callback *)callback;
  return copy;
}

cudaError_t sim_call(void (*function)(void *), void *user, cudaStream_t stream, bool own) {
  static const struct sim_work work = {.finish = finish_call, .unlocked = true, .drop = drop_call};
  struct callback wanted = {function, user};
  struct callback *callback = copy_call(&wanted);
  if (!callback)
    return cudaErrorMemoryAllocation;
  struct order order = {.kind = SIM_CALL, .work = &work, .user = callback, .copy_user = copy_call};
  return sim_submit(stream, own, &order, false);
}
