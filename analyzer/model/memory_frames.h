/* SPDX-License-Identifier: MIT
 *
 * The stacks from which allocations come, as one tree: stacks that are equal from the outermost
 * frame down to a node share that node.
 */
#pragma once

#include "base/hash_index.h"
#include "model/memory_history.h"

struct memory_frames {
  HASHED(struct memory_frame) all; /* [0] is no frame */
};

/* Index of the frame `name` that `caller` called (0: it is the outermost), made if there is none.
 * `name` is kept, not copied. The caller's index if there are too many. */
u32 memory_frames_find_or_add(struct memory_frames *frames, u32 caller, const char *name, bool own);

/* Puts them into the history, in `arena`, and frees the rest. */
struct arena;
void memory_frames_finish(struct memory_frames *frames, struct arena *arena,
                          struct memory_history *history);

void memory_frames_free(struct memory_frames *frames);
