/* SPDX-License-Identifier: MIT
 *
 * What was alive at the peak, by the whole stack that it was allocated from: a frame includes all
 * that it called.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/memory/memory.h"
#include "base/sorting.h"
#include "base/tree_order.h"

struct cost {
  double bytes;
  u32 blocks;
};

struct stack_sums {
  const struct memory_history *history;
  struct cost *frames; /* [n_frames]; [0]: of blocks whose stack is not known */
  /* What most bytes of a frame are for. */
  float *by_category; /* [n_frames * ALLOCATION_CATEGORIES] */
  u32 *kept;          /* frames, most bytes first */
  u32 n_kept;
};

static void add_block(struct stack_sums *s, const struct held_block *block) {
  enum allocation_category category = memory_source_of(s->history, block->source)->category;
  double bytes = (double)MAX(block->bytes, 0);
  u32 at = block->stack < s->history->n_frames ? block->stack : 0;
  for (;; at = s->history->frames[at].caller) { /* callers come before what they call */
    s->frames[at].bytes += bytes;
    s->frames[at].blocks++;
    s->by_category[(size_t)at * ALLOCATION_CATEGORIES + category] += (float)bytes;
    if (!at || !s->history->frames[at].caller)
      return;
  }
}

static enum allocation_category main_category(const struct stack_sums *s, u32 frame) {
  const float *of = &s->by_category[(size_t)frame * ALLOCATION_CATEGORIES];
  return (enum allocation_category)NUMBER_OF_LARGEST(0, ALLOCATION_CATEGORIES, i, of[i]);
}

/* Most bytes first; a caller before what it calls, then in the order of the recording. */
static int by_bytes(const void *left, const void *right, void *user) {
  const struct stack_sums *s = user;
  u32 a = *(const u32 *)left, b = *(const u32 *)right;
  double of_a = s->frames[a].bytes, of_b = s->frames[b].bytes;
  if (of_a != of_b)
    return of_a < of_b ? 1 : -1;
  return a < b ? -1 : a > b;
}

static u32 depth_of(const struct stack_sums *s, u32 frame) {
  u32 caller = s->history->frames[frame].caller, depth = 0;
  for (; caller; caller = s->history->frames[caller].caller)
    depth++;
  return depth;
}

static void list_frame(struct stack_sums *s, u32 frame, double peak, struct arena *arena,
                       struct memory_result *result) {
  struct memory_stack *row = &result->stacks_at_peak[result->n_stacks_at_peak++];
  const struct memory_frame *is = &s->history->frames[frame];
  *row = (struct memory_stack){.depth = depth_of(s, frame),
                               .frame = arena_text(arena, is->name),
                               .own = is->own ? ANSWER_YES : ANSWER_NO,
                               .category = allocation_category_name(main_category(s, frame)),
                               .bytes = s->frames[frame].bytes,
                               .blocks = s->frames[frame].blocks,
                               .share = peak > 0 ? s->frames[frame].bytes / peak : NAN};
}

/* What has no stack, so that the rows without a caller add up to the peak. */
static void list_unknown(const struct stack_sums *s, double peak, struct memory_result *result) {
  double known = TOTAL(double, result->stacks_at_peak, result->n_stacks_at_peak, one,
                       one->depth == 0 ? one->bytes : 0);
  if (peak - known > 0)
    result->stacks_at_peak[result->n_stacks_at_peak++] =
        (struct memory_stack){.frame = "stack not known",
                              .own = ANSWER_UNKNOWN,
                              .bytes = peak - known,
                              .blocks = s->frames[0].blocks ? s->frames[0].blocks : NAN,
                              .share = (peak - known) / peak};
}

void memory_stacks_at_peak(const struct memory_history *history, const struct block_table *live,
                           double peak, struct arena *arena, struct memory_result *result) {
  u32 n = history->n_frames;
  if (n < 2)
    return;
  struct stack_sums s = {
      .history = history,
      .frames = memory_zeroed(n, sizeof(*s.frames)),
      .by_category = memory_zeroed(size_product(n, ALLOCATION_CATEGORIES), sizeof(*s.by_category)),
      .kept = memory_zeroed(n, sizeof(*s.kept))};
  result->stacks_at_peak =
      arena_array(arena, MEMORY_STACKS_LISTED + 1, sizeof(*result->stacks_at_peak));
  FOR_EACH(live->slots, live->room, block)
    if (block->used)
      add_block(&s, block);
  s.n_kept = LIST_WHERE(s.kept, 1, n, i, s.frames[i].bytes > 0, i);
  if (s.n_kept) {
    SORT_INDICES(s.kept, s.n_kept, &s, by_bytes);
    s.n_kept = MIN(s.n_kept, MEMORY_STACKS_LISTED);
    ORDER_AS_TREE(s.kept, s.n_kept, n, i, history->frames[i].caller);
    FOR_EACH(s.kept, s.n_kept, frame)
      list_frame(&s, *frame, peak, arena, result);
    list_unknown(&s, peak, result);
  }
  FREE_EACH(&s, frames, by_category, kept);
}
