/* SPDX-License-Identifier: MIT
 *
 * The collective ends that clocks are aligned by: at most MOST_SAMPLES barrier-like collectives of
 * each communicator, spread evenly over it. If ranks only exchange messages (a pipeline), the ends
 * of messages are used. A receive ends after its send, by the latency. For messages in the other
 * direction the latency has the opposite sign, so messages in both directions are needed.
 */
#ifndef TSCOPE_SAMPLES_H
#define TSCOPE_SAMPLES_H

#include "base/arena.h"
#include "model/model.h"

#define MOST_SAMPLES 256u

struct sample {
  u32 comm;      /* index into model.comms */
  bool messages; /* between its two members, in both directions */
  u32 n, n_members;
  u32 *collectives; /* [n] index into model.collectives */
  u32 *members;     /* [n_members] index into model.ranks, ascending */
  i64 *ends;        /* [n * n_members] local; NS_UNKNOWN */
};

struct samples {
  struct sample *at; /* communicators with at least one usable collective, then pairs of ranks */
  u32 n;
  double *transfers_us; /* shortest time of a member in each sampled collective */
  u32 n_transfers;
};

/* 0, or -ENOMEM. */
int samples_collect(struct samples *samples, const struct model *model, struct arena *arena);

/* Median over the sampled collectives of the time that the last member to arrive spent in it. This
 * is the duration of a transfer, whatever the clocks say. */
double samples_transfer_us(struct samples *samples);

#endif
