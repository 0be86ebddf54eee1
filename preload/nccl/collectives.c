/* SPDX-License-Identifier: MIT
 *
 * Collectives, point-to-point calls, and the groups that launch them.
 */
#include <errno.h>
#include <stddef.h>

#include "families.h"
#include "nccl_record.h"

static u32 last_group; /* numbers count from 1 over all threads */

static const u8 dtypes[] = {
    [ncclInt8] = TSCOPE_DTYPE_I8,     [ncclUint8] = TSCOPE_DTYPE_U8,
    [ncclInt32] = TSCOPE_DTYPE_I32,   [ncclUint32] = TSCOPE_DTYPE_U32,
    [ncclInt64] = TSCOPE_DTYPE_I64,   [ncclUint64] = TSCOPE_DTYPE_U64,
    [ncclFloat16] = TSCOPE_DTYPE_F16, [ncclFloat32] = TSCOPE_DTYPE_F32,
    [ncclFloat64] = TSCOPE_DTYPE_F64, [9] = TSCOPE_DTYPE_BF16,
    [10] = TSCOPE_DTYPE_F8E4M3,       [11] = TSCOPE_DTYPE_F8E5M2,
};

#define X(NAME, value, text, bytes) [TSCOPE_DTYPE_##NAME] = bytes,
static const u8 dtype_bytes[] = {TSCOPE_DTYPES(X)};
#undef X

u8 nccl_dtype(int datatype) {
  return (unsigned)datatype < sizeof dtypes ? dtypes[datatype] : TSCOPE_DTYPE_UNKNOWN;
}

u8 nccl_redop(int op) {
  static const u8 redops[] = {[ncclSum] = TSCOPE_REDOP_SUM,
                              [ncclProd] = TSCOPE_REDOP_PROD,
                              [ncclMax] = TSCOPE_REDOP_MAX,
                              [ncclMin] = TSCOPE_REDOP_MIN,
                              [ncclAvg] = TSCOPE_REDOP_AVG};
  if (op == TSCOPE_NO_REDOP)
    return TSCOPE_REDOP_NONE;
  return (unsigned)op < sizeof redops ? redops[op] : TSCOPE_REDOP_OTHER;
}

u32 nccl_group_open(struct nccl_thread *nccl) {
  if (!nccl->depth)
    return 0;
  if (!nccl->group)
    nccl->group = __atomic_add_fetch(&last_group, 1, __ATOMIC_RELAXED);
  return nccl->group;
}

struct collective_call collective_begin(struct tscope_thread *thread, enum tscope_op op,
                                        size_t count, ncclDataType_t datatype, int redop, int peer,
                                        ncclComm_t comm, cudaStream_t stream) {
  struct collective_call call = {.span.start = tscope_ticks()};
  gpu_clock_start_once(thread);
  struct nccl_thread *nccl = nccl_thread(thread);
  struct communicator *communicator = communicator_get(thread, comm);
  u32 *next = !communicator          ? NULL
              : op >= TSCOPE_OP_SEND ? &communicator->transfers
                                     : &communicator->collectives;
  u8 dtype = nccl_dtype(datatype);
  struct tscope_collective_record record = {
      .count = count,
      .bytes = count * dtype_bytes[dtype],
      .comm = communicator ? communicator->number : TSCOPE_UNKNOWN,
      .seq = next ? __atomic_fetch_add(next, 1, __ATOMIC_RELAXED) : TSCOPE_UNKNOWN,
      .group = nccl_group_open(nccl),
      .peer = peer,
      .stream = stream_index(thread, TSCOPE_STREAM_LEGACY, stream),
      .dtype = dtype,
      .redop = nccl_redop(redop),
  };
  nccl->calls += nccl->depth > 0;
  call.span.dur = tscope_span_open(thread, call.span.start, TSCOPE_REC_COLLECTIVE, (u16)op, &record,
                                   sizeof record);
  return call;
}

void collective_end(struct tscope_thread *thread, struct collective_call *call,
                    ncclResult_t result) {
  if (call->span.dur && TSCOPE_UNLIKELY(result != ncclSuccess)) {
    struct tscope_collective_record *record =
        (void *)((u8 *)call->span.dur - offsetof(struct tscope_collective_record, dur));
    __atomic_store_n(&record->result, (i32)result, __ATOMIC_RELAXED);
  }
  tscope_span_close(thread, call->span.dur, call->span.start);
}

struct nccl_group_start_call nccl_group_start_begin(struct tscope_thread *thread) {
  (void)thread;
  return (struct nccl_group_start_call){0};
}

void nccl_group_start_end(struct tscope_thread *thread, struct nccl_group_start_call *call,
                          ncclResult_t result) {
  (void)call;
  if (result == ncclSuccess)
    nccl_thread(thread)->depth++;
}

struct nccl_group_end_call nccl_group_end_begin(struct tscope_thread *thread) {
  struct nccl_group_end_call call = {.span.start = tscope_ticks()};
  struct nccl_thread *nccl = nccl_thread(thread);
  if (nccl->depth == 1 && (nccl->calls || nccl->n_births)) {
    struct tscope_group_record record = {.group = nccl_group_open(nccl), .calls = nccl->calls};
    call.span.dur =
        tscope_span_open(thread, call.span.start, TSCOPE_REC_GROUP, 0, &record, sizeof record);
  }
  return call;
}

void nccl_group_end_end(struct tscope_thread *thread, struct nccl_group_end_call *call,
                        ncclResult_t result) {
  if (call->span.dur) {
    struct tscope_group_record *record =
        (void *)((u8 *)call->span.dur - offsetof(struct tscope_group_record, dur));
    __atomic_store_n(&record->result, (i32)result, __ATOMIC_RELAXED);
    tscope_span_close(thread, call->span.dur, call->span.start);
  }
  struct nccl_thread *nccl = nccl_thread(thread);
  if (!nccl->depth || --nccl->depth)
    return;
  int saved = errno;
  for (u32 i = 0; i < nccl->n_births; i++)
    communicator_born(thread, &nccl->births[i], result);
  nccl->group = nccl->calls = nccl->n_births = 0;
  errno = saved;
}
