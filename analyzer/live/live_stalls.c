/* SPDX-License-Identifier: MIT
 *
 * Where a process stalls, as its own watchdog recorded it, in the report's words.
 */
#include "analyses/stalls/stall_words.h"
#include "base/checked_memory.h"
#include "live/live_view.h"

/* The first error that NCCL reports of a communicator represents the rank. */
static const char *nccl_error_of(const struct rank_stall *stall) {
  const struct stalled_comm *failed = FIND(stall->comms, stall->n_comms, one, one->result);
  return failed ? nccl_error_text(failed->result) : NULL;
}

void live_describe_stall(struct live_view *view, struct live_rank *rank) {
  const struct definitions *known = &rank->process->definitions.now;
  const struct rank_stall *stall = known->n_stalls ? &known->stalls[known->n_stalls - 1] : NULL;
  struct stalled_rank described = {0};
  if (!stall || stall->end != NS_UNKNOWN)
    return;
  const char *in = rank->in_call || rank->in_wait_s >= 0 ? rank->op : NULL;
  stall_describe(&view->arena, stall, rank->waits_in ? rank->waits_in : in, &described);
  rank->stalled_in = described.words;
  rank->stall = stall;
  rank->stalled_s = live_seconds_between(stall->begin, rank->seen_ns);
  rank->nccl_error = nccl_error_of(stall);
}

void live_merge_stalls(struct live_view *view) {
  u64 threads = 0;
  u32 n = 0;
  FOR_EACH(view->ranks, view->n_ranks, one) {
    threads += one->stall ? one->stall->n_threads : 0;
    view->n_stalled += one->stall != NULL;
  }
  if (!view->n_stalled)
    return;
  struct tree_stack *stacks = arena_array(&view->arena, threads, sizeof(*stacks));
  FOR_EACH(view->ranks, view->n_ranks, rank)
    if (rank->stall)
      n += stall_stacks(rank->stall, rank->rank, stacks + n);
  stack_tree_make(&view->arena, stacks, n, &view->stalls);
}
