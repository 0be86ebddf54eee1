/* SPDX-License-Identifier: MIT
 *
 * The device's segments at the end: what is free in them, and what prevents its use.
 *
 * PyTorch's allocator gives a segment back only when all of it is free, and gives a block only what
 * fits in one gap. So free memory is "unused" if its segment has no live block, else "stranded".
 * With expandable segments, blocks of all sizes share one range whose free pages can be unmapped:
 * then stranded memory seldom stays.
 */
#include <math.h>

#include "analyses/memory/memory.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"

#define SMALL_BLOCK                                                                                \
  (1ll << 20)         /* what PyTorch's allocator takes from segments for small blocks             \
                       */
#define LEAST_CLASS 9 /* 512 bytes, the allocator's unit */
#define CLASSES 64

struct tally {
  struct memory_segments *out;
  struct memory_size_class classes[CLASSES];
};

static struct memory_size_class *class_of(struct tally *tally, i64 bytes) {
  u32 power = LEAST_CLASS;
  while (power < CLASSES - 2 && (i64)1 << power < bytes)
    power++;
  return &tally->classes[power];
}

/* A segment without a live block is no gap: the allocator can give it back. */
static void count_gap(struct tally *tally, i64 bytes, bool unused) {
  struct memory_segments *out = tally->out;
  if (bytes <= 0)
    return;
  *(unused ? &out->unused_bytes : &out->stranded_bytes) += (double)bytes;
  if (unused)
    return;
  out->gaps++;
  out->largest_gap_bytes = fmax(out->largest_gap_bytes, (double)bytes);
  struct memory_size_class *class = class_of(tally, bytes);
  class->gaps++;
  class->gap_bytes += (double)bytes;
}

/* A run of live blocks between two gaps. */
static void count_run(struct tally *tally, i64 gap_before, i64 run, i64 gap_after) {
  struct memory_segments *out = tally->out;
  if (gap_before <= 0 || gap_after <= 0 || run <= 0 || run > SMALL_BLOCK)
    return;
  out->pinned_blocks++;
  out->pinned_bytes += (double)run;
  out->pinned_gap_bytes += (double)(gap_before + gap_after);
}

static void count_blocks(struct tally *tally, const struct memory_block *blocks, u32 n) {
  bool unused = ALL(blocks, n, one, one->state == MEMORY_BLOCK_FREE);
  i64 gap = 0, run = 0, gap_before = 0;
  FOR_EACH(blocks, n, block) {
    if (block->state == MEMORY_BLOCK_FREE) {
      gap += block->bytes;
      continue;
    }
    if (gap) {
      count_run(tally, gap_before, run, gap);
      count_gap(tally, gap, unused);
      gap_before = gap;
      gap = run = 0;
    }
    run += block->bytes;
    struct memory_size_class *class = class_of(tally, block->bytes);
    class->live_blocks++;
    class->live_bytes += (double)block->bytes;
  }
  count_run(tally, gap_before, run, gap);
  count_gap(tally, gap, unused);
}

static void count_segment(struct memory_segments *out, const struct memory_segment *segment) {
  out->count++;
  *(segment->small ? &out->small : &out->large) += 1;
  out->expandable += segment->expandable;
  out->private_pool += segment->private_pool;
}

static void keep_classes(struct tally *tally, struct arena *arena) {
  struct memory_segments *out = tally->out;
  out->by_size = arena_array(arena, CLASSES, sizeof(*out->by_size));
  for (u32 i = 0; i < CLASSES; i++) {
    struct memory_size_class *class = &tally->classes[i];
    class->up_to_bytes = ldexp(1, (int)i);
    if (class->live_blocks > 0 || class->gaps > 0)
      out->by_size[out->n_by_size++] = *class;
  }
}

/* What is given back and obtained again was obtained twice while recording. An allocator that is
 * emptied once, before it is used, only begins anew. A round ends where memory is obtained after
 * some was given back. */
struct refetches {
  struct block_table obtained;
  u32 n_returned; /* segments obtained and given back, and none obtained for them since */
  bool returning;
};

static void count_refetch(struct refetches *r, const struct memory_event *event,
                          struct memory_segments *out) {
  if (event->kind == MEMORY_SEGMENT_FREE) {
    bool again = block_table_remove(&r->obtained, event->address, NULL);
    r->n_returned += again;
    r->returning |= again;
    return;
  }
  out->rounds += r->returning;
  r->returning = false;
  out->refetched += r->n_returned > 0;
  r->n_returned -= r->n_returned > 0;
  block_table_put(&r->obtained, (struct held_block){.address = event->address});
}

static void count_calls(const struct memory_history *history, struct memory_segments *out) {
  struct refetches refetches = {0};
  FOR_EACH(history->events, history->n_events, event) {
    double bytes = (double)MAX(event->bytes, 0);
    if (event->kind != MEMORY_SEGMENT_ALLOC && event->kind != MEMORY_SEGMENT_FREE)
      continue;
    bool obtained = event->kind == MEMORY_SEGMENT_ALLOC;
    *(obtained ? &out->obtained : &out->returned) += 1;
    *(obtained ? &out->obtained_bytes : &out->returned_bytes) += bytes;
    count_refetch(&refetches, event, out);
  }
  block_table_free(&refetches.obtained);
}

void memory_analyse_segments(const struct memory_history *history, struct arena *arena,
                             struct memory_result *result) {
  struct memory_segments *out = &result->segments;
  *out = history->segments ? (struct memory_segments){0} : unknown_memory_segments;
  out->obtained = out->obtained_bytes = out->returned = out->returned_bytes = 0;
  out->refetched = out->rounds = 0;
  count_calls(history, out);
  if (!history->segments)
    return;
  SCOPED struct tally *tally = memory_zeroed(1, sizeof(*tally));
  tally->out = out;
  double elsewhere = 0; /* stranded where expandable segments change nothing */
  FOR_EACH(history->segments, history->n_segments, segment) {
    double stranded = out->stranded_bytes;
    count_segment(out, segment);
    count_blocks(tally, history->blocks + segment->first_block, segment->n_blocks);
    /* Pools of CUDA graphs keep their memory either way. */
    if (segment->expandable || segment->private_pool)
      elsewhere += out->stranded_bytes - stranded;
  }
  out->expandable_known = true;
  /* However free memory is distributed, what is allocated at once must be reserved. */
  bool fixed = out->count > out->expandable;
  out->expandable_frees_bytes = fixed ? fmax(0, result->peak_unused_bytes - elsewhere) : 0;
  out->expandable_would_help =
      out->expandable_frees_bytes >= FRAGMENTATION_SHARE * result->peak_reserved_bytes &&
      out->expandable_frees_bytes >= FRAGMENTATION_LEAST_BYTES;
  keep_classes(tally, arena);
}
