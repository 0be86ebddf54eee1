/* SPDX-License-Identifier: MIT
 *
 * Which call a collective kernel belongs to: streams run their work in order. The report follows
 * correlation numbers through the ring, which is not read for a running job. If one kernel was not
 * recorded, all later ones would be off by one; so callers check that the ends on different ranks
 * agree.
 */
#include "kernels/communication.h"
#include "live/live_process.h"

enum { UNPAIRED_KEPT = LIVE_MOST_CALLS };

static bool can_run_op(u8 kernel, u8 op) {
  return kernel == 0 || kernel == kernel_op(op);
}

/* A call that is paired, in place: those behind it stay where they are. */
static bool is_paired(const struct rank_call *call) {
  return call->seq == INDEX_NONE;
}

/* A group's calls on one communicator and stream are one kernel. */
static void pair(struct live_process *process, u32 at, const struct rank_run *run) {
  struct rank_call first = process->unpaired.at[at];
  for (u32 i = at; i < process->unpaired.n; i++) {
    struct rank_call *call = &process->unpaired.at[i];
    bool same = !is_paired(call) && call->group == first.group && call->comm == first.comm &&
                call->stream == first.stream;
    if (i > at && !same && first.group && call->group != first.group)
      return;
    if (!same)
      continue;
    struct live_call *place = live_call_at(&process->comms.at[call->comm], call->seq);
    if (place) {
      place->run_start = run->start;
      place->run_end = run->end;
    } else {
      live_grow_recent(&process->comms.at[call->comm]);
    }
    call->seq = INDEX_NONE;
    if (!first.group)
      return;
  }
}

/* Keeps the calls that a run may still come for. */
static void remove_paired(struct live_process *process) {
  u32 kept = 0;
  for (u32 i = 0; i < process->unpaired.n; i++)
    if (!is_paired(&process->unpaired.at[i]))
      process->unpaired.at[kept++] = process->unpaired.at[i];
  process->unpaired.n = kept;
  if (kept <= UNPAIRED_KEPT)
    return;
  memmove(process->unpaired.at, process->unpaired.at + kept - UNPAIRED_KEPT,
          UNPAIRED_KEPT * sizeof(*process->unpaired.at));
  process->unpaired.n = UNPAIRED_KEPT;
}

void live_pair_runs(struct live_process *process) {
  u32 head = 0, known = 0;
  u8 op = 0;
  for (u32 r = 0; r < process->runs.n; r++) {
    const struct rank_run *run = &process->runs.at[r];
    if (run->name != known) { /* mostly it is one and the same kernel */
      const char *name = live_string(process, run->name);
      op = name ? op_of_name(name) : 0;
      known = run->name;
    }
    if (op_is_message(op)) /* messages, as a rule */
      continue;
    while (head < process->unpaired.n && is_paired(&process->unpaired.at[head]))
      head++;
    for (u32 i = head; i < process->unpaired.n && i < head + UNPAIRED_KEPT; i++) {
      const struct rank_call *call = &process->unpaired.at[i];
      if (is_paired(call) || call->stream != run->stream || !can_run_op(op, call->op) ||
          call->start > run->end)
        continue;
      pair(process, i, run);
      break;
    }
  }
  process->runs.n = 0;
  remove_paired(process);
}
