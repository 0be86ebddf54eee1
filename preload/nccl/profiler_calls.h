/* SPDX-License-Identifier: MIT
 *
 * Collectives as NCCL itself runs them, see profiler_plugin.c: each one that NCCL reports is joined
 * to the job's call, and recorded.
 */
#pragma once

#include "record/hook.h"

/* Whether NCCL uses tscope as its profiler; before that, nothing here costs time. */
extern u8 profiler_attached;

/* A collective or transfer as the job called it, or as NCCL runs it. */
struct profiler_call {
  const void *buffer; /* received into, or sent from */
  u64 bytes;          /* as in COLLECTIVE; 0 if not known */
  u32 comm, seq;      /* as in COLLECTIVE; TSCOPE_UNKNOWN */
  u8 op;
  /* NCCL's: */
  bool captured;
  u8 channels;
  const char *algorithm, *protocol; /* NULL if not known */
};

/* A communicator, as NCCL's profiler interface knows it. */
struct profiler_comm {
  u64 hash;
  u32 number; /* in the trace; TSCOPE_UNKNOWN until a call was joined */
  u32 in_use;
};

/* NULL if the table is full. If NCCL gives only a communicator's hash, the communicator is found by
 * that hash. */
struct profiler_comm *profiler_comm_new(u64 hash);
struct profiler_comm *profiler_comm_by_hash(u64 hash);
void profiler_comm_free(struct profiler_comm *comm);

/* The job calls this collective; NCCL will report it later. */
void profiler_expect(const struct profiler_call *call);

/* A call that NCCL has put on its stream, for the functions below; NULL if it is not recorded. The
 * transfers into which NCCL splits an all-to-all are not recorded. */
struct profiler_span *profiler_call_started(struct profiler_comm *comm, struct profiler_call call,
                                            bool timed);

/* One of its channels began on the GPU, at this time of the GPU's global timer; 0 if not known. */
struct profiler_channel *profiler_channel_started(struct profiler_span *span, u64 timer);
void profiler_channel_timer(struct profiler_channel *channel, u64 timer);
void profiler_channel_stopped(struct profiler_channel *channel);

/* Convert a handle to one of the two types; NULL if it is not of that type. */
struct profiler_channel *profiler_channel_of(void *handle);
