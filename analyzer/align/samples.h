/* SPDX-License-Identifier: MIT
 *
 * The collectives that clocks are aligned by. Those of one communicator, operation and size are one
 * sample: what makes their ends differ between ranks (the order of a ring, a slow link) depends on
 * these. If two ranks also exchange messages in both directions, these are a sample too.
 */
#pragma once

#include "base/arena.h"
#include "model/model.h"

#define MOST_SAMPLED 512u /* of one communicator's collectives, or messages of one pair */

struct clock_sample {
  bool messages;   /* sender and receiver, as many of each direction; else barrier-like */
  bool on_host;    /* timed by threads of the host, which the scheduler can delay */
  i64 transfer_ns; /* median over the collectives of their shortest member's time */
  i64 waiting_ns;  /* and of their longest's: of the rank that waits most */
  u32 n;
  u32 *collectives; /* [n] index into model.collectives; spread evenly over the run */
};

struct samples {
  struct clock_sample *at;
  u32 n;
};

void samples_collect(struct samples *samples, const struct model *model, struct arena *arena);

/* How long members were in a collective; NS_UNKNOWN if none is known. */
struct member_times {
  i64 shortest, longest;
};
struct member_times member_times_of(const struct model *model, const struct collective *collective);

/* Means over all sampled collectives, or messages where there are none: of a transfer, and of the
 * rank that waits most, whatever the clocks say. */
void samples_mean_times(const struct samples *samples, double *transfer_us, double *waiting_us);
