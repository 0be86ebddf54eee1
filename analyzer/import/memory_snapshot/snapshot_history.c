/* SPDX-License-Identifier: MIT
 *
 * One device of a snapshot: its segments, its events, and its totals, computed backwards from the
 * end.
 */

#include "base/arena.h"
#include "base/quantity.h"
#include "base/texts.h"
#include "import/memory_snapshot/memory_snapshot.h"
#include "import/memory_snapshot/stacks.h"

#define MOST_DEVICES 1024u
#define MOST_BYTES (1ll << 44) /* of one block or segment */

struct history_reading {
  const struct value *root;
  u32 device;
  struct arena *arena;
  struct memory_history *history;
  struct stacks stacks;
  u32 unreadable_events; /* events that lack a necessary field */
  i64 uncovered;         /* bytes of segments that no block covers */
};

static const struct value *segments_of(const struct value *root) {
  return value_is_sequence(root) ? root : value_get(root, "segments");
}

static const struct value *events_of(const struct value *root, u32 device) {
  return value_item(value_get(root, "device_traces"), device);
}

bool snapshot_looks_like(const struct value *root) {
  const struct value *segments = segments_of(root);
  if (!value_is_sequence(segments))
    return false;
  if (value_get(root, "device_traces"))
    return true;
  const struct value *first = value_item(segments, 0);
  return first && value_get(first, "total_size") && value_get(first, "blocks");
}

static i64 size_of(const struct value *value, const char *key) {
  i64 size = 0;
  value_integer(value_get(value, key), &size);
  return size < 0 || size > MOST_BYTES ? 0 : size;
}

static u64 address_of(const struct value *value, const char *key) {
  i64 address = 0;
  value_integer(value_get(value, key), &address);
  return (u64)address;
}

u32 snapshot_devices(const struct value *root) {
  const struct value *segments = segments_of(root);
  u32 devices = value_count(value_get(root, "device_traces"));
  for (u32 i = 0; i < value_count(segments); i++) {
    i64 device = size_of(value_item(segments, i), "device");
    if (device < MOST_DEVICES && device >= devices)
      devices = (u32)device + 1;
  }
  return MIN(devices, MOST_DEVICES);
}

static bool of_device(const struct history_reading *reading, const struct value *segment) {
  return size_of(segment, "device") == reading->device;
}

static u8 state_of(const char *state) {
  if (same_text(state, "active_allocated"))
    return MEMORY_BLOCK_ALLOCATED;
  /* "active_pending_free"; the documentation calls it "active_awaiting_free" */
  return text_starts_with(state, "active") ? MEMORY_BLOCK_PENDING : MEMORY_BLOCK_FREE;
}

/* Where a block was allocated: its frames, or the frames of the last allocation that it is known
 * to have held. */
static const struct value *frames_of(const struct value *block) {
  const struct value *frames = value_get(block, "frames");
  const struct value *past = value_get(block, "history");
  return frames || !past ? frames : value_get(value_item(past, value_count(past) - 1), "frames");
}

static void count_segments(struct history_reading *reading) {
  const struct value *segments = segments_of(reading->root);
  struct memory_history *history = reading->history;
  u64 n_blocks = 0, n_segments = 0;
  for (u32 i = 0; i < value_count(segments); i++) {
    const struct value *segment = value_item(segments, i), *blocks = value_get(segment, "blocks");
    if (!of_device(reading, segment))
      continue;
    n_segments++;
    n_blocks += value_count(blocks) + 1ull; /* one more, for bytes that no block covers */
    for (u32 b = 0; b < value_count(blocks); b++)
      stacks_add(&reading->stacks, frames_of(value_item(blocks, b)));
  }
  history->segments = arena_array(reading->arena, n_segments, sizeof(*history->segments));
  history->blocks = arena_array(reading->arena, n_blocks, sizeof(*history->blocks));
}

static void add_block(struct history_reading *reading, struct memory_block block) {
  struct memory_history *history = reading->history;
  bool allocated = block.state == MEMORY_BLOCK_ALLOCATED;
  bool pending = block.state == MEMORY_BLOCK_PENDING;
  history->reserved_at_end = memory_add(history->reserved_at_end, block.bytes);
  history->allocated_at_end = memory_add(history->allocated_at_end, allocated ? block.bytes : 0);
  history->requested_at_end =
      memory_add(history->requested_at_end, allocated ? block.requested : 0);
  history->pending_at_end = memory_add(history->pending_at_end, pending ? block.bytes : 0);
  history->blocks[history->n_blocks++] = block;
}

static void read_blocks(struct history_reading *reading, const struct value *blocks,
                        struct memory_segment *segment) {
  u64 address = segment->address;
  i64 left = segment->bytes; /* at most MOST_BYTES, and so is every block */
  segment->first_block = reading->history->n_blocks;
  for (u32 i = 0; i < value_count(blocks); i++) {
    const struct value *value = value_item(blocks, i);
    const struct stack *stack = stacks_find(&reading->stacks, frames_of(value));
    struct memory_block block = {.address = address,
                                 .bytes = size_of(value, "size"),
                                 .requested = size_of(value, "requested_size"),
                                 .state = state_of(value_text(value_get(value, "state"))),
                                 .source = stack->source,
                                 .stack = stack->stack};
    block.bytes = MIN(left, block.bytes);
    /* Before PyTorch 2.0 the requested size is not recorded. Then the size of the block is used. */
    if (block.state == MEMORY_BLOCK_FREE)
      block.requested = 0;
    else if (!value_get(value, "requested_size") || block.requested > block.bytes)
      block.requested = block.bytes;
    address += (u64)block.bytes;
    left -= block.bytes;
    if (block.bytes)
      add_block(reading, block);
  }
  if (left > 0) {
    reading->uncovered = memory_add(reading->uncovered, left);
    add_block(reading,
              (struct memory_block){.address = address, .bytes = left, .state = MEMORY_BLOCK_FREE});
  }
  segment->n_blocks = reading->history->n_blocks - segment->first_block;
}

static bool in_private_pool(const struct value *segment) {
  const struct value *pool = value_get(segment, "segment_pool_id");
  i64 one = 0, other = 0;
  value_integer(value_item(pool, 0), &one);
  value_integer(value_item(pool, 1), &other);
  return one != 0 || other != 0;
}

static void read_segments(struct history_reading *reading) {
  const struct value *segments = segments_of(reading->root);
  struct memory_history *history = reading->history;
  for (u32 i = 0; i < value_count(segments); i++) {
    const struct value *value = value_item(segments, i);
    if (!of_device(reading, value))
      continue;
    struct memory_segment *segment = &history->segments[history->n_segments++];
    *segment = (struct memory_segment){
        .address = address_of(value, "address"),
        .bytes = size_of(value, "total_size"),
        .stream = address_of(value, "stream"),
        .small = same_text(value_text(value_get(value, "segment_type")), "small"),
        .expandable = value_is_true(value_get(value, "is_expandable")),
        .private_pool = in_private_pool(value)};
    read_blocks(reading, value_get(value, "blocks"), segment);
  }
}

/* Actions in the allocator's history, with the names that older versions used. */
static u8 kind_of(const char *action, bool has_requested_frees) {
  static const struct word kinds[] = {{"alloc", MEMORY_ALLOC},
                                      {"free_requested", MEMORY_FREE},
                                      {"free", MEMORY_FREE},
                                      {"free_completed", MEMORY_REUSABLE},
                                      {"segment_alloc", MEMORY_SEGMENT_ALLOC},
                                      {"segment_map", MEMORY_SEGMENT_ALLOC},
                                      {"segment_free", MEMORY_SEGMENT_FREE},
                                      {"segment_unmap", MEMORY_SEGMENT_FREE},
                                      {"oom", MEMORY_OUT_OF_MEMORY},
                                      {"snapshot", MEMORY_MARK},
                                      {"user_defined", MEMORY_MARK}};
  u8 kind = MEANING_OF(action, kinds, same_text);
  return kind == MEMORY_REUSABLE && !has_requested_frees ? MEMORY_FREE : kind;
}

static bool has_requested_frees(const struct value *events) {
  for (u32 i = 0; i < value_count(events); i++) {
    const char *action = value_text(value_get(value_item(events, i), "action"));
    if (same_text(action, "free_requested") || same_text(action, "free"))
      return true;
  }
  return false;
}

static void list_stacks_of_events(struct history_reading *reading, const struct value *events) {
  for (u32 i = 0; i < value_count(events); i++) {
    const struct value *event = value_item(events, i);
    if (same_text(value_text(value_get(event, "action")), "alloc"))
      stacks_add(&reading->stacks, value_get(event, "frames"));
  }
}

static bool read_event(const struct history_reading *reading, const struct value *value,
                       bool requests, struct memory_event *event) {
  i64 address = 0, bytes = 0, time = 0;
  *event = (struct memory_event){.kind = kind_of(value_text(value_get(value, "action")), requests),
                                 .step = -1};
  bool sized = value_integer(value_get(value, "size"), &bytes) && bytes >= 0 && bytes <= MOST_BYTES;
  bool placed = value_integer(value_get(value, "addr"), &address);
  if (event->kind == MEMORY_OUT_OF_MEMORY)
    placed = value_integer(value_get(value, "device_free"), &address) || true;
  else if (event->kind == MEMORY_MARK)
    sized = placed = true;
  bool timed =
      value_integer(value_get(value, "time_us"), &time) && time > 0 && time < INT64_MAX / 1000;
  event->time = timed ? time * 1000 : NS_UNKNOWN;
  event->address = (u64)address;
  event->bytes = bytes;
  if (event->kind == MEMORY_ALLOC) {
    const struct stack *stack = stacks_find(&reading->stacks, value_get(value, "frames"));
    event->source = stack->source;
    event->stack = stack->stack;
  }
  return event->kind && sized && placed;
}

static void read_events(struct history_reading *reading, const struct value *events) {
  struct memory_history *history = reading->history;
  bool requests = has_requested_frees(events);
  history->events = arena_array(reading->arena, value_count(events), sizeof(*history->events));
  for (u32 i = 0; i < value_count(events); i++) {
    struct memory_event *event = &history->events[history->n_events];
    if (read_event(reading, value_item(events, i), requests, event))
      history->n_events++;
    else
      reading->unreadable_events++;
  }
}

static i64 reserved_change(const struct memory_event *event) {
  return event->kind == MEMORY_SEGMENT_ALLOC  ? event->bytes
         : event->kind == MEMORY_SEGMENT_FREE ? -event->bytes
                                              : 0;
}

/* The totals are known only at the end. Going backwards from there, an allocation subtracts its
 * requested size and a free adds it. How much the allocator rounded up is known only for blocks
 * that are alive at the end. It counts as if it had always been there. */
static void fill_totals(struct memory_history *history) {
  i64 allocated = history->allocated_at_end, reserved = history->reserved_at_end;
  for (u32 i = history->n_events; i-- > 0;) {
    struct memory_event *event = &history->events[i];
    event->allocated = MAX(allocated, 0);
    event->reserved = MAX(reserved, 0);
    allocated = memory_add(allocated, -memory_allocated_by(event));
    reserved = memory_add(reserved, -reserved_change(event));
  }
  history->allocated_before = MAX(allocated, 0);
  history->reserved_before = MAX(reserved, 0);
}

static void add_notes(const struct history_reading *reading) {
  struct memory_history *history = reading->history;
  if (!history->n_events)
    MEMORY_NOTE(history, reading->arena,
                "the snapshot has no history: call torch.cuda.memory._record_memory_history() "
                "before the part you want to see");
  if (history->n_events && !history->n_segments)
    MEMORY_NOTE(history, reading->arena,
                "the snapshot has no segments: totals count from the first event on");
  if (reading->unreadable_events)
    MEMORY_NOTE(history, reading->arena, "%s skipped: unknown, or without an address or a size",
                plural_is(reading->unreadable_events, "event").text);
  if (reading->uncovered)
    MEMORY_NOTE(history, reading->arena, "%lld bytes of segments are in no block and count as free",
                (long long)reading->uncovered);
}

/* Without segments the totals at the end are not known. Then everything that is freed without an
 * allocation in the recording was there before, and nothing else. */
static void estimate_totals_at_end(struct memory_history *history) {
  i64 allocated = 0, reserved = 0, least_allocated = 0, least_reserved = 0;
  FOR_EACH(history->events, history->n_events, event) {
    allocated = memory_add(allocated, memory_allocated_by(event));
    reserved = memory_add(reserved, reserved_change(event));
    least_allocated = MIN(allocated, least_allocated);
    least_reserved = MIN(reserved, least_reserved);
  }
  history->allocated_at_end = memory_add(allocated, -least_allocated);
  history->reserved_at_end = memory_add(reserved, -least_reserved);
}

void snapshot_history(const struct value *root, u32 device, struct arena *arena,
                      struct memory_history *history) {
  struct history_reading reading = {
      .root = root, .device = device, .arena = arena, .history = history};
  const struct value *events = events_of(root, device);
  *history = (struct memory_history){
      .rank = INDEX_NONE, .device = (i32)device, .origin = "PyTorch memory snapshot"};
  count_segments(&reading);
  list_stacks_of_events(&reading, events);
  stacks_resolve(&reading.stacks, arena);
  history->sources = reading.stacks.sources;
  history->n_sources = reading.stacks.n_sources;
  read_segments(&reading);
  read_events(&reading, events);
  if (!history->n_segments) {
    history->segments = NULL;
    estimate_totals_at_end(history);
    history->requested_at_end = history->allocated_at_end;
  }
  fill_totals(history);
  add_notes(&reading);
  memory_frames_finish(&reading.stacks.tree, arena, history);
  snapshot_find_gradients(history, arena);
  snapshot_steps(root, history);
  stacks_free(&reading.stacks);
}
