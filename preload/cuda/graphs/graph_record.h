/* SPDX-License-Identifier: MIT
 *
 * What is recorded about CUDA graphs: the recorders for captures, for creating and destroying
 * graphs, and for launching them.
 */
#pragma once

#include "callsites/call_sites.h"
#include "cuda/graphs/cuda_graphs.h"
#include "cuda/ring_record.h"
#include "gpu/gpu_clock.h"

/* capture_begin, and capture_into, which adds to a graph. Both wake the process: otherwise the GPU
 * clock would start with the first launch, inside the capture. */
STREAM_RECORDER(capture_into, WAKES, cudaStream_t stream, cudaGraph_t graph) {
  if (result == cudaSuccess)
    graph_capture_began(start, stream_key(thread, default_stream, stream),
                        graph_capture_id(default_stream, stream), graph);
}
STREAM_RECORDER(capture_begin, WAKES, cudaStream_t stream) {
  record_capture_into(thread, start, result, default_stream, stream, NULL);
}

/* capture_end. A call by the wrong thread, or on a stream that joined the capture, ends nothing. */
STREAM_RECORDER(capture_end, QUIET, cudaStream_t stream, const cudaGraph_t *graph) {
  (void)start;
  if (result != cudaErrorStreamCaptureWrongThread && result != cudaErrorStreamCaptureUnmatched)
    graph_capture_ended(thread, stream_key(thread, default_stream, stream),
                        result == cudaSuccess ? *graph : NULL);
}

/* graph_instantiate, graph_update: an executable gets a graph's content. */
RECORDER(graph_update, QUIET, cudaGraphExec_t executable, cudaGraph_t graph) {
  (void)start;
  if (result == cudaSuccess)
    graph_executable_created(thread, executable, graph);
}
RECORDER(graph_instantiate, QUIET, const cudaGraphExec_t *executable, cudaGraph_t graph) {
  if (result == cudaSuccess)
    record_graph_update(thread, start, result, *executable, graph);
}
/* The same of a call that also uploads, and so has a default stream. */
STREAM_RECORDER(graph_instantiate_twin, QUIET, const cudaGraphExec_t *executable,
                cudaGraph_t graph) {
  (void)default_stream;
  record_graph_instantiate(thread, start, result, executable, graph);
}

/* graph_child, graph_node: a graph is put into another. Only the driver's calls are hooked: the
 * runtime's calls lead there, and have different parameters in each version. */
enum { graph_node_wakes = TSCOPE_QUIET };
RECORDER(graph_child, QUIET, cudaGraph_t graph, cudaGraph_t child) {
  (void)start;
  if (result == cudaSuccess)
    graph_child_added(thread, graph, child);
}
void record_graph_node(struct tscope_thread *thread, u64 start, cudaError_t result,
                       const cudaGraphNode_t *node, cudaGraph_t graph, const void *made_of);

RECORDER(graph_clone, QUIET, const cudaGraph_t *clone, cudaGraph_t graph) {
  (void)thread, (void)start;
  if (result == cudaSuccess)
    graph_cloned(*clone, graph);
}

/* graph_destroy, graph_exec_destroy. A handle is removed before it is invalid: another thread may
 * be given it before the call returns. */
#define TSCOPE_RECORDER_SHAPE_graph_destroy ~, BEFORE
#define TSCOPE_RECORDER_SHAPE_graph_exec_destroy ~, BEFORE
enum { graph_destroy_wakes = TSCOPE_QUIET, graph_exec_destroy_wakes = TSCOPE_QUIET };
static inline void record_graph_destroy(struct tscope_thread *thread, u64 start,
                                        cudaGraph_t graph) {
  (void)thread, (void)start;
  graph_destroyed(graph);
}
static inline void record_graph_exec_destroy(struct tscope_thread *thread, u64 start,
                                             cudaGraphExec_t executable) {
  (void)thread, (void)start;
  graph_executable_destroyed(executable);
}

/* graph_launch. The collectives of a graph get their numbers as it is launched. */
#define TSCOPE_RECORDER_SHAPE_graph_launch ~, AROUND
enum { graph_launch_wakes = TSCOPE_WAKES };
struct graph_launch_call {
  u64 start;
  cudaStream_t stream;
  enum tscope_default_stream default_stream;
  cudaGraphExec_t executable;
  u64 *replay;
  u64 capture; /* that the stream is in: nothing is replayed then */
  u32 graph;
};
u64 *graph_replay_open(struct tscope_thread *thread, u64 start, u16 stream, u32 graph,
                       const struct graph_content *content);
void graph_replay_close(const struct tscope_thread *thread, u64 *replay, u64 start, i32 result);
static inline struct graph_launch_call graph_launch_begin(struct tscope_thread *thread,
                                                          enum tscope_default_stream default_stream,
                                                          cudaGraphExec_t executable,
                                                          cudaStream_t stream) {
  const struct graph_content *content;
  struct graph_launch_call call = {.start = tscope_ticks(),
                                   .stream = stream,
                                   .default_stream = default_stream,
                                   .executable = executable};
  call.graph = graph_executable(executable, &content);
  call.capture = graph_known_capture(default_stream, stream);
  if (content && !call.capture)
    call.replay = graph_replay_open(
        thread, call.start, stream_index(thread, default_stream, stream), call.graph, content);
  return call;
}
static inline void graph_launch_end(struct tscope_thread *thread,
                                    const struct graph_launch_call *call, cudaError_t result) {
  u64 dur = tscope_elapsed(thread, call->start);
  if (call->replay)
    graph_replay_close(thread, call->replay, call->start, (i32)result);
  if (result == cudaSuccess && call->capture)
    graph_captured_launch(thread, call->capture, call->executable);
  if (result != cudaSuccess || call->capture)
    return;
  u16 stream = stream_index(thread, call->default_stream, call->stream);
  call_site(thread, &thread->ring, call->start, CALL_SITE_ALWAYS);
  RING(GRAPH_LAUNCH, graph_launch, call->start, dur, stream, .graph = call->graph);
}
