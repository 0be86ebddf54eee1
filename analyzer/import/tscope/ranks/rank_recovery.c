/* SPDX-License-Identifier: MIT
 *
 * Runs that are one job, whose launchers gave its ranks different run names: Lightning's first rank
 * starts the others itself; torchrun started by hand on each host knows nothing of the other hosts,
 * and has another name once it is started again. Another run belongs to this one if a process of it
 * was a member of the widest communicator of one of ours, both ran at the same time, they used the
 * same port and ended the same collectives as far as is known, and nobody of ours had its rank
 * then. Communicators of gloo have the same names in every job, hence the other conditions.
 */

#include "base/checked_memory.h"
#include "import/tscope/ranks/common_calls.h"
#include "import/tscope/ranks/processes.h"

struct world {
  const struct comm_definition *comm; /* the widest that has no parent; NULL: none known */
  u32 found;                          /* members that are there */
};

static const struct comm_definition *widest_of_several(const struct process *process) {
  const struct definitions *definitions = process->events.definitions;
  const struct comm_definition *widest = definitions ? widest_comm(definitions, false) : NULL;
  return widest && widest->size > 1 ? widest : NULL;
}

static const struct comm_definition *membership(const struct process *process,
                                                const struct comm_definition *world) {
  const struct definitions *definitions = process->events.definitions;
  for (u32 i = 0; definitions && i < definitions->n_comms; i++) {
    const struct comm_definition *comm = &definitions->comms[i];
    if (comm->parent == 0 && comm->rank < comm->size && comm->identity == world->identity &&
        comm->size == world->size)
      return comm;
  }
  return NULL;
}

static struct world find_world(const struct processes *processes, u32 attempt) {
  struct world world = {NULL, 0};
  FOR_EACH(processes->at, processes->n, process) {
    const struct comm_definition *comm =
        process->attempt == attempt ? widest_of_several(process) : NULL;
    if (comm && (!world.comm || comm->size > world.comm->size))
      world.comm = comm;
  }
  for (u32 i = 0; i < processes->n && world.comm; i++)
    world.found += processes->at[i].attempt == attempt && membership(&processes->at[i], world.comm);
  return world;
}

static bool overlap_in_time(const struct tscope_file_header *a,
                            const struct tscope_file_header *b) {
  u64 end_a = a->closed_realtime_ns ? a->closed_realtime_ns : UINT64_MAX;
  u64 end_b = b->closed_realtime_ns ? b->closed_realtime_ns : UINT64_MAX;
  return a->start_realtime_ns <= end_b && b->start_realtime_ns <= end_a;
}

/* When a process is known to have been alive last; of a killed one by an older version only its
 * last anchor shows it. */
static u64 last_seen(const struct process *process) {
  const struct tscope_file_header *header = &process->entry->header;
  const struct definitions *definitions = process->events.definitions;
  if (header->closed_realtime_ns)
    return header->closed_realtime_ns;
  i64 alive = process_alive_until(process);
  u64 longer = LONGER_ALIVE_NS;
  if (alive == NS_UNKNOWN) {
    alive = definitions->last_anchor;
    longer = TSCOPE_LATER_ANCHORS_S * 1000000000ull;
  }
  i64 seen = (i64)((u64)alive + (u64)definitions->realtime_minus_monotonic);
  return MAX(alive && seen > 0 ? (u64)seen : 0, header->start_realtime_ns) + longer;
}

static bool seen_together(const struct process *a, const struct process *b) {
  return a->entry->header.start_realtime_ns <= last_seen(b) &&
         b->entry->header.start_realtime_ns <= last_seen(a);
}

static bool same_master_port(const struct process *a, const struct process *b) {
  size_t length_a, length_b;
  const char *port_a = process_variable(a, "MASTER_PORT", &length_a),
             *port_b = process_variable(b, "MASTER_PORT", &length_b);
  return !port_a || !port_b || (length_a == length_b && !memcmp(port_a, port_b, length_a));
}

static bool are_members_together(const struct process *a, const struct process *b) {
  return same_master_port(a, b) && seen_together(a, b) &&
         common_calls_of(&a->events, &b->events) != CALLS_ARE_OTHERS;
}

/* Whether the candidate took part beside that process, and no known one did under its rank. */
static bool is_missing_beside(const struct processes *processes, const struct process *process,
                              const struct process *candidate) {
  const struct comm_definition *world = widest_of_several(process);
  const struct comm_definition *own = world ? membership(candidate, world) : NULL;
  if (!own || own->rank == world->rank || !are_members_together(process, candidate))
    return false;
  FOR_EACH(processes->at, processes->n, each) {
    const struct comm_definition *other = membership(each, world);
    if (other && other->rank == own->rank && are_members_together(process, each))
      return false;
  }
  return true;
}

bool processes_may_lack(const struct processes *processes,
                        const struct tscope_file_header *header) {
  return ANY(processes->at, processes->n, one, overlap_in_time(&one->entry->header, header));
}

bool processes_lack_any(const struct processes *processes, u32 attempts) {
  for (u32 attempt = 1; attempt <= attempts; attempt++) {
    struct world world = find_world(processes, attempt);
    if (world.comm && world.found < world.comm->size)
      return true;
  }
  return false;
}

bool processes_lack(const struct processes *processes, const struct process *candidate) {
  return ANY(processes->at, processes->n, one, is_missing_beside(processes, one, candidate));
}

static void add_process(struct processes *processes, const struct process *process) {
  processes->at = memory_resized(processes->at, size_sum(processes->n, 1), sizeof(*processes->at));
  processes->at[processes->n++] = *process;
}

/* All of the run: other starts of the job are in it, too. */
static void add_run(struct processes *processes, const struct trace_run *run) {
  struct processes added;
  processes_list(&added, run, processes->arena);
  for (u32 i = 0; i < added.n; i++)
    processes_read(processes, &added.at[i]);
  processes_drop_unread(&added);
  for (u32 i = 0; i < added.n; i++)
    add_process(processes, &added.at[i]);
  FOR_EACH(added.notes.at, added.notes.n, item)
    VECTOR_PUSH(&processes->notes, *item);
  const char *note = arena_printf(processes->arena,
                                  "run %s is part of this one: they are on the same "
                                  "communicator, and each has ranks that the other lacks",
                                  run->id);
  VECTOR_PUSH(&processes->notes, note);
  FREE_EACH(&added, at, notes.at);
}

static bool run_is_lacked(const struct processes *processes, const struct trace_run *run) {
  bool lacked = false;
  for (u32 i = 0; i < run->n_entries && !lacked; i++) {
    struct process candidate = {.entry = &run->entries[i], .rank = run->entries[i].header.rank};
    if (candidate.entry->problem || !processes_may_lack(processes, &candidate.entry->header) ||
        !processes_read(processes, &candidate))
      continue;
    lacked = processes_lack(processes, &candidate);
    processes_forget(processes, &candidate);
  }
  return lacked;
}

u32 processes_add_other_runs(struct processes *processes, const struct trace_runs *runs,
                             const struct trace_run *run, bool *added) {
  u32 attempts = processes_find_attempts(processes);
  for (u32 r = 0; r < runs->n_runs && processes_lack_any(processes, attempts); r++) {
    if (&runs->runs[r] == run || added[r] || !run_is_lacked(processes, &runs->runs[r]))
      continue;
    add_run(processes, &runs->runs[r]);
    added[r] = true;
    processes_sort(processes);
    processes_find_ranks(processes);
    attempts = processes_find_attempts(processes);
    r = UINT32_MAX; /* what this one lacks may be in one that was looked at before */
  }
  return attempts;
}
