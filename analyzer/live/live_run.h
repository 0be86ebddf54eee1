/* SPDX-License-Identifier: MIT
 *
 * The runs in a directory while they are written: which processes there are, and what they do now.
 */
#pragma once

#include "live/live_process.h"

/* One trace file, as long as it exists. */
struct live_entry {
  char *path;
  struct live_process *process; /* NULL while it cannot be read */
  char *run;                    /* to which it belongs; NULL: not known yet */
  dev_t device;
  ino_t inode;
  u64 bytes; /* when it could not be read: it is tried again once it has grown */
  char problem[96];
  bool seen;         /* in this listing */
  bool of_run;       /* it belongs to the run that is read */
  u32 attempt;       /* start of the job that it belongs to, from 1 on */
  bool left_out;     /* of an earlier start; a later process has its rank, or it has none */
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
  char name[256];      /* of the run that is read; "" while there is none */
  VECTOR(char *) with; /* names of other runs that are the same job */
  u32 comms;           /* that its ranks have told of */
  u32 attempt;         /* start of the job that is shown, from 1 on; 0: none yet */
  u32 ranks_before;    /* that the start before it had; 0: there was none */
  u32 listed;          /* where in `entries` the next file of a listing is looked for */
  u32 next_gpu;        /* whose ring is read next, where not all can be at each poll */
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
