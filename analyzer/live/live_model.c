/* SPDX-License-Identifier: MIT */
#include "live/live_view.h"

#include "base/checked_memory.h"
#include "join/join_ranks.h"
#include "model/building.h"

/* Whether earlier calls are left out. */
static bool put_calls(const struct live_process *process, u32 open, struct rank_events *events) {
  u64 made = TOTAL(u64, process->comms.at, process->comms.n, one,
                   one->newest == INDEX_NONE ? 0 : one->newest + 1ull);
  live_copy_calls(&process->called, open, events);
  for (u32 i = events->calls.n; i-- > 0;)
    if (events->calls.at[i].run != INDEX_NONE)
      events->runs.at[events->calls.at[i].run].first_call = i;
  return made > events->calls.n;
}

/* Of waits that are over, the longest stands for all: no call is held up before it takes longer. */
static void put_waits(const struct live_process *process, struct rank_events *events) {
  i64 begin = events->begin;
  VECTOR_PUSH(&events->waits, (struct rank_wait){.start = begin,
                                                 .end = begin + process->longest_ns,
                                                 .comm = TSCOPE_UNKNOWN,
                                                 .seq = TSCOPE_UNKNOWN,
                                                 .call = INDEX_NONE});
  FOR_EACH(process->waits.at, process->waits.n, open) {
    for (u32 i = 0; i < events->calls.n; i++) {
      const struct rank_call *call = &events->calls.at[i];
      if (call->comm == open->comm && call->seq == open->seq)
        VECTOR_PUSH(&events->waits, (struct rank_wait){.start = open->start,
                                                       .end = NS_UNKNOWN,
                                                       .comm = TSCOPE_UNKNOWN,
                                                       .seq = open->seq,
                                                       .call = i});
    }
  }
}

static void put_phases(const struct live_process *process, struct rank_events *events) {
  for (u32 i = 0; i < process->phases.n; i++)
    VECTOR_PUSH(&events->phases, (struct rank_phase){.start = process->phases.at[i].start,
                                                     .end = NS_UNKNOWN,
                                                     .kind = process->phases.at[i].kind});
}

static void put_rank(struct model *model, u32 r, const struct live_rank *from, u32 open) {
  const struct live_process *process = from->process;
  const struct tscope_file_header *header = &process->trace.file.header;
  struct rank_events *events = model_events(model, r);
  struct rank *rank = &model->ranks[r];
  *events = (struct rank_events){.realtime_minus_monotonic =
                                     process->definitions.now.realtime_minus_monotonic,
                                 .anchor_error_ns = process->definitions.now.anchor_error_ns,
                                 .last_anchor = process->definitions.now.last_anchor,
                                 .definitions = &from->process->definitions.now,
                                 .comms = process->called.comms,
                                 .n_comms = process->called.n_comms,
                                 .begin = (i64)header->start_monotonic_ns,
                                 .end = process->newest};
  bool dropped = put_calls(process, open, events);
  put_waits(process, events);
  put_phases(process, events);
  *rank = (struct rank){.rank = from->rank,
                        .path = from->entry->path,
                        .closed = header->closed_realtime_ns != 0,
                        .collective_calls = events->calls.n,
                        .collective_runs = events->runs.n,
                        .gpu_clock = process->definitions.now.gpu_clock,
                        SAME(header, local_rank, pid, host)};
  memcpy(rank->info, process->definitions.now.info, sizeof(rank->info));
  memcpy(rank->lost, header->lost, sizeof(rank->lost));
  rank->lost[TSCOPE_LOSS_RETAINED] += dropped; /* the record does not begin with the first call */
  rank_end_read(&rank->ending, header, events, model_arena(model));
}

struct model *live_model_make(const struct live_view *view, bool pending) {
  struct model *model = model_new();
  u32 open = pending ? LIVE_MOST_CALLS : 0;
  model_make_ranks(model, view->n_ranks);
  model->world_size = view->world;
  for (u32 r = 0; r < view->n_ranks; r++)
    put_rank(model, r, &view->ranks[r], open);
  join_collectives(model, &(struct model_options){.threads = 1});
  return model;
}
