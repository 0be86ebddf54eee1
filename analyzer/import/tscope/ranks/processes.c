/* SPDX-License-Identifier: MIT */
#include "import/tscope/ranks/processes.h"

#include "base/hash_index.h"
#include "base/sorting.h"
#include "import/import.h"
#include "import/tscope/events/read_events.h"

#include "base/checked_memory.h"

static void add_note(struct processes *processes, const char *text) {
  VECTOR_PUSH(&processes->notes, text);
}

ORDER_BY(by_start, struct process, UP(entry->header.start_realtime_ns) BY_TEXT(entry->path))

static bool is_among(const struct hash_index *ranks, u32 rank) {
  return hash_index_first(ranks, rank) != INDEX_NONE;
}

void processes_list(struct processes *processes, const struct trace_run *run, struct arena *arena) {
  *processes = (struct processes){.arena = arena};
  processes->at = memory_zeroed(size_sum(run->n_entries, 1), sizeof(*processes->at));
  FOR_EACH(run->entries, run->n_entries, entry) {
    if (entry->problem)
      add_note(processes, arena_printf(arena, IS_LEFT_OUT, entry->path, entry->problem));
    else
      processes->at[processes->n++] = (struct process){.entry = entry, .rank = entry->header.rank};
  }
  processes_sort(processes);
}

void processes_sort(struct processes *processes) {
  SORT(processes->at, processes->n, by_start);
}

bool processes_read(const struct processes *processes, struct process *process) {
  struct trace_file file;
  if (processes->read)
    return process->rank_events_read = processes->read(process, processes->reader);
  if (trace_file_open(&file, process->entry->path, process->why, sizeof(process->why)) < 0)
    return false; /* it was readable a moment ago */
  process->rank_events_read =
      rank_events_read_in_budget(&process->events, &file, processes->kernel_names, process->why,
                                 sizeof(process->why)) == 0;
  trace_file_close(&file);
  return process->rank_events_read;
}

void processes_forget(const struct processes *processes, struct process *process) {
  if (process->rank_events_read && !processes->read)
    rank_events_release(&process->events);
}

void processes_drop_unread(struct processes *processes) {
  u32 kept = 0;
  FOR_EACH_CHANGED(processes->at, processes->n, process) {
    if (process->rank_events_read)
      processes->at[kept++] = *process;
    else
      add_note(processes,
               arena_printf(processes->arena, IS_LEFT_OUT, process->entry->path, process->why));
  }
  processes->n = kept;
}

const struct comm_definition *widest_comm(const struct definitions *definitions, bool of_nccl) {
  return LARGEST(definitions->comms, definitions->n_comms, comm,
                 comm->parent == 0 && comm->rank < comm->size &&
                     (!of_nccl || comm->backend == TSCOPE_BACKEND_NCCL),
                 comm->size);
}

u32 rank_from_comms(const struct definitions *definitions) {
  const struct comm_definition *widest = widest_comm(definitions, false);
  return widest ? widest->rank : TSCOPE_UNKNOWN_RANK;
}

static void leave_out(struct processes *processes, struct process *process, const char *why) {
  process->left_out = true;
  add_note(processes, arena_printf(processes->arena, "process %u on %s is left out: %s",
                                   process->entry->header.pid, process->entry->header.host, why));
}

/* `known`: ranks that are taken. It gets the first other from *rank on. */
static void number_unknown(struct processes *processes, struct process *process,
                           const struct hash_index *known, bool others, u32 *rank) {
  if (others && process->events.calls.n == 0) {
    leave_out(processes, process, "its rank is not known and it took part in no collective");
    return;
  }
  while (is_among(known, *rank))
    ++*rank;
  process->rank = (*rank)++;
  if (processes->n == 1)
    return;
  add_note(processes,
           arena_printf(processes->arena,
                        "the rank of process %u on %s is not known; it is shown as %u",
                        process->entry->header.pid, process->entry->header.host, process->rank));
}

void processes_find_ranks(struct processes *processes) {
  FOR_EACH_CHANGED(processes->at, processes->n, process)
    if (process->rank == TSCOPE_UNKNOWN_RANK)
      process->rank = rank_from_comms(process->events.definitions);
}

void processes_keep_attempt(struct processes *processes, u32 attempt) {
  u32 kept = 0;
  for (u32 i = 0; i < processes->n; i++)
    if (processes->at[i].attempt == attempt)
      processes->at[kept++] = processes->at[i];
    else
      processes_forget(processes, &processes->at[i]);
  processes->n = kept;
}

void processes_number(struct processes *processes, u32 attempt) {
  SCOPED struct hash_index known = {0};
  SCOPED struct hash_index later = {0};
  u32 next = 0;
  for (u32 i = 0; i < processes->n; i++)
    if (processes->at[i].attempt == attempt && processes->at[i].rank != TSCOPE_UNKNOWN_RANK)
      hash_index_add(&known, processes->at[i].rank, i);
  for (u32 i = processes->n; i-- > 0;) {
    struct process *process = &processes->at[i];
    if (process->attempt != attempt)
      continue;
    if (process->rank == TSCOPE_UNKNOWN_RANK)
      number_unknown(processes, process, &known, known.n > 0, &next);
    else if (is_among(&later, process->rank))
      leave_out(processes, process, "a later process has the same rank");
    if (process->rank != TSCOPE_UNKNOWN_RANK)
      hash_index_add(&later, process->rank, i);
  }
}

void processes_release(struct processes *processes) {
  FOR_EACH_CHANGED(processes->at, processes->n, process)
    processes_forget(processes, process);
  FREE_EACH(processes, at, notes.at);
  *processes = (struct processes){0};
}
