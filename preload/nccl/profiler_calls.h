/* SPDX-License-Identifier: MIT
 *
 * Collectives as NCCL itself runs them, see profiler_plugin.c: each one that NCCL tells of is
 * joined to the call that asked for it, and recorded.
 */
#ifndef TSCOPE_NCCL_PROFILER_CALLS_H
#define TSCOPE_NCCL_PROFILER_CALLS_H

#include "record/hook.h"

/* Whether NCCL took us for its profiler; nothing here costs anything before. */
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

/* A communicator of NCCL's, as its profiler knows it. */
struct profiler_comm {
  u64 hash;
  u32 number; /* in the trace; TSCOPE_UNKNOWN until a call was joined */
  u32 taken;
};

/* NULL beyond the table. A communicator that NCCL names by its hash alone is found again by it. */
struct profiler_comm *profiler_comm_new(u64 hash);
struct profiler_comm *profiler_comm_by_hash(u64 hash);
void profiler_comm_free(struct profiler_comm *comm);

/* The job calls this; NCCL will tell of it later. */
void profiler_expect(const struct profiler_call *call);

/* A call of NCCL's that was put on its stream, for the functions below; NULL when it is not
 * recorded. Transfers that NCCL makes of an all-to-all are not. */
struct profiler_span *profiler_call_started(struct profiler_comm *comm, struct profiler_call call,
                                            bool timed);

/* One channel of it began on the GPU, by the GPU's global timer; 0 if not known. */
struct profiler_channel *profiler_channel_started(struct profiler_span *span, u64 timer);
void profiler_channel_timer(struct profiler_channel *channel, u64 timer);
void profiler_channel_stopped(struct profiler_channel *channel);

/* Which of the two a handle is; NULL if not that. */
struct profiler_channel *profiler_channel_of(void *handle);

#endif
