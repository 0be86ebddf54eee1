/* SPDX-License-Identifier: MIT
 *
 * The runs in a directory while they are written: which processes there are, and what they do now.
 */
#pragma once

#include "import/tscope/files/trace_dir.h"
#include "live/live_process.h"

/* One trace file, as long as it exists. */
struct live_entry {
  char *path;
  struct live_process *process; /* NULL while it cannot be read */
  dev_t device;
  ino_t inode;
  u64 bytes; /* when it could not be read: it is tried again once it has grown */
  char problem[96];
  bool seen;         /* in this listing */
  bool of_run;       /* it belongs to the run that is read */
  u32 rank;          /* as the report numbers it: its process may not know it */
  u32 attempt;       /* start of the job that it belongs to, from 1 on */
  bool left_out;     /* of an earlier start, or processes_number() leaves it out */
  u64 alive_ticks;   /* last sign of life that was read */
  i64 alive_changed; /* our CLOCK_MONOTONIC when that was last seen to change; NS_UNKNOWN:
                        never */
  u32 alive_changes; /* how often that was seen */
  i64 alive_gap;     /* longest time between two of these: the delay of the file system */
};

struct live_run {
  const char *directory; /* a directory of runs, a run's, or one file; the caller's */
  const char *wanted;    /* requested run, or the beginning of its name; NULL: the newest */
  VECTOR(struct live_entry *) entries;
  struct kernel_names *kernel_names; /* NULL until there is a process */
  struct arena arena;         /* of what follows: as it was when a file was last added or gone */
  struct trace_entry *traces; /* [entries.n] */
  struct trace_runs runs;
  const struct trace_run *chosen; /* the one that is read; NULL while there is none */
  char name[256];                 /* its name, or "" */
  u32 known;   /* communicators that its processes have told of, and processes with collectives */
  u32 attempt; /* start of the job that is shown, from 1 on; 0: none yet */
  u32 ranks_before; /* that the start before it had; 0: there was none */
  u32 listed;       /* where in `entries` the next file of a listing is looked for */
  u32 next_gpu;     /* whose ring is read next, where not all can be at each poll */
  u64 polls;
  u64 same_processes; /* polls since one was added or went away */
  u64 read_bytes;     /* by the last poll */
  double poll_s;      /* duration of the last poll */
  u32 hint;           /* calls per step of the rank read before, see live_find_steps() */
};

/* One poll of all files. 0, or negative errno with a line in `why` when nothing can be shown:
 * -ENOENT while there is no trace yet. */
int live_run_poll(struct live_run *run, char *why, size_t why_bytes);
void live_run_close(struct live_run *run);
