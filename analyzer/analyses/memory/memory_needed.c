/* SPDX-License-Identifier: MIT
 *
 * The most that the segments with a block in use took at one time. PyTorch's allocator gives back
 * segments without such a block before it fails, so this, and not all that was reserved, is what
 * the program's blocks needed where they lay.
 */
#include <stdlib.h>

#include "analyses/memory/memory.h"
#include "base/checked_memory.h"
#include "base/sorting.h"

struct known_segment {
  u64 address;
  i64 bytes;
  u32 blocks; /* in use */
  bool reserved;
};

struct needed {
  struct known_segment *segments; /* in order of address, each address once */
  u32 n;
  i64 bytes, most;
  bool has_reusable; /* the history says when a freed block may be used again */
};

ORDER_BY(by_address, struct known_segment, UP(address))

/* All that ever were: those at the end, and those that an event names. */
static void list_segments(struct needed *needed, const struct memory_history *history) {
  needed->segments =
      memory_zeroed(size_sum(history->n_segments, history->n_events), sizeof(*needed->segments));
  u32 n = 0;
  FOR_EACH(history->segments, history->n_segments, segment)
    needed->segments[n++] = (struct known_segment){SAME(segment, address)};
  FOR_EACH(history->events, history->n_events, event) {
    needed->has_reusable |= event->kind == MEMORY_REUSABLE;
    if (event->kind == MEMORY_SEGMENT_ALLOC || event->kind == MEMORY_SEGMENT_FREE)
      needed->segments[n++] = (struct known_segment){SAME(event, address)};
  }
  needed->n = SORT_AND_JOIN(needed->segments, n, by_address, one, same, (void)same);
}

/* The reserved segment in which the address lies; NULL if none is known. */
static struct known_segment *segment_of(struct needed *needed, u64 address) {
  u32 first = FIRST_NOT(0, needed->n, i, needed->segments[i].address <= address);
  struct known_segment *found = first ? &needed->segments[first - 1] : NULL;
  bool holds = found && found->reserved && address - found->address < (u64)found->bytes;
  return holds ? found : NULL;
}

static void reserve(struct needed *needed, u64 address, i64 bytes, bool reserved) {
  struct known_segment *segment = FIND_SORTED(
      needed->segments, needed->n, &(struct known_segment){.address = address}, by_address);
  if (!segment)
    return;
  if (segment->reserved && segment->blocks)
    needed->bytes = memory_add(needed->bytes, -segment->bytes);
  *segment =
      (struct known_segment){.address = address, .bytes = MAX(bytes, 0), .reserved = reserved};
}

static void use(struct needed *needed, u64 address, bool more) {
  struct known_segment *segment = segment_of(needed, address);
  if (!segment || (!more && !segment->blocks))
    return;
  u32 before = segment->blocks;
  segment->blocks += more ? 1 : -1u;
  if (!before || !segment->blocks)
    needed->bytes = memory_add(needed->bytes, more ? segment->bytes : -segment->bytes);
}

/* Takes back what the event did: only the end is known completely. */
static void undo_event(struct needed *needed, const struct memory_event *event) {
  if (event->kind == MEMORY_SEGMENT_ALLOC)
    reserve(needed, event->address, 0, false);
  else if (event->kind == MEMORY_SEGMENT_FREE)
    reserve(needed, event->address, event->bytes, true);
  else if (event->kind == MEMORY_ALLOC)
    use(needed, event->address, false);
  else if (event->kind == (needed->has_reusable ? MEMORY_REUSABLE : MEMORY_FREE))
    use(needed, event->address, true);
  needed->most = MAX(needed->bytes, needed->most);
}

void memory_find_needed(const struct memory_history *history, struct memory_result *result) {
  struct needed needed = {0};
  /* Of an expandable segment events tell parts, and blocks lie across them. */
  if (!history->segments || ANY(history->segments, history->n_segments, one, one->expandable))
    return;
  list_segments(&needed, history);
  FOR_EACH(history->segments, history->n_segments, segment) {
    reserve(&needed, segment->address, segment->bytes, true);
    for (u32 b = 0; b < segment->n_blocks; b++)
      if (history->blocks[segment->first_block + b].state != MEMORY_BLOCK_FREE)
        use(&needed, history->blocks[segment->first_block + b].address, true);
  }
  needed.most = needed.bytes;
  for (u32 i = history->n_events; i-- > 0;)
    undo_event(&needed, &history->events[i]);
  free(needed.segments);
  result->peak_needed_bytes = (double)needed.most;
}
