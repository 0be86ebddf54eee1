/* SPDX-License-Identifier: MIT
 *
 * The end of a run that hangs: one rank never calls the next collective, the others wait in it, and
 * each records a stall and its stacks.
 */
#pragma once

#include <stdbool.h>

#include "trace_writer.h"

#define TRACEGEN_STALL_MS 60000u

struct rank_hang {
  bool culprit;  /* the rank that does not call the collective */
  u32 comm, seq; /* of the collective */
  u32 name;      /* string: the name of gloo's work for it */
  u64 since,
      looked; /* the last progress and the look at the threads, in units of the chunk's clock */
  u64 since_ticks, looked_ticks; /* the same on the tick clock, unshifted */
};

/* File and line of the innermost frames, for tests. */
#define RANK_HANG_WAITS "train.py", 120
#define RANK_HANG_CULPRIT "ckpt.py", 33

void rank_hang_write(struct trace_writer *writer, const struct rank_hang *hang);
