/* SPDX-License-Identifier: MIT
 *
 * Collectives, point-to-point calls, and the groups that launch them.
 */
#include <stddef.h>

#include "callsites/call_sites.h"
#include "cuda/graphs/cuda_graphs.h"
#include "format/dtypes.h"
#include "nccl/nccl_record.h"
#include "nccl/profiler_calls.h"
#include "record/families.h"

static u32 last_group; /* numbers count from 1 over all threads */

static const u8 dtypes[] = {
    [ncclInt8] = TSCOPE_DTYPE_I8,     [ncclUint8] = TSCOPE_DTYPE_U8,
    [ncclInt32] = TSCOPE_DTYPE_I32,   [ncclUint32] = TSCOPE_DTYPE_U32,
    [ncclInt64] = TSCOPE_DTYPE_I64,   [ncclUint64] = TSCOPE_DTYPE_U64,
    [ncclFloat16] = TSCOPE_DTYPE_F16, [ncclFloat32] = TSCOPE_DTYPE_F32,
    [ncclFloat64] = TSCOPE_DTYPE_F64, [9] = TSCOPE_DTYPE_BF16,
    [10] = TSCOPE_DTYPE_F8E4M3,       [11] = TSCOPE_DTYPE_F8E5M2,
};

u8 nccl_dtype(int datatype) {
  return (unsigned)datatype < sizeof(dtypes) ? dtypes[datatype] : TSCOPE_DTYPE_UNKNOWN;
}

u64 nccl_bytes(int datatype, size_t count) {
  return count * tscope_dtype_bytes(nccl_dtype(datatype));
}

u8 nccl_redop(int op) {
  static const u8 redops[] = {[ncclSum] = TSCOPE_REDOP_SUM,
                              [ncclProd] = TSCOPE_REDOP_PROD,
                              [ncclMax] = TSCOPE_REDOP_MAX,
                              [ncclMin] = TSCOPE_REDOP_MIN,
                              [ncclAvg] = TSCOPE_REDOP_AVG};
  if (op == TSCOPE_NO_REDOP)
    return TSCOPE_REDOP_NONE;
  return (unsigned)op < sizeof(redops) ? redops[op] : TSCOPE_REDOP_OTHER;
}

u32 nccl_group_open(struct nccl_thread *nccl) {
  if (!nccl->depth)
    return 0;
  if (!nccl->group)
    nccl->group = __atomic_add_fetch(&last_group, 1, __ATOMIC_RELAXED);
  return nccl->group;
}

#define X(NAME, value, text) [value] = text,
static const char *const op_names[] = {TSCOPE_OPS(X)};
#undef X

/* What a call is to whoever times it. */
static struct event_subject subject_of(u16 op, const struct tscope_collective_record *record) {
  return (struct event_subject){.name = op_names[op], .comm = record->comm, .seq = record->seq};
}

/* A call inside a group is launched when the group ends, together with all others of its
 * communicator and stream. */
static void add_unit(struct nccl_thread *nccl, u16 op, cudaStream_t stream,
                     const struct tscope_collective_record *record) {
  for (u32 i = 0; i < nccl->n_units; i++)
    if (nccl->units[i].subject.comm == record->comm &&
        nccl->units[i].stream_index == record->stream)
      return;
  if (nccl->n_units < MAX_UNITS)
    nccl->units[nccl->n_units++] =
        (struct nccl_unit){0, subject_of(op, record), stream, record->stream};
  else
    nccl->calls_beyond++;
}

/* Needed to undo the group's calls if the group is only simulated. */
static void count_in_group(struct nccl_thread *nccl, struct communicator *communicator,
                           bool is_transfer) {
  u32 i = 0;
  while (i < nccl->n_counted && nccl->counted[i].communicator != communicator)
    i++;
  if (i == MAX_COUNTED)
    return;
  if (i == nccl->n_counted)
    nccl->counted[nccl->n_counted++] = (struct nccl_counted){.communicator = communicator};
  if (is_transfer)
    nccl->counted[i].transfers++;
  else
    nccl->counted[i].collectives++;
}

/* NCCL's own thread launches the work of a communicator that does not block. Its end is marked once
 * the job has learned that nothing is in progress any more. */
static void end_pair(struct nccl_thread *nccl, event_pair_ticket pair,
                     const struct event_subject *subject, ncclResult_t result) {
  if (TSCOPE_LIKELY(!pair))
    return;
  bool in_progress = result != ncclSuccess && nccl_accepted(result);
  if (in_progress && nccl->n_deferred < MAX_UNITS) {
    nccl->deferred[nccl->n_deferred++] = (struct nccl_deferred){pair, *subject};
    return;
  }
  event_pair_end(pair, result == ncclSuccess ? subject : NULL);
  if (in_progress)
    tscope_count_lost(TSCOPE_LOSS_GPU, 1);
}

void nccl_end_deferred(struct nccl_thread *nccl, u32 number, bool launched) {
  u32 kept = 0;
  for (u32 i = 0; i < nccl->n_deferred; i++) {
    struct nccl_deferred *deferred = &nccl->deferred[i];
    if (deferred->subject.comm != number) {
      nccl->deferred[kept++] = *deferred;
      continue;
    }
    event_pair_end(deferred->pair, launched ? &deferred->subject : NULL);
    if (!launched)
      tscope_count_lost(TSCOPE_LOSS_GPU, 1);
  }
  nccl->n_deferred = kept;
}

struct collective_call collective_begin(struct tscope_thread *thread, enum tscope_op op,
                                        const void *buffer, size_t count, ncclDataType_t datatype,
                                        int redop, int peer, ncclComm_t comm, cudaStream_t stream) {
  struct collective_call call = {.span.start = tscope_ticks()};
  struct nccl_thread *nccl = nccl_thread(thread);
  struct communicator *communicator = communicator_get(thread, comm);
  u8 dtype = nccl_dtype(datatype);
  u32 captured, index;
  thread->launches_inside = true;
  if (graph_capture_collective(stream, communicator ? communicator->number : TSCOPE_UNKNOWN,
                               communicator ? &communicator->collectives : NULL,
                               communicator ? &communicator->transfers : NULL, op >= TSCOPE_OP_SEND,
                               &captured, &index)) {
    struct tscope_graph_collective_record record = {
        .count = count,
        .bytes = count * tscope_dtype_bytes(dtype),
        .captured = captured,
        .comm = communicator ? communicator->number : TSCOPE_UNKNOWN,
        .index = index,
        .peer = peer,
        .stream = stream_index(thread, TSCOPE_STREAM_LEGACY, stream),
        .dtype = dtype,
        .redop = nccl_redop(redop),
        .group = nccl_group_open(nccl),
    };
    tscope_retain(thread, call.span.start, TSCOPE_REC_GRAPH_COLLECTIVE, (u16)op, &record,
                  sizeof(record));
    return call;
  }
  u32 *next = !communicator          ? NULL
              : op >= TSCOPE_OP_SEND ? &communicator->transfers
                                     : &communicator->collectives;
  struct tscope_collective_record record = {
      .count = count,
      .bytes = count * tscope_dtype_bytes(dtype),
      .comm = communicator ? communicator->number : TSCOPE_UNKNOWN,
      .seq = next ? __atomic_fetch_add(next, 1, __ATOMIC_RELAXED) : TSCOPE_UNKNOWN,
      .group = nccl_group_open(nccl),
      .peer = peer,
      .stream = stream_index(thread, TSCOPE_STREAM_LEGACY, stream),
      .dtype = dtype,
      .redop = nccl_redop(redop),
  };
  if (nccl->depth) {
    nccl->calls++;
    if (communicator)
      count_in_group(nccl, communicator, op >= TSCOPE_OP_SEND);
  }
  if (TSCOPE_UNLIKELY(nccl->n_deferred))
    nccl_end_deferred(nccl, record.comm, false);
  call_site(thread, &thread->retained, call.span.start, CALL_SITE_ALWAYS);
  call.span.dur = tscope_span_open(thread, call.span.start, TSCOPE_REC_COLLECTIVE, (u16)op, &record,
                                   sizeof(record));
  if (TSCOPE_UNLIKELY(__atomic_load_n(&profiler_attached, __ATOMIC_RELAXED)) && communicator &&
      communicator->size != 1)
    profiler_expect(&(struct profiler_call){
        .buffer = buffer, .bytes = record.bytes, .comm = record.comm, .seq = record.seq, .op = op});
  if (TSCOPE_LIKELY(!__atomic_load_n(&event_pairs_wanted, __ATOMIC_RELAXED)))
    return call;
  if (nccl->depth) {
    add_unit(nccl, op, stream, &record);
  } else {
    call.subject = subject_of(op, &record);
    call.pair = event_pair_begin(stream, TSCOPE_STREAM_LEGACY, record.stream);
  }
  return call;
}

struct tscope_collective_record *collective_record(const struct collective_call *call) {
  return tscope_span_record(call->span.dur);
}

void collective_end(struct tscope_thread *thread, struct collective_call *call,
                    ncclResult_t result) {
  end_pair(nccl_thread(thread), call->pair, &call->subject, result);
  struct tscope_collective_record *record = collective_record(call);
  nccl_call_end(thread, &call->span, record ? &record->result : NULL, "a collective", result);
}

void record_nccl_group_start(struct tscope_thread *thread, u64 start, ncclResult_t result) {
  (void)start;
  if (nccl_accepted(result))
    nccl_thread(thread)->depth++;
}

/* The record of the outermost group's end, if there is anything in the group. */
static void open_group_span(struct tscope_thread *thread, struct nccl_span *span, u16 tag) {
  struct nccl_thread *nccl = nccl_thread(thread);
  if (nccl->depth != 1 || (!nccl->calls && !nccl->n_pending))
    return;
  struct tscope_group_record record = {.group = nccl_group_open(nccl), .calls = nccl->calls};
  call_site(thread, &thread->retained, span->start, CALL_SITE_ALWAYS);
  span->dur = tscope_span_open(thread, span->start, TSCOPE_REC_GROUP, tag, &record, sizeof(record));
}

/* True when this was the outermost group's end. */
static bool close_group_span(struct tscope_thread *thread, struct nccl_span *span,
                             ncclResult_t result) {
  if (span->dur) {
    struct tscope_group_record *record = tscope_span_record(span->dur);
    __atomic_store_n(&record->result, (i32)result, __ATOMIC_RELAXED);
    tscope_span_close(thread, span->dur, span->start);
  }
  struct nccl_thread *nccl = nccl_thread(thread);
  return nccl->depth && !--nccl->depth;
}

struct nccl_span nccl_group_end_begin(struct tscope_thread *thread) {
  struct nccl_span span = {.start = tscope_ticks()};
  struct nccl_thread *nccl = nccl_thread(thread);
  thread->launches_inside = true;
  open_group_span(thread, &span, 0);
  for (u32 i = 0; nccl->depth == 1 && i < nccl->n_units; i++)
    nccl->units[i].pair =
        event_pair_begin(nccl->units[i].stream, TSCOPE_STREAM_LEGACY, nccl->units[i].stream_index);
  return span;
}

void nccl_group_end_end(struct tscope_thread *thread, struct nccl_span *span, ncclResult_t result) {
  struct nccl_thread *nccl = nccl_thread(thread);
  thread->launches_inside = false;
  if (!close_group_span(thread, span, result))
    return;
  for (u32 i = 0; i < nccl->n_units; i++)
    end_pair(nccl, nccl->units[i].pair, &nccl->units[i].subject, result);
  if (nccl->calls_beyond && nccl->units[0].pair) /* pairs of events are the source of GPU time */
    tscope_count_lost(TSCOPE_LOSS_GPU, nccl->calls_beyond);
  nccl->n_units = nccl->n_counted = nccl->calls_beyond = 0;
  TSCOPE_KEEP_ERRNO;
  if (!nccl_accepted(result))
    tscope_failed_call(thread, TSCOPE_FAILED_NCCL, "a group of calls", (i32)result);
  for (u32 i = 0; i < nccl->n_pending; i++)
    communicator_created(thread, &nccl->pending[i], result);
  nccl->group = nccl->calls = nccl->n_pending = 0;
}

struct nccl_span nccl_group_simulate_begin(struct tscope_thread *thread) {
  struct nccl_span span = {.start = tscope_ticks()};
  open_group_span(thread, &span, TSCOPE_GROUP_SIMULATED);
  return span;
}

/* NCCL closes the group, whatever it returns. The group's calls were never made. So the next calls
 * get their numbers, as on ranks that did not simulate. */
void nccl_group_simulate_end(struct tscope_thread *thread, struct nccl_span *span,
                             ncclResult_t result) {
  struct nccl_thread *nccl = nccl_thread(thread);
  if (!close_group_span(thread, span, result))
    return;
  for (u32 i = 0; i < nccl->n_counted; i++) {
    struct nccl_counted *counted = &nccl->counted[i];
    __atomic_fetch_sub(&counted->communicator->collectives, counted->collectives, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&counted->communicator->transfers, counted->transfers, __ATOMIC_RELAXED);
  }
  nccl->group = nccl->calls = nccl->n_pending = nccl->n_units = nccl->n_counted = 0;
  nccl->calls_beyond = 0;
}
