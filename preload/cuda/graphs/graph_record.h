/* SPDX-License-Identifier: MIT
 *
 * What is recorded of CUDA graphs: the recorders for captures, for making and ending graphs, and
 * for launching them.
 */
#ifndef TSCOPE_GRAPH_RECORD_H
#define TSCOPE_GRAPH_RECORD_H

#include "cuda/graphs/cuda_graphs.h"
#include "cuda/ring_record.h"
#include "gpu/gpu_clock.h"

/* capture_begin, capture_end */
enum { capture_begin_wakes = TSCOPE_WAKES, capture_end_wakes = TSCOPE_QUIET };
struct capture_begin_call {
  cudaStream_t stream;
  enum tscope_default_stream default_stream;
};
static inline struct capture_begin_call
capture_begin_begin(struct tscope_thread *thread, enum tscope_default_stream default_stream,
                    cudaStream_t stream) {
  gpu_clock_start_once(thread); /* not with the first launch, which would be in the capture */
  return (struct capture_begin_call){stream, default_stream};
}
static inline void capture_begin_end(struct tscope_thread *thread,
                                     const struct capture_begin_call *call, cudaError_t result) {
  if (result == cudaSuccess)
    graph_capture_began(stream_key(thread, call->default_stream, call->stream),
                        graph_capture_id(call->default_stream, call->stream), NULL);
}
/* capture_into: the same, of a capture that adds to a graph. */
enum { capture_into_wakes = TSCOPE_WAKES };
struct capture_into_call {
  struct capture_begin_call on;
  cudaGraph_t graph;
};
static inline struct capture_into_call capture_into_begin(struct tscope_thread *thread,
                                                          enum tscope_default_stream default_stream,
                                                          cudaStream_t stream, cudaGraph_t graph) {
  return (struct capture_into_call){capture_begin_begin(thread, default_stream, stream), graph};
}
static inline void capture_into_end(struct tscope_thread *thread,
                                    const struct capture_into_call *call, cudaError_t result) {
  if (result == cudaSuccess)
    graph_capture_began(stream_key(thread, call->on.default_stream, call->on.stream),
                        graph_capture_id(call->on.default_stream, call->on.stream), call->graph);
}
struct capture_end_call {
  u64 stream;
  const cudaGraph_t *graph;
};
static inline struct capture_end_call capture_end_begin(struct tscope_thread *thread,
                                                        enum tscope_default_stream default_stream,
                                                        cudaStream_t stream,
                                                        const cudaGraph_t *graph) {
  return (struct capture_end_call){stream_key(thread, default_stream, stream), graph};
}
/* A call by the wrong thread, or on a stream that joined the capture, ends nothing. */
static inline void capture_end_end(struct tscope_thread *thread,
                                   const struct capture_end_call *call, cudaError_t result) {
  if (result != cudaErrorStreamCaptureWrongThread && result != cudaErrorStreamCaptureUnmatched)
    graph_capture_ended(thread, call->stream, result == cudaSuccess ? *call->graph : NULL);
}

/* graph_instantiate, graph_update: an executable gets a graph's content. */
enum { graph_instantiate_wakes = TSCOPE_QUIET, graph_update_wakes = TSCOPE_QUIET };
struct graph_instantiate_call {
  const cudaGraphExec_t *executable;
  cudaGraph_t graph;
};
static inline struct graph_instantiate_call
graph_instantiate_begin(struct tscope_thread *thread, const cudaGraphExec_t *executable,
                        cudaGraph_t graph) {
  (void)thread;
  return (struct graph_instantiate_call){executable, graph};
}
static inline void graph_instantiate_end(struct tscope_thread *thread,
                                         const struct graph_instantiate_call *call,
                                         cudaError_t result) {
  if (result == cudaSuccess)
    graph_executable_made(thread, *call->executable, call->graph);
}
/* The same of a call that also uploads, and so has a default stream. */
enum { graph_instantiate_twin_wakes = TSCOPE_QUIET };
#define graph_instantiate_twin_call graph_instantiate_call
static inline struct graph_instantiate_call
graph_instantiate_twin_begin(struct tscope_thread *thread,
                             enum tscope_default_stream default_stream,
                             const cudaGraphExec_t *executable, cudaGraph_t graph) {
  (void)default_stream;
  return graph_instantiate_begin(thread, executable, graph);
}
static inline void graph_instantiate_twin_end(struct tscope_thread *thread,
                                              const struct graph_instantiate_call *call,
                                              cudaError_t result) {
  graph_instantiate_end(thread, call, result);
}
struct graph_update_call {
  cudaGraphExec_t executable;
  cudaGraph_t graph;
};
static inline struct graph_update_call
graph_update_begin(struct tscope_thread *thread, cudaGraphExec_t executable, cudaGraph_t graph) {
  (void)thread;
  return (struct graph_update_call){executable, graph};
}
static inline void graph_update_end(struct tscope_thread *thread,
                                    const struct graph_update_call *call, cudaError_t result) {
  if (result == cudaSuccess)
    graph_executable_made(thread, call->executable, call->graph);
}

/* graph_child, graph_node: a graph is put into another. The driver's calls alone are looked at: the
 * runtime's lead there, and have other parameters in each version. */
enum { graph_child_wakes = TSCOPE_QUIET, graph_node_wakes = TSCOPE_QUIET };
struct graph_child_call {
  cudaGraph_t graph, child;
};
static inline struct graph_child_call graph_child_begin(struct tscope_thread *thread,
                                                        cudaGraph_t graph, cudaGraph_t child) {
  (void)thread;
  return (struct graph_child_call){graph, child};
}
static inline void graph_child_end(struct tscope_thread *thread,
                                   const struct graph_child_call *call, cudaError_t result) {
  if (result == cudaSuccess)
    graph_child_added(thread, call->graph, call->child);
}
struct graph_node_call {
  const cudaGraphNode_t *node;
  cudaGraph_t graph;
  const struct cudaGraphNodeParams *parameters;
};
static inline struct graph_node_call graph_node_begin(struct tscope_thread *thread,
                                                      const cudaGraphNode_t *node,
                                                      cudaGraph_t graph, const void *parameters) {
  (void)thread;
  return (struct graph_node_call){node, graph, parameters};
}
void graph_node_end(struct tscope_thread *thread, const struct graph_node_call *call,
                    cudaError_t result);

/* graph_clone, graph_destroy, graph_exec_destroy. A handle is forgotten before it is invalid. */
enum { graph_clone_wakes = TSCOPE_QUIET, graph_destroy_wakes = TSCOPE_QUIET };
enum { graph_exec_destroy_wakes = TSCOPE_QUIET };
struct graph_clone_call {
  const cudaGraph_t *clone;
  cudaGraph_t graph;
};
static inline struct graph_clone_call
graph_clone_begin(struct tscope_thread *thread, const cudaGraph_t *clone, cudaGraph_t graph) {
  (void)thread;
  return (struct graph_clone_call){clone, graph};
}
static inline void graph_clone_end(struct tscope_thread *thread,
                                   const struct graph_clone_call *call, cudaError_t result) {
  (void)thread;
  if (result == cudaSuccess)
    graph_cloned(*call->clone, call->graph);
}
struct graph_destroy_call {
  char none;
};
#define graph_exec_destroy_call graph_destroy_call
static inline struct graph_destroy_call graph_destroy_begin(struct tscope_thread *thread,
                                                            cudaGraph_t graph) {
  (void)thread;
  graph_gone(graph);
  return (struct graph_destroy_call){0};
}
static inline void graph_destroy_end(struct tscope_thread *thread,
                                     const struct graph_destroy_call *call, cudaError_t result) {
  (void)thread, (void)call, (void)result;
}
static inline struct graph_destroy_call graph_exec_destroy_begin(struct tscope_thread *thread,
                                                                 cudaGraphExec_t executable) {
  (void)thread;
  graph_executable_gone(executable);
  return (struct graph_destroy_call){0};
}
static inline void graph_exec_destroy_end(struct tscope_thread *thread,
                                          const struct graph_destroy_call *call,
                                          cudaError_t result) {
  graph_destroy_end(thread, call, result);
}

/* graph_launch. The collectives of a graph get their numbers as it is launched. */
enum { graph_launch_wakes = TSCOPE_WAKES };
struct graph_launch_call {
  struct stream_call on;
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
  gpu_clock_start_once(thread);
  const struct graph_content *content;
  struct graph_launch_call call = {
      {tscope_ticks(), stream, default_stream}, executable, NULL, 0, 0};
  call.graph = graph_executable(executable, &content);
  if (TSCOPE_UNLIKELY(__atomic_load_n(&captures_open, __ATOMIC_RELAXED)))
    call.capture = graph_capture_id(default_stream, stream);
  if (content && !call.capture)
    call.replay = graph_replay_open(
        thread, call.on.start, stream_index(thread, default_stream, stream), call.graph, content);
  return call;
}
static inline void graph_launch_end(struct tscope_thread *thread,
                                    const struct graph_launch_call *call, cudaError_t result) {
  u64 dur = elapsed(thread, call->on.start);
  if (call->replay)
    graph_replay_close(thread, call->replay, call->on.start, (i32)result);
  if (result == cudaSuccess && call->capture)
    graph_captured_launch(thread, call->capture, call->executable);
  if (result != cudaSuccess || call->capture)
    return;
  u16 stream = stream_index(thread, call->on.default_stream, call->on.stream);
  DETAIL(GRAPH_LAUNCH, graph_launch, call->on.start, dur, stream, .graph = call->graph);
}

#endif
