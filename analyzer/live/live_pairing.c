/* SPDX-License-Identifier: MIT
 *
 * Which call a collective kernel belongs to: streams run their work in order. The report follows
 * correlation numbers through the ring, which is not read for a running job. If one kernel was not
 * recorded, all later ones would be off by one; so callers check that the ends on different ranks
 * agree.
 */
#include <stdlib.h>

#include "base/sorting.h"
#include "import/tscope/events/named_calls.h"
#include "import/tscope/events/read_events.h"
#include "kernels/communication.h"
#include "live/live_process.h"

enum { RUNS_KEPT = LIVE_MOST_CALLS };

ORDER_BY(by_start, struct rank_call, UP(start))

static bool can_run(const struct rank_run *run, u8 op, const struct rank_call *call) {
  return call->run == INDEX_NONE && call->stream == run->stream &&
         (op == 0 || op == kernel_op(call->op));
}

static u32 add_run(struct live_process *process, const struct rank_run *run) {
  VECTOR_PUSH(&process->called.runs, *run);
  return process->called.runs.n - 1;
}

/* A group's calls on one communicator and stream are one kernel. */
static void pair(struct rank_events *called, u32 at, u32 run) {
  const struct rank_call first = called->calls.at[at];
  for (u32 i = at; i < called->calls.n; i++) {
    struct rank_call *call = &called->calls.at[i];
    bool same = call->run == INDEX_NONE && call->group == first.group && call->comm == first.comm &&
                call->stream == first.stream;
    if (i > at && !same && first.group && call->group != first.group)
      return;
    if (same)
      call->run = run;
    if (!first.group)
      return;
  }
}

/* By what the run says, which may be of one of a group's messages. It may come again, once it is
 * over. */
static bool pair_named(struct live_process *process, const struct named_calls *index,
                       const struct rank_run *run, u8 op) {
  struct rank_events *called = &process->called;
  bool message = op_is_message(op); /* names do not distinguish an all-to-all from sends */
  u32 call = named_calls_find(index, run->comm, run->seq, message);
  if (call == INDEX_NONE && message)
    call = named_calls_find(index, run->comm, run->seq, false);
  if (call == INDEX_NONE)
    return false;
  if (called->calls.at[call].run == INDEX_NONE)
    pair(called, call, add_run(process, run));
  else
    called->runs.at[called->calls.at[call].run] = *run;
  return true;
}

static void pair_in_turn(struct live_process *process, const struct rank_run *run, u8 op,
                         u32 head) {
  struct rank_events *called = &process->called;
  for (u32 i = head; i < called->calls.n && called->calls.at[i].start <= run->end; i++)
    if (can_run(run, op, &called->calls.at[i])) {
      pair(called, i, add_run(process, run));
      return;
    }
}

static void pair_received(struct live_process *process, const struct named_calls *index) {
  u32 kept = 0, n = process->received.n;
  for (u32 i = 0; i < n; i++) {
    const struct rank_wait wait = process->received.at[i];
    u32 call = named_calls_find(index, wait.comm, number_waited_for(wait.seq), true);
    if (call != INDEX_NONE)
      add_transfer_run(&process->called, call, &wait);
    else if (n - i <= RUNS_KEPT)
      process->received.at[kept++] = wait;
  }
  process->received.n = kept;
}

void live_pair_runs(struct live_process *process) {
  const struct rank_events *called = &process->called;
  u32 head = 0, known = 0, kept = 0, n = process->runs.n;
  u8 op = 0;
  struct named_calls index = {0};
  /* A look reads the calls of one thread after those of another. */
  SORT(process->called.calls.at, process->called.calls.n, by_start);
  if (process->received.n || ANY(process->runs.at, n, one, names_a_call(one->comm, one->seq)))
    index = named_calls_make(called);
  for (u32 r = 0; r < n; r++) {
    const struct rank_run run = process->runs.at[r];
    if (run.name != known) { /* mostly it is one and the same kernel */
      const char *name = live_string(process, run.name);
      op = name ? op_of_name(name) : 0;
      known = run.name;
    }
    if (names_a_call(run.comm, run.seq)) {
      if (!pair_named(process, &index, &run, op) && n - r <= RUNS_KEPT)
        process->runs.at[kept++] = run;
      continue;
    }
    while (head < called->calls.n && called->calls.at[head].run != INDEX_NONE)
      head++;
    pair_in_turn(process, &run, op, head);
  }
  process->runs.n = kept;
  pair_received(process, &index);
  free(index.at);
}
