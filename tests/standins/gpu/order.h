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
/* Which node of a graph the operations are that are made now; the lock is held. */
SIM_API extern uint64_t sim_node_launched;

enum { SIM_INNER = 4 };
enum sim_condition { SIM_IF, SIM_WHILE, SIM_SWITCH };

/* Its address is its handle. */
struct sim_node {
  struct order order;
  unsigned branch;       /* 0: that of the stream on which the graph is launched */
  struct sim_tips after; /* places of the nodes that it comes after */
  unsigned condition;    /* enum sim_condition */
  unsigned n_inner;
  struct sim_graph *inner[SIM_INNER]; /* a child, or the bodies of a condition; the node's own */
};

struct sim_graph {
  uint64_t id;
  struct sim_node **nodes; /* in the order in which they came */
  size_t n;
  unsigned branches;
  bool lost;                    /* its capture is, and will end in an error */
  struct CUstream_st **streams; /* [n_streams] of the branches of an executable, as far as made */
  unsigned n_streams;
};

/* gpu_graphs.c. The lock is held, but for the last three. */
SIM_API struct sim_graph *sim_graph_new(void);
SIM_API struct sim_node *sim_graph_add(struct sim_graph *graph, const struct order *order,
                                       unsigned branch, const struct sim_tips *after);
/* A child or a condition; the inner graphs go to the node. `type` is an enum sim_condition. */
SIM_API struct sim_node *sim_graph_add_inner(struct sim_graph *graph, enum sim_kind kind,
                                             unsigned type, struct sim_graph *const *inner,
                                             unsigned n, unsigned branch,
                                             const struct sim_tips *after);
/* A node's place, graph->n if it is not in the graph. */
SIM_API size_t sim_graph_find(const struct sim_graph *graph, const struct sim_node *node);
SIM_API void sim_tips_join(struct sim_tips *tips, const size_t *nodes, size_t n);
SIM_API void sim_tips_drop(struct sim_tips *tips);
SIM_API struct sim_graph *sim_graph_copy(const struct sim_graph *graph);
SIM_API void sim_graph_free(struct sim_graph *graph);
/* What all conditions find from now on: see standin_condition(). */
SIM_API void sim_graph_condition(unsigned value);
/* Gives `graph` the content of another. */
SIM_API cudaError_t sim_graph_replace(struct sim_graph *graph, const struct sim_graph *by);
SIM_API cudaError_t sim_graph_launch(struct sim_graph *graph, cudaStream_t stream, bool own);
SIM_API cudaError_t sim_graph_destroy(struct sim_graph *graph);

/* gpu_captures.c. `into` is a graph to which nodes are added, after those in `after`, or NULL. */
SIM_API cudaError_t sim_capture_begin(cudaStream_t stream, bool own, int mode,
                                      struct sim_graph *into, const struct sim_tips *after);
SIM_API cudaError_t sim_capture_end(cudaStream_t stream, bool own, struct sim_graph **graph);
/* Whether the stream is captured, an enum sim_capture_status, and only if it is, in which capture.
 */
SIM_API cudaError_t sim_capture_id(cudaStream_t stream, bool own, int *status,
                                   unsigned long long *id);
/* With the lock held: the branch of a stream that is captured; that it has got a node; that an
 * event is recorded on a stream, captured or not; and that a stream waits for an event: what is
 * left to do, if no capture has to do with it, is the caller's. */
unsigned sim_capture_branch(struct CUstream_st *stream);
void sim_capture_add(struct CUstream_st *stream, const struct sim_node *node);
void sim_capture_record(struct CUevent_st *event, const struct CUstream_st *stream);
cudaError_t sim_capture_wait(struct CUstream_st *stream, const struct CUevent_st *event);

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

/* gpu_memory.c */
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
