/* SPDX-License-Identifier: MIT
 *
 * What NCCL reported about communicators while ranks stalled, for the flight record.
 */

#include "base/checked_memory.h"
#include "import/tscope/trace_source.h"
#include "model/building.h"
#include "model/flight_record.h"
#include "model/stalls.h"

/* The stall in which a rank's record ends, as far as its calls show; NULL. */
static const struct rank_stall *stall_of(const struct model *model, u32 r) {
  const struct rank *rank = &model->ranks[r];
  const struct rank_events *events = model_events(model, r);
  const struct rank_stall *last = NULL;
  FOR_EACH(rank->stalls, rank->n_stalls, one)
    if (one->what == TSCOPE_STALL_NOTHING_MOVED)
      last = one;
  for (u32 i = 0; last && last->end != NS_UNKNOWN && i < events->calls.n; i++)
    if (events->calls.at[i].start > last->end)
      last = NULL;
  return last;
}

void trace_flight_nccl(const struct model *model, const u32 *rank_of, struct arena *arena,
                       struct flight_record *flight) {
  u64 most = 0;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_stall *stall = stall_of(model, r);
    most += stall ? stall->n_comms : 0;
  }
  flight->nccl = arena_array(arena, most, sizeof(*flight->nccl));
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_stall *stall = stall_of(model, r);
    for (u32 i = 0; stall && i < stall->n_comms; i++) {
      u32 comm = rank_comm_index(model_events(model, r), stall->comms[i].comm);
      u32 group = comm == INDEX_NONE ? INDEX_NONE : model_comm_of(model, r, comm);
      if (group != INDEX_NONE)
        flight->nccl[flight->n_nccl++] = (struct flight_nccl){
            .rank = rank_of[r], .group = group, .result = stall->comms[i].result};
    }
  }
}
