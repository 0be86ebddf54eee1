/* SPDX-License-Identifier: MIT
 *
 * Which memory holds the frames of a stack. Frames that lie close together are read as one piece,
 * so that nothing delays the reading of one after the other.
 */
#pragma once

#include "callsites/watched_stack.h"

enum { FRAME_HEAD_BYTES = 120 }; /* of a frame, what is looked at */

struct frame_spans {
  u32 n;
  struct frame_span {
    u64 begin, end;
    const u8 *bytes;
  } at[MAX_WATCHED_FRAMES]; /* from the outermost frame on */
};

/* Asks for the memory of these frames, given from the innermost out. False if there is no room for
 * all. */
bool frame_spans_add(struct frame_spans *spans, struct memory_gather *gather,
                     const struct frame_head *heads, u32 n);

/* The head of the frame at an address, after that was read; NULL if it was not among them. `from`:
 * where to begin to search, from the innermost out; 0 at first. */
const u8 *frame_spans_head(const struct frame_spans *spans, u64 at, u32 *from);
