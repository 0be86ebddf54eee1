/* SPDX-License-Identifier: MIT
 *
 * Work as an API asks for it, before it is an operation on a stream or a node of a graph. Errors
 * are the runtime's; the driver's have the same values.
 */
#ifndef STANDIN_ORDER_H
#define STANDIN_ORDER_H

#include "engine.h"

struct order {
  enum sim_kind kind;
  const struct sim_work *work;
  int64_t duration;
  const char *name;
  unsigned grid[3], block[3];
  size_t bytes;
  unsigned copy_kind;
  int value;
  const void *source;
  void *target;
  void *user; /* from malloc(); sim_submit() takes it over */
  /* Another `user` for each launch of a graph that holds the order; without it, an order with a
   * `user` cannot be captured. */
  void *(*copy_user)(const void *user);
  /* Makes and enqueues the operation itself, with `user`; the lock is held. NULL: as above. */
  void (*enqueue)(void *user, struct CUstream_st *stream, uint32_t correlation, uint64_t graph);
};

/* First of cuLaunchKernel's `extra` where a stand-in library launches an order of its own, which is
 * the second. */
#define STANDIN_ORDER ((void *)(uintptr_t)0x5ca1e)

/* Puts work on a stream, or into the graph being captured from it. Takes and releases the lock;
 * `wait` blocks until the work is done. */
SIM_API cudaError_t sim_submit(cudaStream_t stream, bool own, const struct order *order, bool wait);
/* Puts it on the stream for sure; the lock is held. Returns the operation, not a reference, or NULL
 * if the order enqueues itself. */
SIM_API struct sim_op *sim_put(struct CUstream_st *stream, const struct order *order,
                               uint32_t correlation, uint64_t graph);
SIM_API uint32_t sim_correlation(void);

/* graphs.c: captured work, replayed in the order in which it was captured. */
struct sim_graph {
  uint64_t id;
  struct order *orders;
  size_t n;
};
SIM_API void sim_graph_add(struct sim_graph *graph, const struct order *order); /* lock held */
SIM_API cudaError_t sim_capture_begin(cudaStream_t stream, bool own, int mode);
SIM_API cudaError_t sim_capture_end(cudaStream_t stream, bool own, struct sim_graph **graph);
/* The capture that the stream is in, 0 if none. */
SIM_API cudaError_t sim_capture_id(cudaStream_t stream, bool own, unsigned long long *id);
SIM_API struct sim_graph *sim_graph_copy(const struct sim_graph *graph);
/* Gives `graph` the content of another. */
SIM_API cudaError_t sim_graph_replace(struct sim_graph *graph, const struct sim_graph *by);
SIM_API cudaError_t sim_graph_launch(const struct sim_graph *graph, cudaStream_t stream, bool own);
SIM_API cudaError_t sim_graph_free(struct sim_graph *graph);

/* events.c. The stream with the lock taken; NULL, and no lock, when there is none. */
SIM_API struct CUstream_st *sim_lock_stream(cudaStream_t stream, bool own);
SIM_API cudaError_t sim_event_new(struct CUevent_st **event, unsigned flags);
SIM_API cudaError_t sim_event_free(struct CUevent_st *event);
SIM_API cudaError_t sim_event_record(struct CUevent_st *event, cudaStream_t stream, bool own);
SIM_API cudaError_t sim_event_wait(cudaStream_t stream, bool own, struct CUevent_st *event);
SIM_API cudaError_t sim_event_query(struct CUevent_st *event);
SIM_API cudaError_t sim_event_sync(struct CUevent_st *event);
SIM_API cudaError_t sim_event_elapsed(float *ms, struct CUevent_st *start, struct CUevent_st *end);
/* Calls the function when the stream has come so far. */
SIM_API cudaError_t sim_call(void (*function)(void *), void *user, cudaStream_t stream, bool own);

/* memory.c */
SIM_API cudaError_t sim_allocate(void **pointer, size_t bytes, enum cudaMemoryType type);
SIM_API cudaError_t sim_release(void *pointer);
SIM_API cudaError_t sim_release_async(void *pointer, cudaStream_t stream, bool own);
/* Takes memory that the caller obtained into account, and forgets it again. */
SIM_API cudaError_t sim_adopt(void *pointer, size_t bytes, enum cudaMemoryType type);
SIM_API cudaError_t sim_disown(void *pointer);
struct sim_memory {
  void *start;
  size_t bytes;
  enum cudaMemoryType type; /* cudaMemoryTypeUnregistered: not known */
  int device;
};
SIM_API struct sim_memory sim_memory_at(const void *pointer);
SIM_API void sim_memory_info(size_t *available, size_t *total);
SIM_API cudaError_t sim_copy(void *target, const void *source, size_t bytes,
                             enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool wait);
SIM_API cudaError_t sim_copy_2d(void *target, size_t target_pitch, const void *source,
                                size_t source_pitch, size_t width, size_t height,
                                enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool wait);
/* `unit` is the bytes of one element, 1, 2 or 4. */
SIM_API cudaError_t sim_fill(void *target, unsigned value, size_t unit, size_t count,
                             cudaStream_t stream, bool own);

#endif
