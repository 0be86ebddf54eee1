/* SPDX-License-Identifier: MIT
 *
 * Gloo collectives. A method of ProcessGroupGloo (the call) makes a piece of work and queues it;
 * a worker thread of the group runs it; someone waits for it, or for its future. One table finds
 * the collective again by the work's address on all three.
 */
#include "callsites/call_sites.h"
#include "hooks/handle_map.h"
#include "torch/gloo_comm.h"
#include "torch/torch_family.h"
#include "torch/torch_record.h"
#include "torch/torch_version.h"

/* The work under way: by its address communicator << 32 | sequence, with TSCOPE_TRANSFER for sends
 * and receives, which are counted apart. */
HANDLE_MAP(under_way, 1 << 12);

/* If there is no room, the work stays unknown: its run is then recorded without communicator and
 * sequence, and waits for it are lost. */
static void add_work(const void *work, u32 comm, u32 seq) {
  if (!handle_map_put(&under_way, (u64)(uintptr_t)work, (u64)comm << 32 | seq))
    tscope_count_lost(TSCOPE_LOSS_GROUPS, 1);
}

static bool find_work(const void *work, u32 *comm, u32 *seq) {
  u64 collective;
  if (!handle_map_get(&under_way, (u64)(uintptr_t)work, &collective))
    return false;
  *comm = (u32)(collective >> 32);
  *seq = (u32)collective;
  return true;
}

/* enum c10d::OpType */
static enum tscope_op op_of(u8 type) {
  static const u8 ops[] = {
      TSCOPE_OP_BROADCAST,      TSCOPE_OP_ALLREDUCE,      TSCOPE_OP_ALLREDUCE,
      TSCOPE_OP_REDUCE,         TSCOPE_OP_ALLGATHER,      TSCOPE_OP_ALLGATHER,
      TSCOPE_OP_ALLGATHER,      TSCOPE_OP_GATHER,         TSCOPE_OP_SCATTER,
      TSCOPE_OP_REDUCE_SCATTER, TSCOPE_OP_ALLTOALL,       TSCOPE_OP_ALLTOALL,
      TSCOPE_OP_SEND,           TSCOPE_OP_RECV,           TSCOPE_OP_RECV,
      TSCOPE_OP_BARRIER,        TSCOPE_OP_REDUCE_SCATTER, 0,
      TSCOPE_OP_ALLREDUCE,      TSCOPE_OP_REDUCE_SCATTER, TSCOPE_OP_ALLGATHER,
  };
  return type < sizeof(ops) ? ops[type] : 0;
}

/* enum c10d::ReduceOp::RedOpType */
static enum tscope_redop redop_of(u8 type) {
  static const u8 redops[] = {TSCOPE_REDOP_SUM, TSCOPE_REDOP_AVG, TSCOPE_REDOP_PROD,
                              TSCOPE_REDOP_MIN, TSCOPE_REDOP_MAX};
  return type < sizeof(redops) ? redops[type] : TSCOPE_REDOP_OTHER;
}

static void read_options(struct tscope_collective_record *record, enum torch_options shape,
                         const char *options) {
  bool reduces = shape == REDUCES || shape == REDUCES_ROOTED;
  record->peer = -1;
  record->redop = reduces ? TSCOPE_REDOP_OTHER : TSCOPE_REDOP_NONE;
  if (!options || !torch_has_call_options())
    return;
  if (reduces)
    record->redop = redop_of(((const u8 *)options)[16]);
  if (shape == ROOTED || shape == REDUCES_ROOTED)
    record->peer = (i32) * (const i64 *)(options + (shape == ROOTED ? 0 : 32));
}

static void read_tensors(struct tscope_collective_record *record, enum torch_tensors shape,
                         const void *tensors) {
  struct torch_count count = torch_count_tensors(shape, tensors);
  record->count = count.elements;
  record->bytes = count.bytes;
  record->dtype = count.dtype;
}

void call_begin(struct torch_scope *scope, enum torch_tensors tensors_shape, const void *tensors,
                enum torch_options options_shape, const void *options) {
  torch_scope_push(scope, SCOPE_CALL);
  scope->tensors_shape = (u8)tensors_shape;
  scope->tensors = tensors;
  scope->options_shape = (u8)options_shape;
  scope->options = options;
  scope->start = tscope_ticks();
}

/* Opens the COLLECTIVE record; its span is the call's, or the queueing alone where the call is not
 * known. */
static void record_enqueue(struct tscope_thread *thread, struct torch_scope *scope,
                           const void *group, const void *work) {
  u8 type = torch_op_type(work);
  struct gloo_comm *comm = op_of(type) ? gloo_comm_of(thread, group) : NULL;
  if (!comm)
    return;
  struct torch_scope *call = torch_scope_around(scope);
  bool in_call = call && call->kind == SCOPE_CALL && !call->dur;
  struct tscope_collective_record record = {
      .comm = comm->number,
      .seq = __atomic_fetch_add(&comm->collectives, 1, __ATOMIC_RELAXED),
      .stream = TSCOPE_NO_STREAM,
      .peer = -1,
  };
  struct torch_scope *spanning = scope;
  if (in_call) {
    spanning = call;
    read_options(&record, call->options_shape, call->options);
    read_tensors(&record, call->tensors_shape, call->tensors);
    if (op_of(type) == TSCOPE_OP_ALLTOALL && comm->size) {
      record.count /= comm->size; /* for each rank, as NCCL counts it */
      record.bytes /= comm->size;
    }
  } else {
    scope->start = tscope_ticks();
  }
  add_work(work, record.comm, record.seq);
  spanning->thread = thread;
  call_site(thread, &thread->retained, spanning->start, CALL_SITE_ALWAYS);
  spanning->dur = tscope_span_open(thread, spanning->start, TSCOPE_REC_COLLECTIVE, (u16)op_of(type),
                                   &record, sizeof(record));
  struct torch_scope *bucket = torch_scope_find(SCOPE_BUCKET);
  if (bucket) {
    bucket->comm = record.comm;
    bucket->seq = record.seq;
  }
}

void enqueue_begin(struct torch_scope *scope, const void *group, const void *work) {
  torch_scope_push(scope, SCOPE_PLAIN);
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  if (!thread)
    return;
  record_enqueue(thread, scope, group, *(const void *const *)work);
  tscope_leave(thread);
}

/* A send or receive has no worker: gloo's own thread moves the data, and only the call and the
 * wait are seen. */
void transfer_begin(struct torch_scope *scope, enum tscope_op op, const void *group,
                    const void *tensors, int peer, void *result) {
  torch_scope_push(scope, SCOPE_PLAIN);
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  if (!thread)
    return;
  struct gloo_comm *comm = gloo_comm_of(thread, group);
  if (comm) {
    struct tscope_collective_record record = {
        .comm = comm->number,
        .seq = __atomic_fetch_add(&comm->transfers, 1, __ATOMIC_RELAXED),
        .stream = TSCOPE_NO_STREAM,
        .peer = peer,
    };
    read_tensors(&record, TENSORS, tensors);
    scope->thread = thread;
    scope->comm = comm->number;
    scope->seq = record.seq | TSCOPE_TRANSFER;
    scope->result = result;
    scope->start = tscope_ticks();
    call_site(thread, &thread->retained, scope->start, CALL_SITE_ALWAYS);
    scope->dur = tscope_span_open(thread, scope->start, TSCOPE_REC_COLLECTIVE, (u16)op, &record,
                                  sizeof(record));
  }
  tscope_leave(thread);
}

void transfer_end(struct torch_scope *scope) {
  torch_scope_pop(scope);
  if (scope->thread && tscope_is_live()) /* *result is an intrusive_ptr<Work> */
    add_work(*(void **)scope->result, scope->comm, scope->seq);
}

void run_begin(struct torch_scope *scope, const void *work) {
  torch_scope_push(scope, SCOPE_RUN);
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  struct tscope_collective_run_record record = {
      .comm = TSCOPE_UNKNOWN, .seq = TSCOPE_UNKNOWN, .name = torch_family.gloo_run};
  find_work(*(const void *const *)work, &record.comm, &record.seq);
  scope->thread = thread;
  scope->start = tscope_ticks();
  scope->dur = tscope_span_open(thread, scope->start, TSCOPE_REC_COLLECTIVE_RUN, TSCOPE_NO_STREAM,
                                &record, sizeof(record));
  tscope_leave(thread);
}

/* Work that is not in the table is another backend's, whose waits are on the GPU. A barrier that
 * waits for the work queued before it does so while it runs: that is part of its run. */
void wait_begin(struct torch_scope *scope, const void *self) {
  bool in_run = torch_scope_find(SCOPE_RUN) != NULL;
  torch_scope_push(scope, SCOPE_PLAIN);
  struct tscope_comm_wait_record record = {0};
  if (in_run || !find_work(self, &record.comm, &record.seq))
    return;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  torch_wait_open(thread, scope, record.comm, record.seq);
  tscope_leave(thread);
}

void polled_after(bool done, const void *self) {
  u32 comm, seq;
  if (!tscope_self || !tscope_is_live() || !find_work(self, &comm, &seq))
    return;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  polls_note(thread, self, comm, seq, done);
  tscope_leave(thread);
}

/* The address will be another piece of work's. */
void forget_begin(struct torch_scope *scope, const void *self) {
  torch_scope_push(scope, SCOPE_PLAIN);
  u64 collective;
  handle_map_remove(&under_way, (u64)(uintptr_t)self, &collective);
}
