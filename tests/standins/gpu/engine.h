/* SPDX-License-Identifier: MIT
 *
 * The simulated GPU of one process: streams are queues of operations, an operation has a computed
 * start and end, and the effects of an operation (a copy, a reduction, a call) really happen, in
 * stream order, when the clock has passed its end.
 *
 * Times are computed, never measured: start = max(launch + launch latency, the end of the stream's
 * previous operation + gap, the ends of the operations waited for), end = start + duration. So they
 * do not depend on when a thread of this machine woke up. An operation is *settled* when its end is
 * known; only a collective can delay that, until the arrival times of all its ranks are known. It
 * is *done* when the clock has passed its end and its effects have happened.
 *
 * One lock guards the whole simulator. The caller of a function named sim_* must hold it, except
 * for sim_lock() and where a comment says otherwise.
 */
#pragma once

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
  SIM_CHILD,       /* a child graph */
  SIM_CONDITIONAL, /* graphs that run as often as the condition says at that moment */
};

/* Indices of nodes of a graph: the nodes that the next node depends on. */
struct sim_deps {
  size_t *at, n;
};

struct sim_op;

/* The effects of an operation; every member may be NULL. */
struct sim_work {
  bool (*settle)(struct sim_op *op); /* start is set: sets end; false while end is unknown */
  bool (*begin)(struct sim_op *op);  /* at start; false: try again when the doorbell rings */
  bool (*finish)(struct sim_op *op); /* at end; false: try again when the doorbell rings */
  bool unlocked;                     /* finish runs without the lock */
  void (*drop)(struct sim_op *op);   /* at the release of the last reference */
  /* further members of the op's JSON object in the log, beginning with a comma */
  void (*describe)(const struct sim_op *op, FILE *log);
};

/* A collective that copy engines run: a flag to each peer, when all are there the data to each
 * peer, and a flag to each again. */
struct sim_copies {
  unsigned peers; /* 0: it is a kernel */
  size_t bytes;   /* to each */
  int64_t from;   /* when all are there */
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
  uint64_t graph, node;  /* ids of the executable graph and of its node; 0 for none */
  struct sim_op **after; /* operations it waits for that were not done when it was enqueued */
  unsigned n_after;
  uint64_t *waits_for; /* ids of the operations it waits for through events, done or not */
  unsigned n_waits_for;
  const char *name; /* of a kernel, mangled; never freed */
  unsigned grid[3], block[3];
  size_t bytes;
  unsigned copy_kind; /* enum cudaMemcpyKind */
  int value;          /* of a fill */
  const void *source;
  void *target;
  struct sim_copies copies;
};

struct CUstream_st {
  struct CUstream_st *next;
  struct sim_op *head, *tail; /* not done */
  struct sim_op *unsettled;   /* first not settled, NULL when all are */
  struct sim_op *last;        /* last enqueued, done or not; NULL before the first */
  uint32_t id;                /* the number that CUPTI gives it */
  int device;
  unsigned flags;
  int priority;
  void *green;             /* the green context of which it is, else NULL */
  bool legacy;             /* a device's default stream */
  bool busy;               /* its head runs without the lock */
  struct sim_graph *graph; /* being captured, else NULL */
  uint64_t capture;        /* id of that capture */
  struct sim_deps deps;    /* what the next captured node depends on */
  unsigned branch;         /* its branch of the graph, once it has a node */
  bool captures; /* the capture began on this stream; else the stream joined it through an event */
  bool captures_into;      /* ... and adds to an existing graph */
  int capture_mode;        /* enum sim_capture_mode, on the stream where the capture began */
  uint64_t capture_thread; /* the thread that began it */
};

struct CUevent_st {
  unsigned generation;  /* sim_events_end() starts the next one and so ends this event */
  struct sim_op *op;    /* last record, NULL before the first */
  uint64_t capture;     /* id of the capture in which it was last recorded, 0 if in none */
  struct sim_deps deps; /* what a node that waits for it depends on */
  unsigned flags;
};

/* Settings, each from the environment variable STANDIN_<NAME>. */
struct sim_settings {
  int64_t launch_ns, gap_ns, kernel_ns, copy_latency_ns;
  double pcie_bytes_per_ns;
};
SIM_API extern struct sim_settings sim_settings;
SIM_API double sim_setting(const char *name, double fallback);
/* The name of the GPUs: STANDIN_GPU_NAME, or one that says they are stand-ins. */
SIM_API const char *sim_gpu_name(void);

SIM_API void sim_lock(void);
SIM_API void sim_unlock(void);
/* False in a fork child of a process that used the GPU: as with CUDA, the child cannot use it. */
SIM_API bool sim_usable(void);

/* gpu_streams.c */
SIM_API struct CUstream_st *sim_stream_new(int device, unsigned flags, int priority);
SIM_API void sim_stream_free(struct CUstream_st *stream);
/* The stream behind a handle (0, cudaStreamLegacy, cudaStreamPerThread or a real one). */
SIM_API struct CUstream_st *sim_stream(cudaStream_t handle, bool per_thread);
SIM_API bool sim_stream_is(const struct CUstream_st *stream);
SIM_API struct CUstream_st *sim_streams(void);
SIM_API int *sim_device(void); /* the calling thread's current device */

/* gpu_captures.c: which calls are allowed while streams are captured. The values of the enums are
 * those of the runtime and driver APIs. */
enum sim_capture_mode { SIM_CAPTURE_GLOBAL, SIM_CAPTURE_THREAD, SIM_CAPTURE_RELAXED };
enum sim_capture_status { SIM_NOT_CAPTURED, SIM_CAPTURED, SIM_CAPTURE_INVALIDATED };
/* Sets the calling thread's mode and returns the previous one. */
SIM_API int sim_capture_exchange_mode(int mode);
/* Whether the capture modes forbid the calling thread an unsafe call: one that could disturb a
 * capture. If so, invalidates those captures. */
SIM_API bool sim_capture_forbids(void);
/* The error that such a call returns; takes the lock itself. */
SIM_API cudaError_t sim_capture_unsafe(void);
/* Whether work on the stream would implicitly wait for a stream that is being captured. */
SIM_API bool sim_capture_implied(const struct CUstream_st *stream);
/* The error if no work can be added to the stream: its capture is invalidated, or the call
 * invalidates another one. */
SIM_API cudaError_t sim_capture_refuses(const struct CUstream_st *stream);
/* The error of a query of a stream, or of a device, that is being captured. Such a query
 * invalidates the captures. */
SIM_API cudaError_t sim_capture_conflict(const struct CUstream_st *stream);
SIM_API cudaError_t sim_capture_device_conflict(int device);

/* gpu_kernels.c: the duration of a kernel that this thread launches now. */
SIM_API int64_t sim_kernel_duration(const char *mangled_name);

/* events.c: ends all events, as a reset of the device does. A later use of one aborts the program;
 * with the real library it may. */
SIM_API void sim_events_end(void);

/* ops.c */
SIM_API struct sim_op *sim_op_new(struct CUstream_st *stream, enum sim_kind kind,
                                  const struct sim_work *work);
SIM_API struct sim_op *sim_op_keep(struct sim_op *op);
SIM_API void sim_op_release(struct sim_op *op);
/* Makes `op` wait for `other` (may be NULL), as through an event. */
SIM_API void sim_op_after(struct sim_op *op, struct sim_op *other);
/* Adds the operation to its stream, which takes over the caller's reference. */
SIM_API void sim_enqueue(struct sim_op *op);
/* Settles and runs all operations that it can; true if anything changed. */
SIM_API bool sim_progress(void);
int64_t sim_next_due(void);       /* time of the next effect */
extern int64_t sim_progressed_to; /* effects due until then are done, or wait for the doorbell */

/* scheduler.c */
void sim_scheduler_nudge(void);
void sim_wake_waiters(void);
SIM_API void sim_wait(struct sim_op *op);
SIM_API void sim_wait_all(int device); /* waits for all work of the device, -1: of all devices */
/* Waits until done() is true; calls it whenever something has changed. */
SIM_API void sim_wait_until(bool (*done)(void *), void *user);
struct sim_bell {
  char name[32];
};
SIM_API struct sim_bell sim_own_bell(void);
SIM_API void sim_ring(const struct sim_bell *bell);

/* gpu_log.c */
void sim_log_op(const struct sim_op *op);
void sim_log_sync(struct sim_op *const *ops, unsigned n, int64_t from, int64_t to);

/* Callbacks of the stand-in CUPTI; every member may be NULL. */
struct sim_activity {
  void (*op)(const struct sim_op *op); /* an operation is done; the lock is held */
  uint32_t (*launch)(void);            /* returns the correlation id of new work */
  void (*record)(const struct CUevent_st *event, const struct CUstream_st *stream);
  /* If `stream` is NULL, the host waited for `event`, or for the whole device if that is NULL too.
   */
  void (*wait)(const struct CUevent_st *event, const struct CUstream_st *stream, bool host,
               int64_t from, int64_t to);
  void (*query)(const struct CUevent_st *event, cudaError_t result); /* the host queried it */
};
SIM_API void sim_activity_set(const struct sim_activity *activity);
SIM_API const struct sim_activity *sim_activity(void);
