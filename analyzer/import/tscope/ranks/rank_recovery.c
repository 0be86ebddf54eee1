/* SPDX-License-Identifier: MIT
 *
 * Ranks of a run to which their launchers gave another run name: Lightning's first rank starts the
 * others itself; torchrun started by hand on each host knows nothing of the other hosts. A process
 * of another run belongs to this one if this run lacks ranks of its widest communicator, the
 * process was a member of that communicator under a missing rank, both ran at the same time, and
 * they used the same port as far as is known. Communicators of gloo have the same names in every
 * job, hence the other conditions.
 */

#include "base/checked_memory.h"
#include "import/tscope/ranks/processes.h"

struct world {
  const struct comm_definition *comm; /* the widest that has no parent; NULL: none known */
  u32 found;                          /* members that are there */
};

static const struct comm_definition *membership(const struct process *process,
                                                const struct comm_definition *like) {
  const struct definitions *definitions = process->events.definitions;
  const struct comm_definition *widest = NULL;
  for (u32 i = 0; i < definitions->n_comms; i++) {
    const struct comm_definition *comm = &definitions->comms[i];
    bool fits = comm->parent == 0 && comm->rank < comm->size && comm->size > 1;
    if (fits && like && comm->identity == like->identity && comm->size == like->size)
      return comm;
    if (fits && !like && (!widest || comm->size > widest->size))
      widest = comm;
  }
  return widest;
}

static struct world find_world(const struct processes *processes) {
  struct world world = {NULL, 0};
  for (u32 i = 0; i < processes->n; i++) {
    const struct comm_definition *comm =
        processes->at[i].rank_events_read ? membership(&processes->at[i], NULL) : NULL;
    if (comm && (!world.comm || comm->size > world.comm->size))
      world.comm = comm;
  }
  for (u32 i = 0; i < processes->n && world.comm; i++)
    world.found += processes->at[i].rank_events_read && membership(&processes->at[i], world.comm);
  return world;
}

static bool overlap_in_time(const struct tscope_file_header *a,
                            const struct tscope_file_header *b) {
  u64 end_a = a->closed_realtime_ns ? a->closed_realtime_ns : UINT64_MAX;
  u64 end_b = b->closed_realtime_ns ? b->closed_realtime_ns : UINT64_MAX;
  return a->start_realtime_ns <= end_b && b->start_realtime_ns <= end_a;
}

/* When a process is known to have been alive last: for a killed one only its last anchor shows it,
 * of which there is one every ten seconds. */
static u64 last_seen(const struct process *process) {
  const u64 between_anchors = 10000000000;
  const struct tscope_file_header *header = &process->entry->header;
  const struct definitions *definitions = process->events.definitions;
  i64 anchor = definitions->last_anchor + definitions->realtime_minus_monotonic;
  if (header->closed_realtime_ns)
    return header->closed_realtime_ns;
  u64 seen = definitions->last_anchor && anchor > 0 ? (u64)anchor : 0;
  return (seen > header->start_realtime_ns ? seen : header->start_realtime_ns) + between_anchors;
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

static bool belongs_to_world(const struct processes *processes, const struct world *world,
                             const struct process *candidate) {
  const struct comm_definition *own = membership(candidate, world->comm);
  bool seen = false;
  for (u32 i = 0; i < processes->n && own; i++) {
    const struct process *process = &processes->at[i];
    const struct comm_definition *other =
        process->rank_events_read ? membership(process, world->comm) : NULL;
    if (!other)
      continue;
    if (other->rank == own->rank || !same_master_port(process, candidate))
      return false;
    seen |= seen_together(process, candidate);
  }
  return seen;
}

static bool may_belong(const struct processes *processes, const struct trace_entry *entry) {
  bool any = false;
  for (u32 i = 0; i < processes->n && !entry->problem; i++)
    any |= overlap_in_time(&processes->at[i].entry->header, &entry->header);
  return any;
}

static void recover_rank(struct processes *processes, const struct process *candidate) {
  const char *note = arena_printf(
      processes->arena,
      "process %u on %s was recorded as run %s; it is a rank of this run, because "
      "they share a communicator",
      candidate->entry->header.pid, candidate->entry->header.host, candidate->entry->run);
  VECTOR_PUSH(&processes->notes, note);
  processes->at = memory_resized(processes->at, size_sum(processes->n, 1), sizeof(*processes->at));
  processes->at[processes->n++] = *candidate;
}

void processes_add_from_other_runs(struct processes *processes, const struct trace_runs *runs,
                                   const struct trace_run *run) {
  struct world world = find_world(processes);
  for (u32 r = 0; r < runs->n_runs && world.comm && world.found < world.comm->size; r++) {
    const struct trace_run *other = &runs->runs[r];
    for (u32 i = 0; i < other->n_entries && other != run && world.found < world.comm->size; i++) {
      struct process candidate = {.entry = &other->entries[i],
                                  .rank = other->entries[i].header.rank};
      if (!may_belong(processes, candidate.entry) ||
          !process_read(&candidate, processes->kernel_names))
        continue;
      if (!belongs_to_world(processes, &world, &candidate)) {
        rank_events_release(&candidate.events);
        continue;
      }
      recover_rank(processes, &candidate);
      world = find_world(processes);
    }
  }
}
