/* SPDX-License-Identifier: MIT
 *
 * The run step by step, and rank by rank: a part of struct results, for pictures and for programs.
 * If there are more steps or ranks than are kept, some represent others: of neighbouring steps the
 * slowest is kept, with its own figures; of ranks the worst are kept, and the rest are joined to
 * means. NAN if not known;  an array without known values is NULL.
 */
#pragma once

#include "format/tscope_format.h"

/* Of one rank in one step: X(ID, name, type, meaning). All but the last are ms. Wall is compute
 * + exposed + memcpy + idle;  exposed is wait + transfer if these can be separated. */
#define SERIES_MEASURES(X)                                                                         \
  X(WALL, "wall_ms", "array of ms", "wall time of the step on this rank")                          \
  X(COMPUTE, "compute_ms", "array of ms", "compute")                                               \
  X(EXPOSED, "exposed_ms", "array of ms",                                                          \
    "exposed communication: no compute ran at the same time")                                      \
  X(WAIT, "exposed_wait_ms", "array of ms", "part of exposed_ms spent waiting for other ranks")    \
  X(TRANSFER, "exposed_transfer_ms", "array of ms", "part of exposed_ms spent moving data")        \
  X(MEMCPY, "exposed_copy_ms", "array of ms",                                                      \
    "exposed copies: neither compute nor communication ran at the same time")                      \
  X(IDLE, "idle_ms", "array of ms", "idle time: neither compute, communication nor copies")        \
  X(INPUT, "input_ms", "array of ms",                                                              \
    "fetching input; may be at the same time as all of the above")                                 \
  X(FORWARD, "forward_ms", "array of ms",                                                          \
    "host time in the forward phase; phases may be at the same time as all of the above")          \
  X(BACKWARD, "backward_ms", "array of ms", "host time in the backward phase")                     \
  X(OPTIMIZER, "optimizer_ms", "array of ms", "host time in the optimizer phase")                  \
  X(LATE, "late_ms", "array of ms",                                                                \
    "how much later than the first rank this rank arrived at the deciding collective of the step") \
  X(MEMORY, "memory_bytes", "array of bytes",                                                      \
    "largest amount of memory allocated on the device in the step")

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
