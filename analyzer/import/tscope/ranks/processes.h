/* SPDX-License-Identifier: MIT
 *
 * From trace files to ranks: which process is which rank, and which are left out.
 */
#pragma once

#include "import/tscope/events/read_events.h"
#include "import/tscope/files/trace_dir.h"

struct process {
  const struct trace_entry *entry;
  struct rank_events events;
  u32 rank;    /* TSCOPE_UNKNOWN_RANK while not known */
  u32 attempt; /* of the job: from 1 on, the oldest first; see processes_find_attempts() */
  bool rank_events_read;
  bool left_out;
  char why[200]; /* it could not be read */
};

struct processes {
  struct process *at; /* in order of start */
  u32 n;
  struct arena *arena;
  VECTOR(const char *) notes;
  struct kernel_names *kernel_names; /* see rank_events_read() */
  /* Who follows the files gives what is read so far, and keeps it; NULL: files are read. */
  bool (*read)(struct process *process, void *reader);
  void *reader;
};

/* Lists the readable files of a run. */
void processes_list(struct processes *processes, const struct trace_run *run, struct arena *arena);

/* Puts them in order of start. */
void processes_sort(struct processes *processes);

/* Reads the events of a process, within the budget of its file. Else process->why has the reason.
 */
bool processes_read(const struct processes *processes, struct process *process);
void processes_forget(const struct processes *processes, struct process *process);

/* Drops those that could not be read; a note names each file with the reason. */
void processes_drop_unread(struct processes *processes);

/* Of the communicators that are not part of another, or of those of NCCL, the widest; NULL. */
const struct comm_definition *widest_comm(const struct definitions *definitions, bool of_nccl);

/* The rank in the widest one: the job's own rank. TSCOPE_UNKNOWN_RANK. */
u32 rank_from_comms(const struct definitions *definitions);

/* After the events are read: the ranks that no environment gave, as far as communicators show them.
 */
void processes_find_ranks(struct processes *processes);

/* After that: finds which processes belong to one start of the job, and returns how many starts
 * there were; sets process->attempt. */
u32 processes_find_attempts(struct processes *processes);

/* After that: whether one of these starts lacks ranks of its widest communicator. */
bool processes_lack_any(const struct processes *processes, u32 attempts);

/* Whether the candidate, a process of another run whose definitions are read, is one of these. */
bool processes_lack(const struct processes *processes, const struct process *candidate);

/* Whether the process of another run can be one, by its header. */
bool processes_may_lack(const struct processes *processes, const struct tscope_file_header *header);

/* Finds the starts of the job, as processes_find_attempts(), with other runs that belong to this
 * one, which it adds: sets added[runs->n_runs] for these, and a note says so. */
u32 processes_add_other_runs(struct processes *processes, const struct trace_runs *runs,
                             const struct trace_run *run, bool *added);

/* Keeps the processes of one attempt only. */
void processes_keep_attempt(struct processes *processes, u32 attempt);

/* When it was last alive, as its header says, by its CLOCK_MONOTONIC; NS_UNKNOWN in a trace of an
 * earlier version. */
static inline i64 process_alive_until(const struct process *process) {
  const struct tscope_file_header *header = &process->entry->header;
  return definition_ns(process->events.definitions, MAX(header->alive_ticks, header->end_ticks));
}

/* The value of a recorded variable of its environment, which ends after *length characters; NULL if
 * it is not known. */
const char *process_variable(const struct process *process, const char *name, size_t *length);

/* Then, of one of these starts: numbers what has no rank, and leaves out those whose rank another
 * process has. */
void processes_number(struct processes *processes, u32 attempt);

void processes_release(struct processes *processes);
