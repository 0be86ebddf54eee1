/* SPDX-License-Identifier: MIT
 *
 * The frames and stacks that a trace announces, as the model has them.
 */
#pragma once

#include "import/tscope/events/definitions.h"
#include "model/span_call_sites.h"

/* Fills frames and stacks, in `arena`, in the order of the definitions. Texts are the definitions'.
 */
void stacks_copy(const struct definitions *definitions, struct arena *arena,
                 struct call_sites *sites);

/* Which frames are of a library that runs the training loop (model/training_calls.h), for those who
 * look at single stacks. */
void definitions_find_library(struct definitions *definitions);

/* Index of a stack by the hash that call sites carry, and of a frame by that of a stack;
 * INDEX_NONE. */
u32 stack_number(const struct definitions *definitions, u64 hash);
u32 frame_number(const struct definitions *definitions, u64 hash);

/* call_stack_line() of the stack of that hash. False if it has none, or is not announced. */
bool stack_line(const struct definitions *definitions, u64 hash, struct arena *arena,
                struct call_frame *frame);
