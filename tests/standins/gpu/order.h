/* SPDX-License-Identifier: MIT
 *
 * An order: the work that an API call requests, before it is an operation on a stream or a node of
 * a graph. Errors are the runtime's; the driver's have the same values.
 */
#pragma once

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
  /* Copies `user` for each launch of a graph that has the order. Without it, an order with a `user`
   * cannot be captured. */
  void *(*copy_user)(const void *user);
  /* If not NULL: creates and enqueues the operation from `user`; the lock is held. */
  void (*enqueue)(void *user, struct CUstream_st *stream, uint32_t correlation, uint64_t graph);
};

/* The first element of cuLaunchKernel's `extra` when a stand-in library launches its own order,
 * which is the second element. */
#define STANDIN_ORDER ((void *)(uintptr_t)0x5ca1e)

/* Adds work to a stream, or to the graph that is captured from it. Takes and releases the lock.
 * `wait`: returns when the work is done. */
SIM_API cudaError_t sim_submit(cudaStream_t stream, bool own, const struct order *order, bool wait);
/* Adds work to a stream, captured or not; the lock is held. Returns the operation without a
 * reference, or NULL if the order has `enqueue`. */
SIM_API struct sim_op *sim_put(struct CUstream_st *stream, const struct order *order,
                               uint32_t correlation, uint64_t graph);
SIM_API uint32_t sim_correlation(void);
/* The id of the graph node from which operations are created now, 0 for none; the lock is held. */
SIM_API extern uint64_t sim_node_launched;

enum { SIM_INNER = 4 };
enum sim_condition { SIM_IF, SIM_WHILE, SIM_SWITCH };

/* The address of a node is its handle. */
struct sim_node {
  struct order order;
  unsigned branch;       /* 0: the branch that runs on the launching stream */
  struct sim_deps after; /* the nodes that it depends on */
  unsigned condition;    /* enum sim_condition */
  unsigned n_inner;
  struct sim_graph *inner[SIM_INNER]; /* the child, or the bodies of a condition; owned */
};

struct sim_graph {
  uint64_t id;
  struct sim_node **nodes; /* in the order in which they were added */
  size_t n;
  unsigned branches;
  bool invalidated; /* its capture will end in an error */
  struct CUstream_st *
      *streams; /* [n_streams], one for each branch of an executable; NULL until it is used */
  unsigned n_streams;
  struct sim_user_object **held;
  size_t n_held;
};

/* user_objects.c. The caller holds the lock. */
struct sim_user_object;
SIM_API struct sim_user_object *sim_user_object_new(void *what, void (*destroy)(void *),
                                                    unsigned holders);
SIM_API void sim_user_object_hold(struct sim_user_object *object, unsigned holders);
SIM_API void sim_user_object_release(struct sim_user_object *object, unsigned holders);
/* The graph takes over `holders` that the object counts already. */
SIM_API void sim_graph_hold(struct sim_graph *graph, struct sim_user_object *object,
                            unsigned holders);
SIM_API void sim_graph_hold_same(struct sim_graph *graph, const struct sim_graph *from);
SIM_API void sim_graph_let_go(struct sim_graph *graph);

/* gpu_graphs.c. The caller holds the lock, except for the last three functions. */
SIM_API struct sim_graph *sim_graph_new(void);
SIM_API struct sim_node *sim_graph_add(struct sim_graph *graph, const struct order *order,
                                       unsigned branch, const struct sim_deps *after);
/* Adds a child or a condition, which takes over the inner graphs. `type` is an enum sim_condition.
 */
SIM_API struct sim_node *sim_graph_add_inner(struct sim_graph *graph, enum sim_kind kind,
                                             unsigned type, struct sim_graph *const *inner,
                                             unsigned n, unsigned branch,
                                             const struct sim_deps *after);
/* The index of a node, graph->n if it is not in the graph. */
SIM_API size_t sim_graph_find(const struct sim_graph *graph, const struct sim_node *node);
/* Adds those of the nodes that are not in `deps`. */
SIM_API void sim_deps_add(struct sim_deps *deps, const size_t *nodes, size_t n);
SIM_API void sim_deps_free(struct sim_deps *deps);
SIM_API struct sim_graph *sim_graph_copy(const struct sim_graph *graph);
SIM_API void sim_graph_free(struct sim_graph *graph);
/* Sets the value of all conditions: see standin_condition(). */
SIM_API void sim_graph_condition(unsigned value);
/* Replaces the content of `graph` by a copy of another's. */
SIM_API cudaError_t sim_graph_replace(struct sim_graph *graph, const struct sim_graph *by);
SIM_API cudaError_t sim_graph_launch(struct sim_graph *graph, cudaStream_t stream, bool own);
SIM_API cudaError_t sim_graph_destroy(struct sim_graph *graph);

/* gpu_captures.c. `into` is NULL, or a graph to which nodes are added, which depend on those in
 * `after`. */
SIM_API cudaError_t sim_capture_begin(cudaStream_t stream, bool own, int mode,
                                      struct sim_graph *into, const struct sim_deps *after);
SIM_API cudaError_t sim_capture_end(cudaStream_t stream, bool own, struct sim_graph **graph);
/* Sets `status` to an enum sim_capture_status, and `id` only if the stream is captured. */
SIM_API cudaError_t sim_capture_id(cudaStream_t stream, bool own, int *status,
                                   unsigned long long *id, struct sim_graph **graph);
/* The caller of the following functions holds the lock. */
/* The branch of a captured stream. */
unsigned sim_capture_branch(struct CUstream_st *stream);
/* `node` was captured on the stream. */
void sim_capture_add(struct CUstream_st *stream, const struct sim_node *node);
/* `event` is recorded on the stream, captured or not. */
void sim_capture_record(struct CUevent_st *event, const struct CUstream_st *stream);
/* The stream waits for `event`. Without a capture, the caller adds the wait to the stream. */
cudaError_t sim_capture_wait(struct CUstream_st *stream, const struct CUevent_st *event);

/* events.c. Takes the lock and returns the stream; if there is none, returns NULL without the lock.
 */
SIM_API struct CUstream_st *sim_lock_stream(cudaStream_t stream, bool own);
SIM_API cudaError_t sim_event_new(struct CUevent_st **event, unsigned flags);
SIM_API cudaError_t sim_event_free(struct CUevent_st *event);
SIM_API cudaError_t sim_event_record(struct CUevent_st *event, cudaStream_t stream, bool own);
SIM_API cudaError_t sim_event_wait(cudaStream_t stream, bool own, struct CUevent_st *event);
SIM_API cudaError_t sim_event_query(struct CUevent_st *event);
SIM_API cudaError_t sim_event_sync(struct CUevent_st *event);
SIM_API cudaError_t sim_event_elapsed(float *ms, struct CUevent_st *start, struct CUevent_st *end);
/* Calls the function in stream order. */
SIM_API cudaError_t sim_call(void (*function)(void *), void *user, cudaStream_t stream, bool own);

/* gpu_memory.c */
SIM_API cudaError_t sim_allocate(void **pointer, size_t bytes, enum cudaMemoryType type);
SIM_API cudaError_t sim_release(void *pointer);
SIM_API cudaError_t sim_release_async(void *pointer, cudaStream_t stream, bool own);
/* Registers memory that the caller has mapped as CUDA memory, and unregisters it. */
SIM_API cudaError_t sim_adopt(void *pointer, size_t bytes, enum cudaMemoryType type);
SIM_API cudaError_t sim_disown(void *pointer);
struct sim_memory {
  void *start;
  size_t bytes;
  enum cudaMemoryType type; /* cudaMemoryTypeUnregistered: not CUDA memory */
  int device;
};
SIM_API struct sim_memory sim_memory_at(const void *pointer);
SIM_API void sim_memory_info(size_t *available, size_t *total);
/* A copy_kind beyond enum cudaMemcpyKind: from one GPU to another. */
enum { SIM_PEER = 5 };
SIM_API cudaError_t sim_copy(void *target, const void *source, size_t bytes,
                             enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool wait);
SIM_API cudaError_t sim_copy_2d(void *target, size_t target_pitch, const void *source,
                                size_t source_pitch, size_t width, size_t height,
                                enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool wait);
/* `unit` is the bytes of one element, 1, 2 or 4. */
SIM_API cudaError_t sim_fill(void *target, unsigned value, size_t unit, size_t count,
                             cudaStream_t stream, bool own);
