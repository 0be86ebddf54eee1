/* SPDX-License-Identifier: MIT
 *
 * What a trace file defines before it is used: strings, streams, shapes, threads, communicators,
 * clock anchors, facts. Collected in a first pass over the retained records, because chunks
 * interleave.
 */
#pragma once

#include "import/tscope/events/tick_map.h"
#include "import/tscope/files/trace_file.h"
#include "model/rank_events.h"

struct stream_definition {
  u64 handle;
  u32 gpu_stream;
  i32 device;
  bool known;
};

struct thread_definition {
  u32 thread, tid;
  const char *name;
};

struct shape_definition {
  u32 kernel; /* string number, 0 unknown */
  u32 grid[3];
};

/* A captured graph that was put into another. */
struct graph_child {
  u32 captured, child;
};

/* A GEMM in a captured graph. */
struct captured_gemm {
  struct tscope_graph_gemm_record record;
  u32 order;                   /* in which it was read */
  u32 first_kernel, n_kernels; /* in definitions.captured_kernels */
};

/* A place in the program, and frames that were open at once; known by their hashes. */
struct frame_definition {
  u64 id;
  u32 file, function; /* string numbers */
  u32 line, first_line;
  bool runs_training;    /* set by definitions_find_library() */
  bool native;           /* of C or C++; then: */
  u32 library, build_id; /* string numbers */
  u64 offset;
};
struct stack_definition {
  u64 id;
  u32 first, n; /* in definitions.stack_frames */
  bool cut;
};

struct rank_stall; /* model/stalls.h */

struct definitions {
  struct arena text;    /* holds the next eight, which are many: see definitions_free_text() */
  const char **strings; /* [n_strings], NULL where not announced */
  struct shape_definition *shapes;      /* [n_shapes] */
  struct graph_child *graph_children;   /* sorted by the graph that they are in */
  struct captured_gemm *captured_gemms; /* sorted by captured graph, then as read */
  u32 *captured_kernels;                /* SHAPE numbers */
  struct frame_definition *frames;      /* sorted by id */
  struct stack_definition *stacks;      /* likewise */
  u64 *stack_frames;                    /* ids */
  struct stream_definition *streams;
  struct comm_definition *comms;
  struct thread_definition *threads;
  struct rank_stall *stalls; /* times on the process's own clock */
  u32 n_stalls;
  u32 n_strings, n_shapes, n_streams, n_comms, n_threads;
  u32 n_graph_children, n_captured_gemms, n_captured_kernels;
  u32 n_frames, n_stacks, n_stack_frames;
  const char *info[32]; /* by enum tscope_info */
  u8 gpu_clock;         /* enum tscope_gpu_clock of the last GPU_CLOCK record */
  const char *gpu_clock_reason;
  u64 gpu_dropped, gpu_invalid;
  u64 lost[TSCOPE_LOSS_REASONS];
  struct tscope_scheduling_record scheduling[2]; /* the first and the last; at_ns 0: none */
  u64 samples, unread_samples; /* of lines: stacks read, and those that could not be */
  u64 helper_cpu_ns, startup_ns, slow_path_ns, cost_per_record_ns;
  i64 realtime_minus_monotonic; /* from the last anchor, else the header */
  u64 anchor_error_ns;          /* widest bracket among the anchors */
  i64 last_anchor; /* CLOCK_MONOTONIC of the last: the process was alive; 0 if there is none */
  struct tick_map ticks;
  /* of the whole file, from chunk headers */
  u64 records;
  const char *damage; /* NULL if none */
};

/* Everything but the text lives in `arena`. */
void definitions_read(struct definitions *definitions, const struct trace_file *file,
                      struct arena *arena);

/* Frees strings, shapes and the content of graphs; everything else that refers to text keeps its
 * own copy. */
void definitions_free_text(struct definitions *definitions);

/* NULL for 0, unknown numbers and empty strings. */
static inline const char *definition_string(const struct definitions *definitions, u32 number) {
  return number < definitions->n_strings ? definitions->strings[number] : NULL;
}

/* The same, kept in the arena. */
static inline const char *definition_string_kept(const struct definitions *definitions, u32 number,
                                                 struct arena *arena) {
  const char *text = definition_string(definitions, number);
  return text ? arena_text(arena, text) : NULL;
}

/* A reading of the process's tick clock, unshifted; NS_UNKNOWN for 0. */
static inline i64 definition_ns(const struct definitions *definitions, u64 ticks) {
  return ticks ? tick_map_ns(&definitions->ticks, ticks) : NS_UNKNOWN;
}

/* Turns one chunk's times into local CLOCK_MONOTONIC. Remembers between which anchors the last time
 * was, because times in a chunk mostly increase. */
struct chunk_clock {
  const struct tick_map *map;
  const struct tick_stretch *stretch;
  u64 from, to; /* the chunk times for which the stretch is valid */
  bool ticks;
};

static inline struct chunk_clock chunk_clock(const struct tick_map *map,
                                             const struct tscope_chunk_header *chunk) {
  return (struct chunk_clock){.map = map, .ticks = chunk->clock == TSCOPE_CLOCK_TICKS};
}

void chunk_clock_seek(struct chunk_clock *clock, u64 units);

static inline i64 chunk_ns(struct chunk_clock *clock, u64 units) {
  if (!clock->ticks)
    return tick_map_sane(clock->map, units > INT64_MAX ? INT64_MAX : (i64)units);
  if (__builtin_expect(units < clock->from || units >= clock->to, 0))
    chunk_clock_seek(clock, units);
  return tick_map_in(clock->map, clock->stretch, units);
}

/* End of a span: NS_UNKNOWN while it is pending. */
static inline i64 chunk_end_ns(struct chunk_clock *clock, u64 start, u64 dur) {
  if (dur == TSCOPE_DUR_PENDING)
    return NS_UNKNOWN;
  u64 end = start + dur;
  return chunk_ns(clock, end < start ? UINT64_MAX : end);
}
