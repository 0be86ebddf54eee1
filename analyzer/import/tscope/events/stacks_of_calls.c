/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/stacks_of_calls.h"

#include <errno.h>

/* Index of a frame or stack by its hash; they are sorted by it. INDEX_NONE. */
#define FIND(list, n, hash)                                                                        \
  ({                                                                                               \
    u32 low_ = 0, high_ = (n);                                                                     \
    while (low_ < high_) {                                                                         \
      u32 middle_ = low_ + (high_ - low_) / 2;                                                     \
      if ((list)[middle_].id < (hash))                                                             \
        low_ = middle_ + 1;                                                                        \
      else                                                                                         \
        high_ = middle_;                                                                           \
    }                                                                                              \
    low_ < (n) && (list)[low_].id == (hash) ? low_ : INDEX_NONE;                                   \
  })

static int copy_frames(const struct definitions *definitions, struct arena *arena,
                       struct call_sites *sites) {
  sites->n_frames = definitions->n_frames;
  sites->frames = arena_array(arena, sites->n_frames + 1u, sizeof(*sites->frames));
  if (!sites->frames)
    return -ENOMEM;
  for (u32 i = 0; i < sites->n_frames; i++) {
    const struct frame_definition *frame = &definitions->frames[i];
    sites->frames[i] =
        (struct call_frame){.file = definition_string(definitions, frame->file),
                            .function = definition_string(definitions, frame->function),
                            .line = frame->line,
                            .first_line = frame->first_line};
  }
  return 0;
}

/* Frames that are not announced, as in a trace that was cut, are left out. */
int stacks_copy(const struct definitions *definitions, struct arena *arena,
                struct call_sites *sites) {
  u32 *frames = arena_array(arena, definitions->n_stack_frames + 1u, sizeof(*frames));
  sites->n_stacks = definitions->n_stacks;
  sites->stacks = arena_array(arena, sites->n_stacks + 1u, sizeof(*sites->stacks));
  if (!frames || !sites->stacks || copy_frames(definitions, arena, sites) < 0)
    return -ENOMEM;
  for (u32 i = 0; i < sites->n_stacks; i++) {
    const struct stack_definition *stack = &definitions->stacks[i];
    u32 n = 0;
    sites->stacks[i] = (struct call_stack){.frames = frames, .cut = stack->cut};
    for (u32 k = 0; k < stack->n; k++) {
      u64 hash = definitions->stack_frames[stack->first + k];
      u32 frame = FIND(definitions->frames, definitions->n_frames, hash);
      if (frame != INDEX_NONE)
        frames[n++] = frame;
    }
    sites->stacks[i].n = n;
    frames += n;
  }
  return 0;
}

u32 stack_number(const struct definitions *definitions, u64 hash) {
  return FIND(definitions->stacks, definitions->n_stacks, hash);
}
