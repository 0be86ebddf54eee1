/* SPDX-License-Identifier: MIT
 *
 * The run step by step, and rank by rank: a part of struct results, for pictures and for programs.
 * If there are more steps or ranks than are kept, some represent others: of neighbouring steps the
 * slowest is kept, with its own figures; of ranks the worst are kept, and the rest are joined to
 * means. NAN if not known;  an array without known values is NULL.
 */
#ifndef TSCOPE_SERIES_RESULT_H
#define TSCOPE_SERIES_RESULT_H

#include "format/tscope_format.h"

/* Of one rank in one step: X(ID, name, type, meaning). All but the last two are ms. Wall is compute
 * + exposed + memcpy + idle;  exposed is wait + transfer if these can be separated. */
#define SERIES_MEASURES(X)                                                                         \
  X(WALL, "wall_ms", "array of ms", "how long the step took")                                      \
  X(COMPUTE, "compute_ms", "array of ms", "compute")                                               \
  X(EXPOSED, "exposed_ms", "array of ms", "communication that no compute hid")                     \
  X(WAIT, "exposed_wait_ms", "array of ms", "of it, waiting for ranks")                            \
  X(TRANSFER, "exposed_transfer_ms", "array of ms", "of it, moving data")                          \
  X(MEMCPY, "exposed_copy_ms", "array of ms", "copies that run beside neither")                    \
  X(IDLE, "idle_ms", "array of ms", "none of these")                                               \
  X(INPUT, "input_ms", "array of ms", "fetching input; may overlap all of these")                  \
  X(FORWARD, "forward_ms", "array of ms", "the host in the forward pass; this and the next two")   \
  X(BACKWARD, "backward_ms", "array of ms", "in the backward pass: phases, beside the above")      \
  X(OPTIMIZER, "optimizer_ms", "array of ms", "in the optimizer")                                  \
  X(LATE, "late_ms", "array of ms",                                                                \
    "time after the first rank at the step's costliest collective")                                \
  X(MEMORY, "memory_bytes", "array of bytes", "most allocated on its device")

enum series_measure {
#define X(ID, name, type, meaning) SERIES_##ID,
  SERIES_MEASURES(X)
#undef X
      SERIES_COUNT
};

/* Steps kept, and cells of ranks x steps. */
#define SERIES_STEPS 2000u
#define SERIES_ROWS 100u
#define SERIES_CELLS 50000u

#define RESULT_TABLE "analyses/steps/series_result.def"
#include "analyses/results/result_structs.h"

/* Nothing known. */
struct series_result series_result_unknown(void);

#endif
