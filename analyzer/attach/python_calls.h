/* SPDX-License-Identifier: MIT
 *
 * The Python frames of a thread, with the information which of them one call of the interpreter's
 * loop (_PyEval_EvalFrameDefault) runs: with it they can replace those calls in a native stack. Up
 * to 3.10 a call runs one frame; later one call runs many, and ends at a frame that is marked
 * (is_entry, in 3.11) or of its own kind (FRAME_OWNED_BY_CSTACK, from 3.12 on).
 */
#pragma once

#include "base/arena.h"
#include "inspect/python_frames.h"
#include "model/span_call_sites.h"

struct python_step {
  struct python_frame frame;
  bool has_frame; /* else it is only where a call ends */
  bool ends_call;
};

/* The steps from the innermost outwards, at most `most`; how many. *whole: to the outermost. */
u32 python_calls_read(const struct python *python, pid_t pid, u64 thread_state,
                      struct python_step *steps, u32 most, bool *whole);

/* What a frame is of, all unknown where it cannot be read. */
struct call_frame *python_call_frame(struct arena *arena, const struct python *python, pid_t pid,
                                     const struct python_frame *frame);
