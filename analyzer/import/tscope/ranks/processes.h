/* SPDX-License-Identifier: MIT
 *
 * From trace files to ranks: which process is which rank, and which are left out.
 */
#ifndef TSCOPE_PROCESSES_H
#define TSCOPE_PROCESSES_H

#include "import/tscope/events/read_events.h"
#include "import/tscope/files/trace_dir.h"

struct process {
  const struct trace_entry *entry;
  struct rank_events events;
  u32 rank; /* TSCOPE_UNKNOWN_RANK while not known */
  bool rank_events_read;
  bool left_out;
  char why[200]; /* it could not be read */
};

struct processes {
  struct process *at; /* in order of start */
  u32 n;
  struct arena *arena;
  struct kernel_names *kernel_names; /* see rank_events_read() */
  VECTOR(const char *) notes;
};

/* Lists the readable files of a run. If a job was restarted under the same run identity, a rank
 * appears twice: only the processes from the last restart on are kept, and a note says so. 0, or
 * -ENOMEM. */
int processes_list(struct processes *processes, const struct trace_run *run, struct arena *arena);

/* Reads the events of a process, within the budget of its file. 0, or -EFBIG with the reason in
 * process->why. */
int process_read(struct process *process, const struct trace_file *file,
                 struct kernel_names *kernel_names);

/* Drops those that could not be read; a note names each file with the reason. */
int processes_drop_unread(struct processes *processes);

/* After the events are read: adds processes of other runs that are ranks of this one, and says so
 * in a note. 0, or -ENOMEM. */
int processes_add_from_other_runs(struct processes *processes, const struct trace_runs *runs,
                                  const struct trace_run *run);

/* After the events are read: finds ranks that no environment gave, from the widest communicator;
 * then numbers what still has no rank, or one that another process has. 0, or -ENOMEM. */
int processes_number(struct processes *processes);

void processes_release(struct processes *processes);

#endif
