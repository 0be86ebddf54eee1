/* SPDX-License-Identifier: MIT
 *
 * What the files that read the events of one rank share: read_events.c for retained records,
 * read_ring_chunk.c for those of the ring.
 */
#pragma once

#include "import/tscope/events/definitions.h"
#include "import/tscope/events/read_events.h"
#include "import/tscope/gpu_runs/graph_replays.h"
#include "kernels/kernels.h"

enum { GPU_OVERHEADS = 16 };

struct reading {
  struct rank_events *events;
  struct chunk_clock clock;
  struct graph_replays graphs;
  u32 thread;
  u64 time;           /* of the retained record that is read, in its chunk's units */
  i64 start;          /* the same in ns */
  u8 *op_of_string;   /* [n_strings] one more than the op; 0: not asked yet */
  const char **words; /* [n_strings] copies in the arena of the rank's events, NULL until needed */
  u64 gpu_overhead[GPU_OVERHEADS]; /* by enum tscope_gpu_overhead */
  struct kernel_names *kernel_names;
  bool *communication_known; /* [n_strings] whether events.communications has it */
  i64 gpu_last;              /* when the last work seen on the GPU was over; NS_UNKNOWN */
  u32 replay;                /* correlation of the graph replay whose kernels were last seen */
  bool keeps_meetings;       /* this is one of the MEETING_RANKS */
};

/* The rank's events reach to `time`; nothing if it is NS_UNKNOWN. */
void extend_time_range(struct rank_events *events, i64 time);
void update_last_gpu_work(struct reading *reading, i64 end);
void add_memory_device(struct rank_events *events, u16 device);

/* Fills events.rounds, if nothing else tells the rank's steps. */
void read_rounds(struct rank_events *events, const struct trace_file *file);

/* Counts the records of a chunk of the ring, and keeps the kernels that communicate. */
void read_ring_chunk(struct reading *reading, const struct trace_chunk *chunk);
