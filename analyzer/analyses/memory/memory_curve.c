/* SPDX-License-Identifier: MIT
 *
 * What pictures of memory need: how much was allocated over time, and how full each segment is.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/memory/memory.h"
#include "base/checked_memory.h"
#include "base/sorting.h"

/* Of every so many events the one after which most was allocated, so that no peak is lost. */
void memory_draw_curve(const struct memory_history *history, struct arena *arena,
                       struct memory_result *result) {
  u32 n = history->n_events;
  u32 each = n / MEMORY_CURVE_POINTS + 1, points = n / each + 1;
  result->curve_time_s = arena_array(arena, points, sizeof(double));
  result->curve_allocated = arena_array(arena, points, sizeof(double));
  result->curve_reserved = arena_array(arena, points, sizeof(double));
  for (u32 from = 0; from < n; from += each) {
    u32 most = NUMBER_OF_LARGEST(from, n - from < each ? n : from + each, i,
                                 (double)history->events[i].allocated);
    const struct memory_event *event = &history->events[most];
    u32 point = result->n_curve++;
    result->curve_time_s[point] = seconds_between(history->events[0].time, event->time);
    result->curve_allocated[point] = memory_bytes(event->allocated);
    result->curve_reserved[point] = memory_bytes(event->reserved);
  }
}

ORDER_POINTERS_BY(larger_first, struct memory_segment, DOWN(bytes) UP(address))

/* Shares of equal pieces of a segment that blocks in use cover. */
static void fill_pieces(const struct memory_history *history, const struct memory_segment *segment,
                        double *pieces) {
  double piece = (double)segment->bytes / MEMORY_PIECES, at = 0;
  for (u32 i = 0; i < segment->n_blocks && piece > 0; i++) {
    const struct memory_block *block = &history->blocks[segment->first_block + i];
    double end = at + (double)block->bytes;
    if (block->state != MEMORY_BLOCK_FREE)
      for (u32 p = (u32)fmin(at / piece, MEMORY_PIECES); p < MEMORY_PIECES && p * piece < end; p++)
        pieces[p] += (fmin(end, (p + 1) * piece) - fmax(at, p * piece)) / piece;
    at = end;
  }
  FOR_EACH_CHANGED(pieces, MEMORY_PIECES, item)
    *item = fmin(1, *item);
}

void memory_draw_segments(const struct memory_history *history, struct arena *arena,
                          struct memory_result *result) {
  u32 n = history->segments ? history->n_segments : 0;
  if (n == 0)
    return;
  SCOPED const struct memory_segment **order = memory_array(n, sizeof(*order));
  u32 kept = MIN(n, MEMORY_SEGMENTS_DRAWN);
  struct memory_segments *out = &result->segments;
  out->largest = arena_array(arena, kept, sizeof(*out->largest));
  for (u32 i = 0; i < n; i++)
    order[i] = &history->segments[i];
  SORT(order, n, larger_first);
  FOR_EACH(order, kept, item) {
    struct memory_segment_picture *picture = &out->largest[out->n_largest++];
    picture->bytes = memory_bytes((*item)->bytes);
    picture->pieces = arena_array(arena, MEMORY_PIECES, sizeof(double));
    picture->n_pieces = MEMORY_PIECES;
    picture->pool = (*item)->private_pool ? "private"
                    : (*item)->expandable ? "expandable"
                    : (*item)->small      ? "small"
                                          : "large";
    fill_pieces(history, *item, picture->pieces);
  }
}
