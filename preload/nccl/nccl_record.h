/* SPDX-License-Identifier: MIT
 *
 * What is recorded of each kind of NCCL call: the recorders that nccl_hooks.def names. They run
 * after the real call, on the job's thread. Those with a shape also run before it; see
 * hooks/wrapper.h.
 *
 * Calls made inside a group are launched when the outermost group ends. Each still has its own
 * record, with the group's number. The time for launching is in the GROUP record.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/event_pairs.h"
#include "gpu/gpu_clock.h"
#include "nccl/communicator.h"
#include "streams/stream_numbers.h"

enum {
  TSCOPE_NO_PEER = -1,
  TSCOPE_NO_REDOP = -1,
  MAX_PENDING_COMMS =
      32, /* most communicators created in one group; further ones are found at their first use */
  MAX_UNITS = 32,    /* most communicators and streams of one group that are timed */
  MAX_COUNTED = 256, /* most communicators of one group whose calls can be undone */
};

/* What a group launches together: its calls on one communicator and stream. Identified by the first
 * call. */
struct nccl_unit {
  event_pair_ticket pair;
  struct event_subject subject;
  cudaStream_t stream;
  u16 stream_index;
};

/* Calls of an open group on one communicator. */
struct nccl_counted {
  struct communicator *communicator;
  u32 collectives, transfers;
};

/* Work that a communicator that does not block accepted, and may not have launched yet. */
struct nccl_deferred {
  event_pair_ticket pair;
  struct event_subject subject;
};

/* A thread's NCCL state, in its family slot. */
struct nccl_thread {
  u32 depth; /* group starts without their end */
  u32 group; /* number of the open group, 0 while it has no calls */
  u32 calls;
  u32 n_pending;
  u32 n_units;
  u32 calls_beyond; /* of the open group: not timed, since they belong to no unit */
  u32 n_counted;
  u32 n_deferred;
  struct nccl_unit units[MAX_UNITS];
  struct nccl_counted counted[MAX_COUNTED];
  struct nccl_deferred deferred[MAX_UNITS];
  struct pending_communicator pending[MAX_PENDING_COMMS];
};

static inline struct nccl_thread *nccl_thread(struct tscope_thread *thread) {
  return thread->family[TSCOPE_FAMILY_NCCL];
}

u8 nccl_dtype(int datatype);
u64 nccl_bytes(int datatype, size_t count);
u8 nccl_redop(int op);
u32 nccl_group_open(struct nccl_thread *nccl);

/* Whether a call was accepted. On communicators that do not block, it may still be in progress. */
static inline bool nccl_accepted(ncclResult_t result) {
  return result == ncclSuccess || (int)result == TSCOPE_RESULT_IN_PROGRESS;
}

/* Ends the pairs that this thread has deferred for communicator `number`. By now its work is
 * launched; if `launched` is false, it is not known any more when that was. */
TSCOPE_NOINLINE void nccl_end_deferred(struct nccl_thread *nccl, u32 number, bool launched);

/* The head of a recorder (hooks/wrapper.h) that has something to do on both sides of the call, and
 * what it keeps of one. */
#define RECORDER_AROUND(name, wakes, call_type, ...)                                               \
  enum { name##_wakes = TSCOPE_##wakes };                                                          \
  call_type name##_begin(struct tscope_thread *thread, ##__VA_ARGS__);                             \
  void name##_end(struct tscope_thread *thread, call_type *call, ncclResult_t result)

/* The place of the duration in the record of a call in progress; written at its end. */
struct nccl_span {
  u64 *dur;
  u64 start;
};

/* Closes the record of a call, and tells of a failure of `what`. `recorded`: where the record has
 * the result; NULL if there is no record. */
static inline void nccl_call_end(struct tscope_thread *thread, const struct nccl_span *span,
                                 i32 *recorded, const char *what, ncclResult_t result) {
  if (recorded && TSCOPE_UNLIKELY(result != ncclSuccess))
    __atomic_store_n(recorded, (i32)result, __ATOMIC_RELAXED);
  tscope_span_close(thread, span->dur, span->start);
  if (TSCOPE_UNLIKELY(!nccl_accepted(result)))
    tscope_failed_call(thread, TSCOPE_FAILED_NCCL, what, (i32)result);
  thread->launches_inside = false;
}

/* collective: every collective and point-to-point call. `bytes` is count times element size, with
 * count in the sense that the function itself gives it. */
#define TSCOPE_RECORDER_SHAPE_collective ~, AROUND
struct collective_call {
  struct nccl_span span;
  event_pair_ticket pair; /* 0 inside a group, and if events are not the source */
  struct event_subject subject;
};
RECORDER_AROUND(collective, WAKES, struct collective_call, enum tscope_op op, const void *buffer,
                size_t count, ncclDataType_t datatype, int redop, int peer, ncclComm_t comm,
                cudaStream_t stream);
/* Of a call in progress; NULL if it has none. */
struct tscope_collective_record *collective_record(const struct collective_call *call);

/* configured: a collective with a configuration of the call, which is read once NCCL has accepted
 * it. */
#define TSCOPE_RECORDER_SHAPE_configured ~, AROUND
struct configured_call {
  struct collective_call collective;
  const void *config;
};
RECORDER_AROUND(configured, WAKES, struct configured_call, const void *config, enum tscope_op op,
                const void *buffer, size_t count, ncclDataType_t datatype, int redop, int peer,
                ncclComm_t comm, cudaStream_t stream);

/* one_sided: what a rank does with another rank's memory. The order of such calls differs between
 * the two ranks, so they have no sequence number and are not matched. */
#define TSCOPE_RECORDER_SHAPE_one_sided ~, AROUND
RECORDER_AROUND(one_sided, WAKES, struct nccl_span, enum tscope_one_sided kind, size_t count,
                int datatype, int peer, ncclComm_t comm, cudaStream_t stream);

enum { nccl_group_start_wakes = TSCOPE_WAKES };
void record_nccl_group_start(struct tscope_thread *thread, u64 start, ncclResult_t result);

#define TSCOPE_RECORDER_SHAPE_nccl_group_end ~, AROUND
RECORDER_AROUND(nccl_group_end, QUIET, struct nccl_span);

/* nccl_group_simulate: also ends the group, but launches nothing. */
#define TSCOPE_RECORDER_SHAPE_nccl_group_simulate ~, AROUND
RECORDER_AROUND(nccl_group_simulate, QUIET, struct nccl_span);

/* comm_init and similar: calls that create communicators. */
enum { comm_init_wakes = TSCOPE_WAKES, comm_init_all_wakes = TSCOPE_WAKES };
void record_comm_init(struct tscope_thread *thread, u64 start, ncclResult_t result,
                      ncclComm_t *comm, int nranks, int rank, const ncclUniqueId *ids, int n_ids,
                      const ncclConfig_t *config);
void record_comm_init_all(struct tscope_thread *thread, u64 start, ncclResult_t result,
                          ncclComm_t *comms, int n, const int *devices);

/* comm_split, comm_shrink: a parent that does not block is busy after the call, and cannot be
 * queried. */
#define TSCOPE_RECORDER_SHAPE_comm_split ~, AROUND
#define TSCOPE_RECORDER_SHAPE_comm_shrink ~, AROUND
struct child_call {
  struct pending_communicator pending;
  const ncclConfig_t *config; /* the job's, NULL: as the parent */
};
RECORDER_AROUND(comm_split, WAKES, struct child_call, ncclComm_t parent, int color,
                ncclComm_t *child, const ncclConfig_t *config);
RECORDER_AROUND(comm_shrink, WAKES, struct child_call, ncclComm_t parent, ncclComm_t *child,
                const ncclConfig_t *config);

/* comm_grow: a communicator with additional ranks. Its old members know the old communicator, its
 * new members know an id, and only the root knows both. So its identity is not known. */
#define TSCOPE_RECORDER_SHAPE_comm_grow ~, AROUND
RECORDER_AROUND(comm_grow, WAKES, struct pending_communicator, ncclComm_t from, int nranks,
                int rank, ncclComm_t *grown);

/* comm_ready: the job queries whether the operation that it started on a communicator is done. */
enum { comm_ready_wakes = TSCOPE_QUIET };
void record_comm_ready(struct tscope_thread *thread, u64 start, ncclResult_t result,
                       ncclComm_t comm, const ncclResult_t *state);

#define TSCOPE_RECORDER_SHAPE_comm_end ~, AROUND
struct comm_end_call {
  u64 start;
  u32 number;
  u16 how;
};
RECORDER_AROUND(comm_end, QUIET, struct comm_end_call, enum tscope_comm_end how, ncclComm_t comm);
