/* SPDX-License-Identifier: MIT
 *
 * Communicators, and what is called on them.
 */
#include "base/checked_memory.h"
#include "base/hash.h"
#include "import/tscope/events/read_events.h"
#include "kernels/communication.h"
#include "live/live_records.h"

static struct live_call *allocate_calls(u32 n) {
  struct live_call *calls = memory_array(n, sizeof(*calls));
  for (u32 i = 0; i < n; i++)
    calls[i].call.seq = INDEX_NONE;
  return calls;
}

void live_grow_recent(struct live_comm *comm) {
  u32 n = 2 * comm->n_recent;
  if (n > LIVE_MOST_CALLS)
    return;
  struct live_call *more = allocate_calls(n);
  for (u32 i = 0; i < comm->n_recent; i++) {
    const struct live_call *call = &comm->recent[i];
    if (call->call.seq != INDEX_NONE)
      more[call->call.seq % n] = *call;
  }
  free(comm->recent);
  comm->recent = more;
  comm->n_recent = n;
}

void live_add_comms(struct live_process *process) {
  const struct definitions *now = &process->definitions.now;
  while (process->comms.n < now->n_comms)
    VECTOR_PUSH(&process->comms, (struct live_comm){.newest = INDEX_NONE,
                                                    .recent = allocate_calls(LIVE_RECENT_CALLS),
                                                    .n_recent = LIVE_RECENT_CALLS});
  process->seen.comms = now->comms;
  process->seen.n_comms = now->n_comms;
}

struct live_call *live_call_at(struct live_comm *comm, u32 seq) {
  struct live_call *call = &comm->recent[seq % comm->n_recent];
  return call->call.seq == seq ? call : NULL;
}

/* The slot of a call: the one it has, or a new one, unless newer calls took it. A call that still
 * waits for its run, `expected`, keeps its slot as long as there can be more slots. */
static struct live_call *claim_call_slot(struct live_process *process, u32 index, u32 seq,
                                         bool expected) {
  struct live_comm *comm = &process->comms.at[index];
  struct live_call *call = &comm->recent[seq % comm->n_recent];
  if (expected && call->call.seq != INDEX_NONE && call->call.seq < seq &&
      call->run_end == NS_UNKNOWN) {
    live_grow_recent(comm);
    call = &comm->recent[seq % comm->n_recent];
  }
  u32 other = call->call.seq;
  if (other != INDEX_NONE && other > seq && other - seq < INT32_MAX)
    return NULL;
  if (other != seq)
    *call = (struct live_call){.call = {.start = NS_UNKNOWN,
                                        .end = NS_UNKNOWN,
                                        .comm = index,
                                        .seq = seq,
                                        .peer = -1,
                                        .run = INDEX_NONE,
                                        .stream = TSCOPE_NO_STREAM},
                               .run_start = NS_UNKNOWN,
                               .run_end = NS_UNKNOWN};
  return call;
}

static void note_newest(struct live_comm *comm, u32 seq) {
  if (comm->newest == INDEX_NONE || seq > comm->newest)
    comm->newest = seq;
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
                      rank_comm_index(&process->seen, from->comm), record->thread);
  if (!record->again) {
    u32 token = hash_number(hash_number(hash_number(1, call.comm), call.op),
                            (u64)call.dtype << 32 | (u32)call.peer);
    add_token(process, call.start, hash_number(token, call.count));
    process->last = (struct live_last_call){.start = call.start,
                                            .place = record->place,
                                            .comm = call.comm,
                                            .seq = call.seq,
                                            .op = call.op,
                                            .any = true,
                                            .open = call.end == NS_UNKNOWN};
  } else if (process->last.place == record->place) {
    process->last.open = false;
  }
  process->last_call_end = call.end == NS_UNKNOWN ? call.start : call.end;
  if (call.comm == INDEX_NONE || op_is_message(call.op))
    return;
  bool expected = expects_run(process, call.stream);
  struct live_call *place = claim_call_slot(process, call.comm, call.seq, expected);
  if (!place)
    return;
  note_newest(&process->comms.at[call.comm], call.seq);
  place->call = call;
  update_longest(process, call.start, call.end);
  if (!record->again && expected)
    VECTOR_PUSH(&process->unpaired, call);
}

/* The collectives of a graph are called when it is launched. */
void live_read_graph_replay(struct live_process *process, const struct live_record *record) {
  const struct tscope_graph_replay_record *replay = (const void *)record->record;
  u32 room =
      (u32)((8u * replay->header.words - sizeof(*replay)) / sizeof(struct tscope_graph_comm));
  const struct tscope_graph_comm *comms = (const void *)(replay + 1);
  i64 start = record->start;
  for (u32 i = 0; i < replay->comms && i < room; i++) {
    u32 index = rank_comm_index(&process->seen, comms[i].comm);
    struct live_call *call =
        index == INDEX_NONE ? NULL
                            : claim_call_slot(process, index, comms[i].first_collective, false);
    if (!call)
      continue;
    note_newest(&process->comms.at[index], comms[i].first_collective);
    call->call.start = start;
    call->call.end = live_end_ns(record);
    if (!record->again) {
      add_token(process, start, hash_number(hash_number(2, index), replay->graph));
      process->last = (struct live_last_call){.start = start,
                                              .place = record->place,
                                              .comm = index,
                                              .seq = comms[i].first_collective,
                                              .any = true};
    }
  }
}

/* A look reads one thread's chunk after the other: a run of the last one may be of a call that the
 * next look reads. */
void live_read_run(struct live_process *process, const struct live_record *record) {
  const struct tscope_collective_run_record *run = (const void *)record->record;
  i64 start = record->start, end = live_end_ns(record);
  update_longest(process, start, end);
  u32 index = run->comm == TSCOPE_UNKNOWN ? INDEX_NONE : rank_comm_index(&process->seen, run->comm);
  if (index != INDEX_NONE && run->seq != TSCOPE_UNKNOWN) {
    struct live_call *call = claim_call_slot(process, index, run->seq, true);
    if (call) {
      call->run_start = start;
      call->run_end = end;
    } else {
      live_grow_recent(&process->comms.at[index]);
    }
    return;
  }
  bool of_graph = 8u * run->header.words >= sizeof(*run) + sizeof(struct tscope_graph_node);
  if (of_graph || end == NS_UNKNOWN)
    return;
  VECTOR_PUSH(
      &process->runs,
      (struct rank_run){.start = start, .end = end, .name = run->name, .stream = run->header.tag});
}

void live_read_comm_wait(struct live_process *process, const struct live_record *record) {
  const struct tscope_comm_wait_record *wait = (const void *)record->record;
  update_longest(process, record->start, live_end_ns(record));
  live_update_open(&process->waits, record,
                   (struct live_open){.start = record->start,
                                      .comm = rank_comm_index(&process->seen, wait->comm),
                                      .seq = wait->seq});
}
