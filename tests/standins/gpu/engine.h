/* SPDX-License-Identifier: MIT
 *
 * The simulated GPU of one process: streams are queues of operations, an operation has a computed
 * start and end, and the effects of an operation (a copy, a reduction, a call) really happen, in
 * stream order, when the clock has passed them.
 *
 * Times are computed, never measured: start = max(launch + launch latency, the end of the stream's
 * previous operation + gap, the ends of the operations waited for), end = start + duration. So they
 * do not depend on when a thread of this machine woke up. An operation is *settled* when its end is
 * known; only a collective can hold that up, until all its ranks have said when they arrive. It is
 * *done* when the clock has passed its end and its effects are there.
 *
 * One lock guards all of it. Functions named sim_* want it held, but for sim_lock() itself.
 */
#ifndef STANDIN_ENGINE_H
#define STANDIN_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda_runtime_api.h>

#define SIM_API __attribute__((visibility("default")))
#define SIM_DEVICES 8
#define SIM_FOREVER INT64_MAX

enum sim_kind {
  SIM_KERNEL,
  SIM_COPY,
  SIM_FILL,
  SIM_EVENT,      /* event record */
  SIM_WAIT,       /* stream wait event */
  SIM_CALL,       /* host function */
  SIM_COLLECTIVE, /* one kernel of NCCL */
  /* Nodes of graphs, which are never operations: */
  SIM_CHILD,       /* a graph in the graph */
  SIM_CONDITIONAL, /* graphs that run as often as is found then */
};

/* Nodes of a graph by their places: what comes last on a way through it. */
struct sim_tips {
  size_t *at, n;
};

struct sim_op;

/* What an operation does beside taking time; every member may be NULL. */
struct sim_work {
  bool (*settle)(struct sim_op *op); /* start is set: set end, or false while it cannot be known */
  bool (*begin)(struct sim_op *op);  /* at start; false: try again when the bell rings */
  bool (*finish)(struct sim_op *op); /* at end; false: try again when the bell rings */
  bool unlocked;                     /* finish runs without the lock */
  void (*drop)(struct sim_op *op);   /* the last reference went */
  /* further members of the op's JSON object in the log, beginning with a comma */
  void (*describe)(const struct sim_op *op, FILE *log);
};

struct sim_op {
  struct sim_op *next;
  struct CUstream_st *stream;
  const struct sim_work *work;
  void *user; /* belongs to work */
  enum sim_kind kind;
  unsigned references;
  uint64_t id, previous; /* previous: id of the stream's operation before it, 0 for none */
  int64_t launched, start, end, duration;
  bool begun, settled, done;
  uint32_t correlation;
  uint64_t graph, node;  /* executable graph, and which of its nodes; 0 for none */
  struct sim_op **after; /* operations waited for that were not done when this was enqueued */
  unsigned n_after;
  uint64_t *waits_for; /* ids of those waited for through events, done or not */
  unsigned n_waits_for;
  const char *name; /* of a kernel, mangled; lives for ever */
  unsigned grid[3], block[3];
  size_t bytes;
  unsigned copy_kind; /* enum cudaMemcpyKind */
  int value;          /* of a fill */
  const void *source;
  void *target;
};

struct CUstream_st {
  struct CUstream_st *next;
  struct sim_op *head, *tail; /* not done */
  struct sim_op *unsettled;   /* first not settled, NULL when all are */
  struct sim_op *last;        /* last enqueued, done or not; NULL before the first */
  uint32_t id;                /* as CUPTI numbers it */
  int device;
  unsigned flags;
  int priority;
  bool legacy;             /* a device's default stream */
  bool busy;               /* its head runs without the lock */
  struct sim_graph *graph; /* being captured, else NULL */
  uint64_t capture;        /* which capture that is */
  struct sim_tips tips;    /* what the next node comes after */
  unsigned branch;         /* of the graph, once it has got a node from here */
  bool captures;           /* the capture began here; else the stream joined it through an event */
  bool captures_into;      /* ... into a graph that was there before */
  int capture_mode;        /* enum sim_capture_mode, where it began */
  uint64_t capture_thread; /* that began it */
};

struct CUevent_st {
  unsigned era;         /* of the device when it was made; it is gone in the next */
  struct sim_op *op;    /* last record, NULL before the first */
  uint64_t capture;     /* in which it was last recorded, 0 if in none */
  struct sim_tips tips; /* what it comes after there */
  unsigned flags;
};

/* Settings, each from STANDIN_<NAME> in the environment. */
struct sim_settings {
  int64_t launch_ns, gap_ns, kernel_ns, copy_latency_ns;
  double pcie_bytes_per_ns;
};
SIM_API extern struct sim_settings sim_settings;
SIM_API double sim_setting(const char *name, double otherwise);
/* What the GPUs call themselves: STANDIN_GPU_NAME, or that they are none. */
SIM_API const char *sim_gpu_name(void);

SIM_API void sim_lock(void);
SIM_API void sim_unlock(void);
/* False in a fork child of a process that used the GPU: as with CUDA it must not. */
SIM_API bool sim_usable(void);

/* gpu_streams.c */
SIM_API struct CUstream_st *sim_stream_new(int device, unsigned flags, int priority);
SIM_API void sim_stream_free(struct CUstream_st *stream);
/* The stream behind a handle (0, cudaStreamLegacy, cudaStreamPerThread or a real one). */
SIM_API struct CUstream_st *sim_stream(cudaStream_t handle, bool per_thread);
SIM_API bool sim_stream_is(const struct CUstream_st *stream);
SIM_API struct CUstream_st *sim_streams(void);
SIM_API int *sim_device(void); /* the calling thread's current device */

/* gpu_captures.c: who may do what while streams are captured; the numbers are both APIs'. */
enum sim_capture_mode { SIM_CAPTURE_GLOBAL, SIM_CAPTURE_THREAD, SIM_CAPTURE_RELAXED };
enum sim_capture_status { SIM_NOT_CAPTURED, SIM_CAPTURED, SIM_CAPTURE_LOST };
/* The calling thread's mode; returns the one before. */
SIM_API int sim_capture_exchange_mode(int mode);
/* Whether the calling thread may not make a call that could upset a capture. If so, those captures
 * are lost. */
SIM_API bool sim_capture_forbids(void);
/* The error that such a call returns; takes the lock itself. */
SIM_API cudaError_t sim_capture_unsafe(void);
/* Whether work on the stream would have to wait for one that is being captured. */
SIM_API bool sim_capture_implied(const struct CUstream_st *stream);
/* Why nothing can be put on the stream: its capture is lost, or the call loses another. */
SIM_API cudaError_t sim_capture_refuses(const struct CUstream_st *stream);
/* Asking for a stream, or for a device, loses the captures that are on the way there. */
SIM_API cudaError_t sim_capture_conflict(const struct CUstream_st *stream);
SIM_API cudaError_t sim_capture_device_conflict(int device);

/* gpu_kernels.c: how long a kernel runs that this thread launches now. */
SIM_API int64_t sim_kernel_duration(const char *mangled_name);

/* events.c: all events are gone, as when a device is reset. Who uses one then ends the program, as
 * with the real library it might. */
SIM_API void sim_events_end(void);

/* ops.c */
SIM_API struct sim_op *sim_op_new(struct CUstream_st *stream, enum sim_kind kind,
                                  const struct sim_work *work);
SIM_API struct sim_op *sim_op_keep(struct sim_op *op);
SIM_API void sim_op_release(struct sim_op *op);
/* Makes `op` wait for `other` (may be NULL), as through an event. */
SIM_API void sim_op_after(struct sim_op *op, struct sim_op *other);
/* Hands the operation to its stream; the caller's reference goes with it. */
SIM_API void sim_enqueue(struct sim_op *op);
/* Settles and runs what can be; true if anything changed. */
SIM_API bool sim_progress(void);
int64_t sim_next_due(void);       /* when an effect is due next */
extern int64_t sim_progressed_to; /* what was due until then is done, or waits for the bell */

/* scheduler.c */
void sim_scheduler_nudge(void);
void sim_tell_waiters(void);
SIM_API void sim_wait(struct sim_op *op);
SIM_API void sim_wait_all(int device); /* everything on the device, -1: on all */
/* Runs done() again whenever something changed, until it is true. */
SIM_API void sim_wait_until(bool (*done)(void *), void *user);
struct sim_bell {
  char name[32];
};
SIM_API struct sim_bell sim_own_bell(void);
SIM_API void sim_ring(const struct sim_bell *bell);

/* gpu_log.c */
void sim_log_op(const struct sim_op *op);
void sim_log_sync(struct sim_op *const *ops, unsigned n, int64_t from, int64_t to);

/* activity: what CUPTI is told, and what it tells. */
struct sim_activity {
  void (*op)(const struct sim_op *op); /* done, lock held */
  uint32_t (*launch)(void);            /* correlation id for work being launched */
  void (*record)(const struct CUevent_st *event, const struct CUstream_st *stream);
  /* `stream` NULL: the host waited, for `event`, or for all of a device if that is NULL too */
  void (*wait)(const struct CUevent_st *event, const struct CUstream_st *stream, bool host,
               int64_t from, int64_t to);
  void (*query)(const struct CUevent_st *event, cudaError_t result); /* the host asked for it */
};
SIM_API void sim_activity_set(const struct sim_activity *activity);
SIM_API const struct sim_activity *sim_activity(void);

#endif
