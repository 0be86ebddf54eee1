/* SPDX-License-Identifier: MIT
 *
 * The definitions of a file that still grows (files/follow.h): those of the report (definitions.h),
 * kept up to date chunk by chunk. Shapes, streams and graphs are left out; of stalls the last one
 * is kept.
 */
#pragma once

#include "import/tscope/events/definitions.h"

struct collector;

struct followed_definitions {
  struct definitions now; /* lists and texts are good until the next chunk */
  struct collector *collector;
  struct arena infos, ticks, stalls;
  bool new_infos, new_anchors, new_stalls, new_stacks;
  u32 stacks_known; /* when a library that runs the training loop was last looked for */
};

/* Before the first chunk: what the header says. */
void definitions_follow_begin(struct followed_definitions *definitions,
                              const struct trace_file *file);

/* Takes what is new in a chunk; then the clock is that of the newest anchors. */
void definitions_follow_chunk(struct followed_definitions *definitions,
                              const struct trace_file *file, const struct trace_chunk *chunk);

/* After the chunks of a look: communicators, facts, stacks and the last stall. */
void definitions_follow_finish(struct followed_definitions *definitions,
                               const struct trace_file *file);
void definitions_follow_end(struct followed_definitions *definitions);
