/* SPDX-License-Identifier: MIT
 *
 * Communicators, and what is called on them.
 */
#include "base/checked_memory.h"
#include "base/hash.h"
#include "import/tscope/events/read_events.h"
#include "join/exchanges.h"
#include "kernels/communication.h"
#include "live/live_records.h"

void live_add_comms(struct live_process *process) {
  const struct definitions *now = &process->definitions.now;
  while (process->comms.n < now->n_comms)
    VECTOR_PUSH(&process->comms, (struct live_comm){.newest = INDEX_NONE});
  process->called.comms = now->comms;
  process->called.n_comms = now->n_comms;
}

/* Or will not be seen to end. */
static bool is_over(const struct rank_events *called, const struct rank_call *call) {
  return call->stream == TSCOPE_NO_STREAM ||
         (call->run != INDEX_NONE && called->runs.at[call->run].end != NS_UNKNOWN);
}

struct kept {
  u32 over, open;               /* collectives */
  u32 over_groups, open_groups; /* of messages; one outside any is one */
  u32 messages, group;          /* group: that of the last one */
  bool full; /* no earlier message is kept, so that none is missing between them */
};

static bool is_message_over(const struct rank_events *called, const struct rank_call *call) {
  bool sent = call->op == TSCOPE_OP_SEND && call->stream == TSCOPE_NO_STREAM;
  return call->run == INDEX_NONE ? sent && call->end != NS_UNKNOWN
                                 : called->runs.at[call->run].end != NS_UNKNOWN;
}

static bool is_wanted_message(const struct live_process *process, struct live_wanted wanted,
                              struct kept *kept, const struct rank_call *call) {
  if (kept->messages == 0 || !call->group || call->group != kept->group) {
    bool over = is_message_over(&process->called, call);
    kept->over_groups += over;
    kept->open_groups += !over;
    kept->full |= kept->over_groups > LIVE_RECENT_CALLS || kept->open_groups > LIVE_MOST_CALLS ||
                  kept->messages >= wanted.messages;
  }
  kept->group = call->group;
  kept->messages++;
  return !kept->full && (wanted.all_messages || process->comms.at[call->comm].exchanges);
}

static bool is_wanted(const struct live_process *process, struct live_wanted wanted,
                      struct kept *kept, const struct rank_call *call) {
  if (op_is_message(call->op))
    return is_wanted_message(process, wanted, kept, call);
  bool over = is_over(&process->called, call);
  bool is = kept->over < LIVE_RECENT_CALLS && (over || kept->open < wanted.open);
  kept->over += over;
  kept->open += !over;
  return is;
}

void live_copy_calls(const struct live_process *process, struct live_wanted wanted,
                     struct rank_events *to) {
  const struct rank_events *called = &process->called;
  SCOPED struct kept *n = memory_zeroed(size_sum(called->n_comms, 1), sizeof(*n));
  SCOPED bool *kept = memory_zeroed(size_sum(called->calls.n, 1), sizeof(*kept));
  for (u32 i = called->calls.n; i-- > 0;)
    kept[i] = is_wanted(process, wanted, &n[called->calls.at[i].comm], &called->calls.at[i]);
  for (u32 i = 0; i < called->calls.n; i++) {
    struct rank_call call = called->calls.at[i];
    if (!kept[i])
      continue;
    if (call.run != INDEX_NONE) {
      VECTOR_PUSH(&to->runs, called->runs.at[call.run]);
      call.run = to->runs.n - 1;
    }
    VECTOR_PUSH(&to->calls, call);
  }
}

void live_forget_calls(struct live_process *process) {
  struct rank_events *called = &process->called, last = {0};
  if (called->calls.n < 2 * process->calls_kept + LIVE_RECENT_CALLS)
    return;
  live_copy_calls(process, (struct live_wanted){LIVE_MOST_CALLS, UINT32_MAX, true}, &last);
  last.comms = called->comms;
  last.n_comms = called->n_comms;
  rank_events_release(called);
  *called = last;
  process->calls_kept = last.calls.n;
}

u32 live_find_call(const struct rank_events *called, u32 comm, u32 seq, bool message) {
  for (u32 i = called->calls.n; i-- > 0;) {
    const struct rank_call *call = &called->calls.at[i];
    if (call->comm == comm && call->seq == seq && op_is_message(call->op) == message)
      return i;
  }
  return INDEX_NONE;
}

/* Adds a call, or what is new of one that came before. */
static void keep_call(struct live_process *process, struct rank_call call, bool again) {
  struct live_comm *comm = &process->comms.at[call.comm];
  bool message = op_is_message(call.op);
  struct rank_events *called = &process->called;
  u32 at = again ? live_find_call(called, call.comm, call.seq, message) : INDEX_NONE;
  if (!message && (comm->newest == INDEX_NONE || call.seq > comm->newest))
    comm->newest = call.seq;
  if (at != INDEX_NONE) {
    call.run = called->calls.at[at].run;
    called->calls.at[at] = call;
  } else if (!again) {
    VECTOR_PUSH(&called->calls, call);
  }
}

static u64 channel_hash(const struct rank_call *call) {
  const u32 key[] = {call->comm, (u32)call->peer, call->op};
  return table_hash(0, key, sizeof(key));
}

u32 live_channel_of(const struct live_process *process, const struct rank_call *call) {
  return HASHED_INDEX(&process->channels, channel_hash(call), one,
                      one->comm == call->comm && one->peer == (u32)call->peer &&
                          one->op == call->op);
}

static void count_on_channel(struct live_process *process, const struct rank_call *call) {
  u32 number = live_channel_of(process, call);
  if (number == INDEX_NONE)
    number = HASHED_ADD(&process->channels, channel_hash(call),
                        (struct live_channel){call->comm, (u32)call->peer, call->op, 0});
  process->channels.at[number].made++;
}

/* As join/find_exchanges.c does it. */
static bool may_exchange(const struct comm_definition *comm, const struct live_comm *live,
                         const struct rank_call *call) {
  return call->group && ((u32)call->peer == comm->rank ||
                         (comm->size >= LEAST_WITHOUT_OWN && live->sends >= comm->size - 1));
}

static void count_message(struct live_process *process, const struct rank_call *call) {
  struct live_comm *live = &process->comms.at[call->comm];
  bool same = live->groups && call->group && call->group == live->group;
  live->groups += !same;
  live->group = call->group;
  live->sends = (same ? live->sends : 0) + (call->op == TSCOPE_OP_SEND);
  live->exchanges |= may_exchange(&process->called.comms[call->comm], live, call);
  process->messages++;
  count_on_channel(process, call);
}

static void update_longest(struct live_process *process, i64 start, i64 end) {
  if (end != NS_UNKNOWN && end - start > process->longest_ns)
    process->longest_ns = end - start;
}

static void add_token(struct live_process *process, i64 start, u32 token) {
  struct live_tokens *tokens = &process->tokens;
  u64 at = tokens->n++ % LIVE_TOKENS;
  tokens->start[at] = start;
  tokens->token[at] = token;
  tokens->pause[at] =
      process->last_call_end == NS_UNKNOWN ? 0 : (float)(start - process->last_call_end);
}

/* Whether work that is called for a stream will be seen on the GPU. */
static bool expects_run(const struct live_process *process, u32 stream) {
  return stream != TSCOPE_NO_STREAM && process->definitions.now.gpu_clock != TSCOPE_GPU_CLOCK_HOST;
}

void live_read_call(struct live_process *process, const struct live_record *record) {
  const struct tscope_collective_record *from = (const void *)record->record;
  struct rank_call call =
      collective_call(from, (struct interval){record->start, live_end_ns(record)},
                      rank_comm_index(&process->called, from->comm), record->thread);
  if (!record->again) {
    u32 token = hash_number(hash_number(hash_number(1, call.comm), call.op),
                            (u64)call.dtype << 32 | (u32)call.peer);
    add_token(process, call.start, hash_number(token, call.count));
    process->last = (struct live_last_call){.place = record->place,
                                            .any = true,
                                            .open = call.end == NS_UNKNOWN,
                                            SAME(&call, start, comm, seq, op)};
  } else if (process->last.place == record->place) {
    process->last.open = false;
  }
  process->last_call_end = call.end == NS_UNKNOWN ? call.start : call.end;
  if (call.comm == INDEX_NONE || (op_is_message(call.op) && call.peer < 0))
    return;
  if (op_is_message(call.op) && !record->again)
    count_message(process, &call);
  if (!op_is_message(call.op) && !expects_run(process, call.stream))
    call.stream = TSCOPE_NO_STREAM;
  keep_call(process, call, record->again);
  update_longest(process, call.start, call.end);
}

/* The collectives of a graph are called when it is launched. */
void live_read_graph_replay(struct live_process *process, const struct live_record *record) {
  const struct tscope_graph_replay_record *replay = (const void *)record->record;
  u32 room =
      (u32)((8u * replay->header.words - sizeof(*replay)) / sizeof(struct tscope_graph_comm));
  const struct tscope_graph_comm *comms = (const void *)(replay + 1);
  for (u32 i = 0; i < replay->comms && i < room; i++) {
    struct rank_call call = {.start = record->start,
                             .end = live_end_ns(record),
                             .comm = rank_comm_index(&process->called, comms[i].comm),
                             .seq = comms[i].first_collective,
                             .peer = -1,
                             .run = INDEX_NONE,
                             .stream = TSCOPE_NO_STREAM};
    if (call.comm == INDEX_NONE)
      continue;
    keep_call(process, call, record->again);
    if (!record->again) {
      add_token(process, call.start, hash_number(hash_number(2, call.comm), replay->graph));
      process->last = (struct live_last_call){
          .place = record->place, .any = true, SAME(&call, start, comm, seq)};
    }
  }
}

/* A look reads one thread's chunk after the other: a run of the last one may be of a call that the
 * next look reads. */
void live_read_run(struct live_process *process, const struct live_record *record) {
  const struct tscope_collective_run_record *run = (const void *)record->record;
  i64 start = record->start, end = live_end_ns(record);
  update_longest(process, start, end);
  bool named = run->comm != TSCOPE_UNKNOWN && run->seq != TSCOPE_UNKNOWN;
  bool of_graph = 8u * run->header.words >= sizeof(*run) + sizeof(struct tscope_graph_node);
  if (!named && (of_graph || end == NS_UNKNOWN))
    return;
  VECTOR_PUSH(&process->runs, (struct rank_run){.start = start,
                                                .end = end,
                                                .stream = run->header.tag,
                                                SAME(run, comm, seq, name)});
}

void live_read_comm_wait(struct live_process *process, const struct live_record *record) {
  const struct tscope_comm_wait_record *wait = (const void *)record->record;
  i64 end = live_end_ns(record);
  update_longest(process, record->start, end);
  if (end != NS_UNKNOWN && waits_for_message(wait->seq))
    VECTOR_PUSH(&process->received,
                (struct rank_wait){.start = record->start, .end = end, SAME(wait, comm, seq)});
  live_update_open(&process->waits, record,
                   (struct live_open){.start = record->start,
                                      .comm = rank_comm_index(&process->called, wait->comm),
                                      .seq = wait->seq});
}
