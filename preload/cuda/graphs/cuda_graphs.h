/* SPDX-License-Identifier: MIT
 *
 * CUDA graphs: which stream is being captured, what a captured graph holds, and which graph an
 * executable is. While no capture goes on anywhere in the process, all of this costs a call one
 * load. A captured call runs nothing: it is counted in its graph, and each launch of the graph is
 * one record.
 *
 * Graph and executable handles are the same to the runtime and the driver.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/graphs/graph_content.h"
#include "streams/stream_numbers.h"

enum graph_work {
  GRAPH_KERNEL,
  GRAPH_MEMCPY,
  GRAPH_MEMSET,
  GRAPH_MARK /* an event, a wait: no work */
};

bool graph_captured_slow(enum tscope_default_stream default_stream, cudaStream_t stream,
                         enum graph_work work);

/* Whether what was just put on the stream was captured instead of run; it is then counted. */
static inline bool graph_captured(enum tscope_default_stream default_stream, cudaStream_t stream,
                                  enum graph_work work) {
  return TSCOPE_UNLIKELY(__atomic_load_n(&captures_open, __ATOMIC_RELAXED)) &&
         graph_captured_slow(default_stream, stream, work);
}

/* Id of the capture that the stream is in, as CUDA gives it; 0 if none. Harmless in a capture. The
 * second asks CUDA only if a capture is known. */
u64 graph_capture_id(enum tscope_default_stream default_stream, cudaStream_t stream);

static inline u64 graph_known_capture(enum tscope_default_stream default_stream,
                                      cudaStream_t stream) {
  return TSCOPE_UNLIKELY(__atomic_load_n(&captures_open, __ATOMIC_RELAXED))
             ? graph_capture_id(default_stream, stream)
             : 0;
}

/* A capture just began on the stream; `into` is the graph that it adds to, NULL if it makes a new
 * one. The second function is its end, with its graph, or NULL if it failed. An invalid capture has
 * no id, so the stream on which it began identifies it. */
void graph_capture_began(u64 start, u64 stream, u64 id, cudaGraph_t into);
void graph_capture_ended(struct tscope_thread *thread, u64 stream, cudaGraph_t graph);

/* A collective or point-to-point call is about to be captured: the number of the captured graph
 * and the call's order in it on its communicator. False if the stream is not in a capture. */
bool graph_capture_collective(cudaStream_t stream, u32 comm, u32 *next_collective,
                              u32 *next_transfer, bool transfer, u32 *captured, u32 *index);

/* Number, as in GRAPH records, of the captured graph that the stream's capture will become; 0 if
 * the stream is not in a capture whose beginning was seen. */
u32 graph_capture_number(enum tscope_default_stream default_stream, cudaStream_t stream);

/* A graph was launched on a stream in a capture: it is now part of the graph captured there. */
void graph_captured_launch(struct tscope_thread *thread, u64 id, cudaGraphExec_t executable);

/* A graph was made a node of another. */
void graph_child_added(struct tscope_thread *thread, cudaGraph_t graph, cudaGraph_t child);

void graph_cloned(cudaGraph_t clone, cudaGraph_t graph);
/* What had this handle does not exist any more: it is destroyed, or a graph that is made without a
 * capture was just given its handle. */
void graph_destroyed(cudaGraph_t graph);

/* An executable was made of a graph, or given its content: writes a GRAPH record. */
void graph_executable_created(struct tscope_thread *thread, cudaGraphExec_t executable,
                              cudaGraph_t graph);
void graph_executable_destroyed(cudaGraphExec_t executable);

/* The executable's number, 0 if not known. `content` is set if it has collectives, else NULL. It
 * does not change while the executable is launched, as CUDA requires of its callers. */
u32 graph_executable(cudaGraphExec_t executable, const struct graph_content **content);
