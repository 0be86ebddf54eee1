/* SPDX-License-Identifier: MIT
 *
 * Captures of streams: begin, fork and join through events, end; and which calls are allowed
 * meanwhile. An unsafe call (one that could disturb a capture: an event query, a wait, an
 * allocation) is forbidden to a thread according to its own mode and that of the captures. A call
 * that conflicts with a capture is forbidden to all threads. A forbidden call invalidates the
 * capture.
 */
#include <pthread.h>

#include "order.h"

static __thread int thread_mode; /* at first SIM_CAPTURE_GLOBAL */

int sim_capture_exchange_mode(int mode) {
  int before = thread_mode;
  thread_mode = mode;
  return before;
}

bool sim_capture_forbids(void) {
  bool forbidden = false;
  if (thread_mode == SIM_CAPTURE_RELAXED)
    return false;
  for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next) {
    bool own = stream->capture_thread == (uint64_t)pthread_self();
    bool applies =
        own ? stream->capture_mode != SIM_CAPTURE_RELAXED
            : stream->capture_mode == SIM_CAPTURE_GLOBAL && thread_mode == SIM_CAPTURE_GLOBAL;
    if (stream->captures && applies)
      stream->graph->invalidated = forbidden = true;
  }
  return forbidden;
}

cudaError_t sim_capture_unsafe(void) {
  sim_lock();
  bool forbidden = sim_capture_forbids();
  sim_unlock();
  return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t sim_capture_conflict(const struct CUstream_st *stream) {
  cudaError_t error = sim_capture_refuses(stream);
  if (error || !stream->graph)
    return error;
  stream->graph->invalidated = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t sim_capture_device_conflict(int device) {
  cudaError_t error = sim_capture_forbids() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  for (struct CUstream_st *each = sim_streams(); each; each = each->next)
    if (each->graph && each->device == device) {
      each->graph->invalidated = true;
      error = cudaErrorStreamCaptureUnsupported;
    }
  return error;
}

bool sim_capture_implied(const struct CUstream_st *stream) {
  struct CUstream_st *other = stream->legacy ? sim_streams() : NULL;
  while (other && (!other->graph || other->flags & cudaStreamNonBlocking))
    other = other->next;
  return other != NULL;
}

cudaError_t sim_capture_refuses(const struct CUstream_st *stream) {
  if (stream->graph && stream->graph->invalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (!sim_capture_implied(stream))
    return cudaSuccess;
  for (struct CUstream_st *other = sim_streams(); other; other = other->next)
    if (other->graph && !(other->flags & cudaStreamNonBlocking))
      other->graph->invalidated = true;
  return cudaErrorStreamCaptureImplicit;
}

static struct sim_graph *find_capture(uint64_t id) {
  for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next)
    if (stream->graph && stream->capture == id)
      return stream->graph;
  return NULL;
}

cudaError_t sim_capture_begin(cudaStream_t handle, bool own, int mode, struct sim_graph *into,
                              const struct sim_deps *after) {
  static uint64_t last_capture;
  cudaError_t error = cudaErrorStreamCaptureUnsupported;
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  if (sim_stream_is(stream) && !stream->legacy)
    error = stream->graph ? cudaErrorIllegalState : cudaSuccess;
  if (!error) {
    stream->graph = into ? into : sim_graph_new();
    stream->capture = ++last_capture;
    stream->captures = true;
    stream->captures_into = into != NULL;
    stream->capture_mode = mode;
    stream->capture_thread = (uint64_t)pthread_self();
    stream->branch = 0;
    if (after)
      sim_deps_add(&stream->deps, after->at, after->n);
  }
  sim_unlock();
  return error;
}

unsigned sim_capture_branch(struct CUstream_st *stream) {
  if (!stream->captures && !stream->branch)
    stream->branch = stream->graph->branches++;
  return stream->branch;
}

void sim_capture_add(struct CUstream_st *stream, const struct sim_node *node) {
  size_t index = sim_graph_find(stream->graph, node);
  stream->deps.n = 0;
  sim_deps_add(&stream->deps, &index, 1);
}

/* Whether `origin` has waited for everything that was captured on other streams. */
static bool is_joined(const struct CUstream_st *origin) {
  const struct sim_graph *graph = origin->graph;
  struct sim_deps reached = {0};
  sim_deps_add(&reached, origin->deps.at, origin->deps.n);
  for (size_t i = 0; i < reached.n; i++) {
    const struct sim_deps *before = &graph->nodes[reached.at[i]]->after;
    sim_deps_add(&reached, before->at, before->n);
  }
  bool joined = true;
  for (struct CUstream_st *each = sim_streams(); each; each = each->next) {
    if (each->graph != graph || each == origin)
      continue;
    size_t n = reached.n;
    sim_deps_add(&reached, each->deps.at, each->deps.n);
    joined &= reached.n == n;
    reached.n = n;
  }
  sim_deps_free(&reached);
  return joined;
}

static void end_on_stream(struct CUstream_st *stream) {
  stream->graph = NULL;
  stream->captures = false;
  stream->branch = 0;
  sim_deps_free(&stream->deps);
}

cudaError_t sim_capture_end(cudaStream_t handle, bool own, struct sim_graph **graph) {
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  cudaError_t error = cudaSuccess;
  if (!sim_stream_is(stream) || !stream->graph)
    error = cudaErrorIllegalState;
  else if (!stream->captures)
    error = cudaErrorStreamCaptureUnmatched;
  else if (stream->capture_mode != SIM_CAPTURE_RELAXED &&
           stream->capture_thread != (uint64_t)pthread_self())
    error = cudaErrorStreamCaptureWrongThread;
  if (error) {
    sim_unlock();
    return error;
  }
  struct sim_graph *captured = stream->graph;
  bool into = stream->captures_into;
  error = captured->invalidated ? cudaErrorStreamCaptureInvalidated
          : is_joined(stream)   ? cudaSuccess
                                : cudaErrorStreamCaptureUnjoined;
  for (struct CUstream_st *each = sim_streams(); each; each = each->next)
    if (each->graph == captured)
      end_on_stream(each);
  captured->invalidated = false;
  *graph = error ? NULL : captured;
  if (error && !into)
    sim_graph_free(captured);
  sim_unlock();
  return error;
}

cudaError_t sim_capture_id(cudaStream_t handle, bool own, int *status, unsigned long long *id,
                           struct sim_graph **graph) {
  sim_lock();
  struct CUstream_st *stream = sim_stream(handle, own);
  bool known = sim_stream_is(stream), captured = known && stream->graph;
  *status = !captured                    ? SIM_NOT_CAPTURED
            : stream->graph->invalidated ? SIM_CAPTURE_INVALIDATED
                                         : SIM_CAPTURED;
  if (*status == SIM_CAPTURED && id)
    *id = stream->capture;
  if (graph)
    *graph = captured ? stream->graph : NULL;
  bool implied = known && sim_capture_implied(stream);
  sim_unlock();
  return !known    ? cudaErrorInvalidResourceHandle
         : implied ? cudaErrorStreamCaptureImplicit
                   : cudaSuccess;
}

void sim_capture_record(struct CUevent_st *event, const struct CUstream_st *stream) {
  event->capture = stream->graph ? stream->capture : 0;
  event->deps.n = 0;
  sim_deps_add(&event->deps, stream->deps.at, stream->deps.n);
}

cudaError_t sim_capture_wait(struct CUstream_st *stream, const struct CUevent_st *event) {
  struct sim_graph *graph = event->capture ? find_capture(event->capture) : NULL;
  cudaError_t error = sim_capture_refuses(stream);
  if (error)
    return error;
  if (!event->capture) {
    if (stream->graph && event->op) { /* work outside the capture */
      stream->graph->invalidated = true;
      return cudaErrorStreamCaptureIsolation;
    }
    return cudaSuccess;
  }
  if (!graph)
    return cudaErrorInvalidValue; /* its capture has ended */
  if (graph->invalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (stream->graph && stream->graph != graph) {
    stream->graph->invalidated = graph->invalidated = true;
    return cudaErrorStreamCaptureMerge;
  }
  if (!stream->graph) {
    stream->graph = graph;
    stream->capture = event->capture;
  }
  sim_deps_add(&stream->deps, event->deps.at, event->deps.n);
  return cudaSuccess;
}
