/* SPDX-License-Identifier: MIT
 *
 * The stand-in NCCL: ranks are processes of this machine (or threads, or one thread's group), and a
 * communicator is one piece of shared memory that they all map.
 *
 * A rank says in the segment when it arrives at a collective as soon as its stream lets that be
 * computed, which is usually before the clock gets there. When all have, the completion is the same
 * computed instant on every rank:
 *
 *   end = max over ranks(arrival) + latency + bytes x bus factor / bandwidth of the slowest link
 *
 * so an early rank's kernel is long and the last one's is short, as with the real NCCL. The data is
 * staged in the segment when the rank's clock reaches its start, and read by the others at the end.
 */
#ifndef STANDIN_NCCL_COMM_H
#define STANDIN_NCCL_COMM_H

#include <stdatomic.h>

#include "../gpu/clock.h"
#include "../gpu/engine.h"

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#define NCCL_API __attribute__((visibility("default")))
/* As in the real library every function has a twin of the profiling interface. */
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

/* What one rank says of its part in one collective, or in one message of a pair. Sequence numbers
 * count from 1, so a fresh segment says nothing. */
struct cell {
  _Atomic uint64_t arrived; /* sequence number up to which the fields below are said */
  _Atomic uint64_t ready;   /* ... up to which the data is staged */
  _Atomic uint32_t unread;  /* ranks that have yet to be done with this cell and its data */
  uint32_t signature;       /* of the call; differs where the ranks disagree */
  int64_t arrival;
  uint64_t offset, bytes; /* of the data in the rank's staging area */
};

/* The two sides of the messages from one rank to another. */
struct lane {
  struct cell send[SLOTS], receive[SLOTS];
};

struct member {
  struct sim_bell bell;
  _Atomic uint32_t taken;
  _Atomic uint32_t wants_room; /* ring it when a cell of it has been read by all */
  int global_rank;
};

struct split {
  uint64_t round;
  int color, key;
};

struct segment {
  _Atomic uint32_t joined; /* futex */
  _Atomic uint32_t split;  /* futex: ranks that have said their split, over all rounds */
  _Atomic uint32_t aborted;
  uint32_t nranks;
  struct member members[MAX_RANKS];
  struct split splits[2][MAX_RANKS]; /* by the round's parity */
};

/* A rank's own staging: a queue of blocks, freed in order once read. */
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
  void *profiler; /* the plugin's */
  bool aborted;
  ncclResult_t error;
  uint64_t fails_at; /* collective that never ends on this rank, and with it on none; 0: none is */
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
  int peer; /* or root */
  /* While it runs: */
  uint64_t sequence;
  int64_t arrival, end;
  bool said, staged;
  void *profiled; /* the plugin's */
};

/* segment.c */
ncclResult_t comm_join(struct ncclComm **comm, const char *identity, int nranks, int rank);
void comm_await_all(struct ncclComm *comm);
/* kernel.c: STANDIN_ASYNC_ERROR="R@N:E": on global rank R (-1: on all), each communicator's
 * collective number N, counted from 1, never ends, and the communicator has the asynchronous error
 * E from then on. */
void comm_read_failure(struct ncclComm *comm);
void comm_release(struct ncclComm *comm);
void futex_wait(_Atomic uint32_t *word, uint32_t value);
void futex_wake(_Atomic uint32_t *word);
/* Room for the data behind `cell`, or false when it has to be waited for. */
bool staging_get(struct ncclComm *comm, struct cell *cell, size_t bytes);
void comm_ring_others(const struct ncclComm *comm);

/* law.c */
size_t dtype_bytes(ncclDataType_t dtype);
size_t call_bytes(const struct call *call); /* S, as the bus bandwidth formulas count it */
int64_t law_transfer_ns(const struct call *call);

/* kernel.c */
ncclResult_t kernel_launch(struct call *calls, size_t n);

/* profiler.c */
void profiler_comm_begins(struct ncclComm *comm);
void profiler_comm_ends(struct ncclComm *comm);
void profiler_calls_launched(struct call *calls, size_t n);
void profiler_call_ran(const struct call *call);

/* group.c */
ncclResult_t group_call(const struct call *call);
/* Waits for the other ranks of a new communicator: now, or at the end of the group. */
ncclResult_t group_await(struct ncclComm *comm);
/* A split or shrink inside a group is finished at its end. */
struct pending_split {
  struct ncclComm *parent, **into;
  uint64_t round;
};
ncclResult_t group_split(const struct pending_split *split);
ncclResult_t split_finish(const struct pending_split *split, struct ncclComm **joined);

/* reduce.c: into = reduction over n sources of `count` elements, in rank order. */
void reduce(void *into, const void *const *sources, int n, size_t count, ncclDataType_t dtype,
            const struct ncclComm *comm, ncclRedOp_t redop);

#endif
