/* SPDX-License-Identifier: MIT
 *
 * The end of a run that hangs: one rank never comes to the next collective, the others wait in it,
 * and each writes down that it stands still and where.
 */
#ifndef TSCOPE_TRACEGEN_RANK_HANG_H
#define TSCOPE_TRACEGEN_RANK_HANG_H

#include <stdbool.h>

#include "trace_writer.h"

#define TRACEGEN_STALL_MS 60000u

struct rank_hang {
  bool culprit;      /* does something else than the collective */
  u32 comm, seq;     /* of the collective */
  u32 name;          /* string: of the work that gloo does for it */
  u64 since, looked; /* when it last moved, when its threads were looked at; chunk clock units */
  u64 since_ticks, looked_ticks; /* the same on the tick clock, unshifted */
};

/* The files and lines that the stacks end in, innermost; for tests to compare with. */
#define RANK_HANG_WAITS "train.py", 120
#define RANK_HANG_CULPRIT "ckpt.py", 33

void rank_hang_write(struct trace_writer *writer, const struct rank_hang *hang);

#endif
