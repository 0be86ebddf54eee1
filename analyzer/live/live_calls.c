/* SPDX-License-Identifier: MIT
 *
 * Communicators, and what is called on them.
 */
#include "base/checked_memory.h"
#include "base/hash.h"
#include "live/live_records.h"

u32 live_comm_index(const struct live_process *process, u32 number) {
  for (u32 i = process->comms.n; i-- > 0;)
    if (process->comms.at[i].number == number)
      return i;
  return INDEX_NONE;
}

static struct live_call *allocate_calls(u32 n) {
  struct live_call *calls = memory_array(n, sizeof(*calls));
  for (u32 i = 0; i < n; i++)
    calls[i].seq = INDEX_NONE;
  return calls;
}

void live_grow_recent(struct live_comm *comm) {
  u32 n = 2 * comm->n_recent;
  if (n > LIVE_MOST_CALLS)
    return;
  struct live_call *more = allocate_calls(n);
  for (u32 i = 0; i < comm->n_recent; i++) {
    const struct live_call *call = &comm->recent[i];
    if (call->seq != INDEX_NONE)
      more[call->seq % n] = *call;
  }
  free(comm->recent);
  comm->recent = more;
  comm->n_recent = n;
}

void live_read_comm(struct live_process *process, const struct tscope_comm_record *comm) {
  u32 index = live_comm_index(process, comm->comm);
  if (index == INDEX_NONE) {
    struct live_comm fresh = {.number = comm->comm,
                              .newest = INDEX_NONE,
                              .recent = allocate_calls(LIVE_RECENT_CALLS),
                              .n_recent = LIVE_RECENT_CALLS};
    VECTOR_PUSH(&process->comms, fresh);
    index = process->comms.n - 1;
  }
  struct live_comm *known = &process->comms.at[index];
  known->identity = comm->identity;
  known->rank = comm->rank;
  known->size = comm->size;
  known->name = comm->name;
  known->backend = (u8)comm->header.tag;
}

struct live_call *live_call_at(struct live_comm *comm, u32 seq) {
  struct live_call *call = &comm->recent[seq % comm->n_recent];
  return call->seq == seq ? call : NULL;
}

/* The slot of a call: the one it has, or a new one, unless newer calls took it. A call that still
 * waits for its run, `expected`, keeps its slot as long as there can be more slots. */
static struct live_call *claim_call_slot(struct live_comm *comm, u32 seq, bool expected) {
  struct live_call *call = &comm->recent[seq % comm->n_recent];
  if (expected && call->seq != INDEX_NONE && call->seq < seq && call->run_end == NS_UNKNOWN) {
    live_grow_recent(comm);
    call = &comm->recent[seq % comm->n_recent];
  }
  if (call->seq != INDEX_NONE && call->seq > seq && call->seq - seq < INT32_MAX)
    return NULL;
  if (call->seq != seq)
    *call = (struct live_call){.start = NS_UNKNOWN,
                               .end = NS_UNKNOWN,
                               .run_start = NS_UNKNOWN,
                               .run_end = NS_UNKNOWN,
                               .seq = seq};
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

static void expect_run(struct live_process *process, struct live_unpaired call) {
  if (expects_run(process, call.stream))
    VECTOR_PUSH(&process->unpaired, call);
}

void live_read_call(struct live_process *process, const struct live_record *record) {
  const struct tscope_collective_record *call = (const void *)record->record;
  u8 op = (u8)call->header.tag;
  i64 start = record->start, end = live_end_ns(record);
  u32 index = live_comm_index(process, call->comm);
  live_update_open(&process->calls, record,
                   (struct live_open){.start = start, .comm = index, .seq = call->seq, .kind = op});
  if (!record->again) {
    u32 token = hash_number(hash_number(hash_number(1, index), op),
                            (u64)call->dtype << 32 | (u32)call->peer);
    add_token(process, start, hash_number(token, call->count));
    process->last = (struct live_last_call){.start = start,
                                            .place = record->place,
                                            .comm = index,
                                            .seq = call->seq,
                                            .op = op,
                                            .any = true,
                                            .open = end == NS_UNKNOWN};
  } else if (process->last.place == record->place) {
    process->last.open = false;
  }
  process->last_call_end = end == NS_UNKNOWN ? start : end;
  if (index == INDEX_NONE || op >= TSCOPE_OP_SEND)
    return;
  struct live_call *place =
      claim_call_slot(&process->comms.at[index], call->seq, expects_run(process, call->stream));
  if (!place)
    return;
  note_newest(&process->comms.at[index], call->seq);
  place->start = start;
  place->end = end;
  place->op = op;
  place->count = call->count;
  place->dtype = call->dtype;
  update_longest(process, start, end);
  if (!record->again)
    expect_run(process, (struct live_unpaired){.start = start,
                                               .comm = index,
                                               .seq = call->seq,
                                               .group = call->group,
                                               .stream = call->stream,
                                               .op = op});
}

/* The collectives of a graph are called when it is launched. */
void live_read_graph_replay(struct live_process *process, const struct live_record *record) {
  const struct tscope_graph_replay_record *replay = (const void *)record->record;
  u32 room =
      (u32)((8u * replay->header.words - sizeof(*replay)) / sizeof(struct tscope_graph_comm));
  const struct tscope_graph_comm *comms = (const void *)(replay + 1);
  i64 start = record->start;
  for (u32 i = 0; i < replay->comms && i < room; i++) {
    u32 index = live_comm_index(process, comms[i].comm);
    struct live_call *call =
        index == INDEX_NONE
            ? NULL
            : claim_call_slot(&process->comms.at[index], comms[i].first_collective, false);
    if (!call)
      continue;
    note_newest(&process->comms.at[index], comms[i].first_collective);
    call->start = start;
    call->end = live_end_ns(record);
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
  u32 index = run->comm == TSCOPE_UNKNOWN ? INDEX_NONE : live_comm_index(process, run->comm);
  if (index != INDEX_NONE && run->seq != TSCOPE_UNKNOWN) {
    struct live_call *call = claim_call_slot(&process->comms.at[index], run->seq, true);
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
  VECTOR_PUSH(&process->runs,
              (struct live_unpaired_run){
                  .start = start, .end = end, .name = run->name, .stream = run->header.tag});
}

void live_read_comm_wait(struct live_process *process, const struct live_record *record) {
  const struct tscope_comm_wait_record *wait = (const void *)record->record;
  update_longest(process, record->start, live_end_ns(record));
  live_update_open(&process->waits, record,
                   (struct live_open){.start = record->start,
                                      .comm = live_comm_index(process, wait->comm),
                                      .seq = wait->seq});
}
