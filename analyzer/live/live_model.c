/* SPDX-License-Identifier: MIT */
#include "live/live_view.h"

#include "base/checked_memory.h"
#include "import/tscope/events/read_events.h"
#include "import/tscope/files/process_state.h"
#include "join/join_ranks.h"
#include "kernels/communication.h"
#include "model/building.h"

/* Messages that are looked at: of all ranks, and at least and at most of each. */
enum { MESSAGES_IN_ALL = 1 << 16, MESSAGES_LEAST = 64, MESSAGES_MOST = 1024 };

/* Of waits that are over, the longest stands for all: no call is held up before it takes longer. */
static void put_waits(const struct live_process *process, struct rank_events *events) {
  i64 begin = events->begin;
  VECTOR_PUSH(&events->waits, (struct rank_wait){.start = begin,
                                                 .end = begin + process->longest_ns,
                                                 .comm = TSCOPE_UNKNOWN,
                                                 .seq = TSCOPE_UNKNOWN,
                                                 .call = INDEX_NONE});
  FOR_EACH(process->waits.at, process->waits.n, open) {
    u32 call = live_find_call(events, open->comm, number_waited_for(open->seq),
                              waits_for_message(open->seq));
    if (call != INDEX_NONE)
      VECTOR_PUSH(&events->waits, (struct rank_wait){.start = open->start,
                                                     .end = NS_UNKNOWN,
                                                     .comm = TSCOPE_UNKNOWN,
                                                     .seq = open->seq,
                                                     .call = call});
  }
}

static void put_phases(const struct live_process *process, struct rank_events *events) {
  FOR_EACH(process->phases.at, process->phases.n, phase)
    VECTOR_PUSH(&events->phases,
                (struct rank_phase){.start = phase->start, .end = NS_UNKNOWN, .kind = phase->kind});
}

/* How many groups of messages there were before those that are looked at: how many exchanges, if
 * that is what they were. */
static u32 *count_groups_before(const struct live_process *process,
                                const struct rank_events *events, struct arena *arena) {
  u32 n = process->comms.n, *before = arena_array(arena, n, sizeof(u32));
  SCOPED u32 *group = memory_zeroed(size_sum(n, 1), sizeof(u32));
  for (u32 c = 0; c < n; c++)
    before[c] = process->comms.at[c].exchanges ? process->comms.at[c].groups : 0;
  FOR_EACH(events->calls.at, events->calls.n, call) {
    if (!op_is_message(call->op) || (call->group && call->group == group[call->comm]))
      continue;
    group[call->comm] = call->group;
    before[call->comm] -= before[call->comm] > 0;
  }
  return before;
}

static void put_calls(struct model *model, u32 r, const struct live_rank *from,
                      struct live_wanted wanted) {
  const struct live_process *process = from->process;
  struct rank_events *events = model_events(model, r);
  *events = (struct rank_events){.realtime_minus_monotonic =
                                     process->definitions.now.realtime_minus_monotonic,
                                 .anchor_error_ns = process->definitions.now.anchor_error_ns,
                                 .last_anchor = process->definitions.now.last_anchor,
                                 .definitions = &from->process->definitions.now,
                                 .comms = process->called.comms,
                                 .n_comms = process->called.n_comms,
                                 .begin = (i64)process->trace.file.header.start_monotonic_ns,
                                 .end = process->newest};
  live_copy_calls(process, wanted, events);
}

/* Once it is known which calls are looked at. */
static void put_rank(struct model *model, u32 r, const struct live_rank *from, bool here) {
  const struct live_process *process = from->process;
  const struct tscope_file_header *header = &process->trace.file.header;
  struct rank_events *events = model_events(model, r);
  struct rank *rank = &model->ranks[r];
  bool lives =
      from->state == LIVE_RUNNING || from->state == LIVE_SILENT || from->state == LIVE_STOPPED;
  u64 made = TOTAL(u64, process->comms.at, process->comms.n, one,
                   one->newest == INDEX_NONE ? 0 : one->newest + 1ull) +
             process->messages;
  put_waits(process, events);
  add_transfer_runs(events);
  put_phases(process, events);
  events->groups_before = count_groups_before(process, events, model_arena(model));
  for (u32 i = events->calls.n; i-- > 0;)
    if (events->calls.at[i].run != INDEX_NONE)
      events->runs.at[events->calls.at[i].run].first_call = i;
  *rank = (struct rank){.rank = from->rank,
                        .path = from->entry->path,
                        .closed = process_ended_itself(header),
                        .running = lives && here,
                        .may_run = lives && !here,
                        .collective_calls = events->calls.n,
                        .collective_runs = events->runs.n,
                        .gpu_clock = process->definitions.now.gpu_clock,
                        SAME(header, local_rank, pid, host)};
  memcpy(rank->info, process->definitions.now.info, sizeof(rank->info));
  memcpy(rank->lost, header->lost, sizeof(rank->lost));
  if (made > events->calls.n) /* the record does not begin with the first call */
    rank->lost[TSCOPE_LOSS_RETAINED]++;
  rank_end_read(&rank->ending, header, events, model_arena(model));
}

struct model *live_model_make(const struct live_view *view, bool pending) {
  struct model *model = model_new();
  u32 share = MESSAGES_IN_ALL / MAX(view->n_ranks, 1);
  struct live_wanted wanted = {.open = pending ? LIVE_MOST_CALLS : 0,
                               .messages = CLAMP(share, MESSAGES_LEAST, MESSAGES_MOST),
                               .all_messages = pending};
  model_make_ranks(model, view->n_ranks);
  model->world_size = view->world;
  for (u32 r = 0; r < view->n_ranks; r++)
    put_calls(model, r, &view->ranks[r], wanted);
  live_align_messages(view, model);
  for (u32 r = 0; r < view->n_ranks; r++)
    put_rank(model, r, &view->ranks[r], view->hosts[view->ranks[r].host].here);
  join_collectives(model, &(struct model_options){.threads = 1});
  return model;
}
