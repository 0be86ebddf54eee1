/* SPDX-License-Identifier: MIT
 *
 * One device's memory as the allocator of one process saw it: allocations and frees in order, and
 * the device's segments at the end. Both PyTorch's memory snapshots and tscope's own records are
 * converted to this. There is one analysis of it (analyses/memory/).
 *
 *   reserved    what the allocator has reserved on the device
 *   allocated   of it, what it gave to the program and did not get back: sizes of its blocks, so
 *               with what it rounded up (slack)
 *   inactive    reserved and not allocated
 *
 * Sizes are bytes, MEMORY_UNKNOWN where not known. Everything lives in the arena that the history
 * was read into.
 */
#pragma once

#include "model/allocation_category.h"
#include "model/model.h"

struct arena;

#define MEMORY_UNKNOWN (-1ll)

/* Sums do not overflow, whatever a damaged file claims. */
static inline i64 memory_add(i64 a, i64 b) {
  i64 sum;
  return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

enum memory_event_kind {
  MEMORY_ALLOC = 1,     /* a block for the program */
  MEMORY_FREE,          /* the program freed it; other streams may still use it */
  MEMORY_REUSABLE,      /* and it can be handed out again */
  MEMORY_SEGMENT_ALLOC, /* the allocator got memory from the device, or mapped more of it */
  MEMORY_SEGMENT_FREE,  /* and gave it back */
  MEMORY_OUT_OF_MEMORY, /* `bytes` could not be allocated; `address` is how much the device had free
                         */
  MEMORY_MARK           /* a mark, such as an earlier snapshot */
};

struct memory_event {
  i64 time; /* ns, on the model's axis or the recording's own; NS_UNKNOWN */
  u64 address;
  i64 bytes;               /* as requested; MEMORY_UNKNOWN for a free without a size */
  i64 allocated, reserved; /* after the event */
  u32 source;              /* index into sources, 0 not known */
  u32 stack;               /* index into frames of the innermost frame, 0 if not known */
  i32 step;                /* index into steps, -1 outside or not known */
  u8 kind;
};

/* What it adds to what the program has allocated; 0 where its size is not known. */
static inline i64 memory_allocated_by(const struct memory_event *event) {
  i64 bytes = MAX(event->bytes, 0);
  return event->kind == MEMORY_ALLOC ? bytes : event->kind == MEMORY_FREE ? -bytes : 0;
}

/* Where an allocation comes from. */
struct memory_source {
  const char *place; /* "model.py:101 (forward)", or a training phase; NULL not known */
  enum allocation_category category; /* ALLOCATION_UNKNOWN: not known */
};

/* A frame of the stacks that allocations come from; memory_frames.h makes the tree of them. */
struct memory_frame {
  const char *name; /* "model.py:101 (forward)", or an operator */
  u32 caller;       /* index into frames, less than its own; 0: it is the outermost */
  bool own;         /* the user's own code */
};

enum memory_block_state { MEMORY_BLOCK_ALLOCATED, MEMORY_BLOCK_PENDING, MEMORY_BLOCK_FREE };

/* Blocks of a segment cover it without gaps, in order of address. */
struct memory_block {
  u64 address;
  i64 bytes, requested; /* requested is 0 for a free one */
  u32 source, stack;    /* as in memory_event */
  u8 state;
};

struct memory_segment {
  u64 address;
  i64 bytes;
  u64 stream;
  u32 first_block, n_blocks; /* in blocks */
  bool small;                /* for blocks up to 1 MiB */
  bool expandable;
  bool private_pool; /* of a CUDA graph, or a pool that the program made */
};

enum { MEMORY_NOTES_MOST = 4 }; /* of one reader */

/* In the arena of its reader. */
#define MEMORY_NOTE(history, arena, ...)                                                           \
  ((history)->notes[(history)->n_notes++] = arena_printf(arena, __VA_ARGS__))

struct memory_history {
  u32 rank; /* global rank, INDEX_NONE if the input does not say */
  i32 device;
  const char *origin; /* "PyTorch memory snapshot", "tscope's records" */
  const char *path;   /* file it is from, NULL */
  struct memory_event *events;
  u32 n_events;
  struct memory_source *sources; /* [0] is the unknown one */
  u32 n_sources;
  struct memory_frame *frames; /* [0] is none */
  u32 n_frames;
  struct memory_segment *segments; /* at the end; NULL if not known */
  struct memory_block *blocks;
  u32 n_segments, n_blocks;
  /* Before the first event; calculated backwards from the end if only the end is known. */
  i64 allocated_before, reserved_before;
  i64 allocated_at_end, reserved_at_end;
  i64 pending_at_end;   /* freed, but other streams may still use it */
  i64 requested_at_end; /* of allocated, what was requested */
  i64 capacity;         /* of the device, 0 if not known */
  u64 lost;             /* events known to be missing */
  u32 n_steps;          /* events' steps are below it; 0 if steps are not known */
  const char *steps_method;
  bool steps_are_certain;               /* marked by the job; else steps are what repeats */
  const char *notes[MEMORY_NOTES_MOST]; /* what readers must know about it; one sentence each */
  u32 n_notes;
};

/* Where an event or block was allocated, by the number that it has; never NULL. */
static inline const struct memory_source *memory_source_of(const struct memory_history *history,
                                                           u32 source) {
  static const struct memory_source unknown;
  return source < history->n_sources ? &history->sources[source] : &unknown;
}

/* A history that is read when needed and released afterwards: with many ranks, one at a time. */
struct memory_origin {
  u32 rank; /* global rank, INDEX_NONE if the input does not say */
  i32 device;
  bool on_axis; /* times are on the model's axis, not on the recording's own */
  /* Fills `history` in `arena`. Thread-safe. 0, or negative errno. */
  int (*read)(const struct model *model, const struct memory_origin *origin, struct arena *arena,
              struct memory_history *history);
  const void *data;
};
