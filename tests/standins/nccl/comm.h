/* SPDX-License-Identifier: MIT
 *
 * The stand-in NCCL: ranks are processes of this machine (or threads, or calls in one group of one
 * thread), and a communicator is a segment of shared memory that they all map.
 *
 * A rank writes its arrival time at a collective into the segment as soon as it can be computed
 * from the rank's stream, usually before that time has come. When all ranks have done so, the
 * collective's end is the same computed instant on every rank:
 *
 *   end = max over ranks(arrival) + latency + bytes x bus factor / bandwidth of the slowest link
 *
 * so the kernel of an early rank is long and that of the last rank is short, as with the real NCCL.
 * Each rank stages its data in the segment at its kernel's start, and the others read it at the
 * end.
 */
#pragma once

#include <stdatomic.h>

#include "../gpu/clock.h"
#include "../gpu/engine.h"

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#define NCCL_API __attribute__((visibility("default")))
/* As in the real library, every function has a second name for the profiling interface. */
#define PROFILED(name) extern __typeof__(name) p##name __attribute__((alias(#name)))

enum { MAX_RANKS = 64, SLOTS = 128, MAX_SCALES = 16 };

enum call_kind {
  CALL_ALLREDUCE,
  CALL_BROADCAST,
  CALL_REDUCE,
  CALL_ALLGATHER,
  CALL_REDUCESCATTER,
  CALL_ALLTOALL,
  CALL_GATHER,
  CALL_SCATTER,
  CALL_SEND,
  CALL_RECV,
};

/* One rank's part in one collective, or in one message of a pair. Sequence numbers count from 1, so
 * a new segment of zeros has no arrivals. */
struct cell {
  _Atomic uint64_t arrived; /* sequence number up to which the fields below are set */
  _Atomic uint64_t ready;   /* ... up to which the data is staged */
  _Atomic uint32_t unread;  /* ranks that still need this cell and its data */
  uint32_t signature;       /* of the call; differs if the ranks make different calls */
  int64_t arrival;
  uint64_t offset, bytes; /* of the data in the rank's staging area */
};

/* The two sides of all messages from one rank to another. */
struct lane {
  struct cell send[SLOTS], receive[SLOTS];
};

struct member {
  struct sim_bell bell;
  _Atomic uint32_t taken;
  _Atomic uint32_t waits_for_space; /* ring its doorbell when all have read one of its cells */
  int global_rank;
};

struct split {
  uint64_t round;
  int color, key;
};

struct segment {
  _Atomic uint32_t joined; /* futex */
  _Atomic uint32_t split;  /* futex: how many times a rank has set its split, over all rounds */
  _Atomic uint32_t aborted;
  uint32_t nranks;
  struct member members[MAX_RANKS];
  struct split splits[2][MAX_RANKS]; /* [round % 2][rank] */
};

/* One block of a rank's staging area. The blocks are a queue, and are freed in order when read. */
struct block {
  struct block *next;
  struct cell *cell;
  uint64_t offset, bytes;
};

struct ncclComm {
  struct segment *segment;
  struct cell *collectives; /* [SLOTS][nranks] */
  struct lane *lanes;       /* [from][to] */
  char *staging;            /* [nranks][staging_bytes] */
  size_t mapped, staging_bytes;
  struct block *oldest, *newest;
  uint64_t sequence;                             /* of the last collective called */
  uint64_t sent[MAX_RANKS], received[MAX_RANKS]; /* of the last message */
  uint64_t splits, shrinks;
  struct sim_op *last; /* operations of one communicator run in the order of the calls */
  char identity[33];
  int rank, nranks, device;
  unsigned references;
  void *profiler; /* the profiler plugin's context */
  bool aborted;
  bool copies; /* without kernels where it can: NCCL_CTA_POLICY_ZERO. Every buffer counts as
                  registered. */
  ncclResult_t error;
  uint64_t fails_at; /* collective that never ends on this rank, and so on no rank; 0: none */
  ncclResult_t fails_with;
  double scales[MAX_SCALES]; /* of ncclRedOpCreatePreMulSum */
  bool scale_used[MAX_SCALES];
};

struct call {
  enum call_kind kind;
  struct ncclComm *comm;
  cudaStream_t stream;
  const void *source;
  void *target;
  size_t count;
  ncclDataType_t dtype;
  ncclRedOp_t redop;
  int peer;    /* or root */
  bool copies; /* asked for by the configuration of the call */
  /* Set while it runs: */
  uint64_t sequence;
  int64_t arrival, end;
  bool announced, staged; /* the arrival is in the segment; the data is staged */
  void *profiled;         /* the profiler plugin's event */
};

/* segment.c */
ncclResult_t comm_join(struct ncclComm **comm, const char *identity, int nranks, int rank);
void comm_await_all(struct ncclComm *comm);
/* kernel.c: STANDIN_ASYNC_ERROR="R@N:E": on global rank R (-1: on all), each communicator's
 * collective number N, counted from 1, never ends, and the communicator has the asynchronous error
 * E from then on. */
void comm_read_fault(struct ncclComm *comm);
void comm_release(struct ncclComm *comm);
void futex_wait(_Atomic uint32_t *word, uint32_t value);
void futex_wake(_Atomic uint32_t *word);
/* Finds space for the data of `cell`; false if there is none until other ranks have read theirs. */
bool staging_get(struct ncclComm *comm, struct cell *cell, size_t bytes);
void comm_ring_others(const struct ncclComm *comm);

/* law.c */
size_t dtype_bytes(ncclDataType_t dtype);
size_t call_bytes(const struct call *call); /* S in the formulas of the bus bandwidth */
int64_t law_transfer_ns(const struct call *call);

/* collectives.c: the configuration of the call in progress asks for copy engines. */
extern __thread bool configured_copies;

/* kernel.c */
ncclResult_t kernel_launch(struct call *calls, size_t n);

/* profiler.c */
void profiler_comm_begins(struct ncclComm *comm);
void profiler_comm_ends(struct ncclComm *comm);
void profiler_calls_launched(struct call *calls, size_t n);
void profiler_copies_launched(struct call *call, cudaStream_t stream);
void profiler_call_ran(const struct call *call);

/* group.c */
ncclResult_t group_call(const struct call *call);
/* Waits for the other ranks of a new communicator: now, or at the end of the group. */
ncclResult_t group_await(struct ncclComm *comm);
/* A split inside a group, which is finished at the end of the group. */
struct pending_split {
  struct ncclComm *parent, **into;
  uint64_t round;
};
ncclResult_t group_split(const struct pending_split *split);
ncclResult_t split_finish(const struct pending_split *split, struct ncclComm **joined);

/* reduce.c: reduces n sources of `count` elements into `into`, in rank order. */
void reduce(void *into, const void *const *sources, int n, size_t count, ncclDataType_t dtype,
            const struct ncclComm *comm, ncclRedOp_t redop);
