/* SPDX-License-Identifier: MIT
 *
 * The most that was allocated at once, and what it was.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/memory/memory.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/texts.h"

static i64 find_peaks(const struct memory_history *history, struct memory_result *result,
                      u32 *after) {
  i64 allocated = history->allocated_before, reserved = history->reserved_before;
  *after = 0;
  for (u32 i = 0; i < history->n_events; i++) {
    const struct memory_event *event = &history->events[i];
    if (event->allocated > allocated) {
      allocated = event->allocated;
      *after = i + 1;
    }
    reserved = MAX(event->reserved, reserved);
  }
  result->peak_allocated_bytes = memory_bytes(allocated);
  result->peak_reserved_bytes = memory_bytes(reserved);
  const struct memory_event *event = *after ? &history->events[*after - 1] : NULL;
  i64 begin = history->n_events ? history->events[0].time : NS_UNKNOWN;
  if (begin != NS_UNKNOWN)
    result->peak_time_s = event ? seconds_between(begin, event->time) : 0;
  if (event && event->step >= 0)
    result->peak_step = event->step;
  return allocated;
}

ORDER_BY(by_source, struct held_block, UP(source) UP(before))

ORDER_BY(by_bytes, struct memory_use,
         DOWN(bytes) THEN(compare_texts(allocation_category_name(a->kind),
                                        allocation_category_name(b->kind))) BY_TEXT(source))

static struct memory_use use_of(const struct memory_history *history,
                                const struct held_block *block) {
  const struct memory_source *source = memory_source_of(history, block->source);
  struct memory_use use = {.kind = source->category, .source = source->place};
  if (block->before && !use.kind && !use.source)
    use.kind = ALLOCATION_BEFORE_RECORDING;
  return use;
}

/* One row for each source, plus the rest; rows lie in `uses`, which has room for all blocks. The
 * rest is the difference between the blocks' sum and the peak: the allocator's rounding of blocks
 * that are there at the end, and blocks of unknown size. */
static u32 group_by_source(const struct memory_history *history, struct held_block *blocks, u32 n,
                           double rest, struct memory_use *uses) {
  u32 rows = 0;
  SORT(blocks, n, by_source);
  for (u32 i = 0; i < n; i++) {
    bool same = i && by_source(&blocks[i - 1], &blocks[i]) == 0;
    if (!same)
      uses[rows++] = use_of(history, &blocks[i]);
    uses[rows - 1].bytes += (double)MAX(blocks[i].bytes, 0);
    uses[rows - 1].blocks++;
  }
  if (rest > 0)
    uses[rows++] =
        (struct memory_use){.kind = ALLOCATION_NOT_ATTRIBUTED, .bytes = rest, .blocks = NAN};
  return rows;
}

/* Adds up rows of one category; there are few categories. */
static u32 by_category(const struct memory_use *rows, u32 n, struct memory_use *out) {
  u32 found = 0;
  FOR_EACH(rows, n, row) {
    struct memory_use *all = FIND(out, found, one, one->kind == row->kind);
    if (!all) {
      all = &out[found++];
      *all = (struct memory_use){.kind = row->kind};
    }
    ADD_EACH(all, row, bytes, blocks);
  }
  return found;
}

/* The largest rows, with the rest summed up in the last, as copies in `arena`. */
static void keep_rows(struct memory_use *rows, u32 n, double total, struct arena *arena,
                      struct memory_use **kept, u32 *n_kept) {
  SORT(rows, n, by_bytes);
  u32 most = MIN(MEMORY_ROWS, n);
  for (u32 i = most + 1; i < n; i++)
    ADD_EACH(&rows[most], &rows[i], bytes, blocks);
  *n_kept = n > most ? most + 1 : n;
  *kept = arena_array(arena, *n_kept, sizeof(**kept));
  for (u32 i = 0; i < *n_kept; i++) {
    struct memory_use *row = &(*kept)[i];
    *row = rows[i];
    row->share = total > 0 ? row->bytes / total : NAN;
    if (i == most)
      row->kind = ALLOCATION_ALL_OTHERS, row->source = NULL;
    row->category = allocation_category_name(row->kind);
    row->source = arena_text(arena, row->source);
  }
}

static void describe_peak(struct memory_replay *replay, i64 peak, struct arena *arena,
                          struct memory_result *result) {
  u32 n = replay->live.n;
  SCOPED struct held_block *blocks = memory_array(size_sum(n, 1), sizeof(*blocks));
  SCOPED struct memory_use *rows = memory_array(size_product(2, size_sum(n, 2)), sizeof(*rows));
  struct memory_use *categories = rows + n + 2u;
  LIST_WHERE(blocks, 0, replay->live.room, i, replay->live.slots[i].used, replay->live.slots[i]);
  double rest = (double)peak - (double)replay->known_bytes;
  u32 n_rows = group_by_source(replay->history, blocks, n, rest, rows);
  u32 n_categories = by_category(rows, n_rows, categories);
  keep_rows(rows, n_rows, (double)peak, arena, &result->live_at_peak, &result->n_live_at_peak);
  keep_rows(categories, n_categories, (double)peak, arena, &result->by_category,
            &result->n_by_category);
  memory_stacks_at_peak(replay->history, &replay->live, (double)peak, arena, result);
}

static void add_conflict_note(const struct memory_replay *replay, struct arena *arena,
                              struct memory_result *result) {
  if (!replay->conflicts)
    return;
  const char *what = replay->history->segments
                         ? "events and segments disagree on %u blocks: some events are missing"
                         : "%u blocks were freed whose allocation is not in the record";
  char *note = arena_printf(arena, what, replay->conflicts);
  result->notes[result->n_notes++] = note;
}

void memory_find_peak(const struct memory_history *history, struct arena *arena,
                      struct memory_result *result) {
  u32 after;
  i64 peak = find_peaks(history, result, &after);
  if (peak < 0)
    return;
  struct memory_replay replay;
  memory_replay_begin(&replay, history);
  add_conflict_note(&replay, arena, result);
  memory_replay_to(&replay, after);
  describe_peak(&replay, peak, arena, result);
  memory_replay_free(&replay);
  memory_peak_without(history, result);
}
