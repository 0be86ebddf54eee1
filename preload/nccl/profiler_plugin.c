/* SPDX-License-Identifier: MIT
 *
 * NCCL's profiler plugin. If told to (profiler_injection.c), NCCL looks in the process for
 * ncclProfiler_v6, v5, ... It then reports to that plugin for each collective: algorithm, protocol,
 * channels, and when each channel ran by the GPU's own timer.
 *
 * The event of a collective ends when the collective is on its stream, not when the collective
 * ends. Only its kernel channels report the real end, in NCCL 2.26 and later. From v4 on they have
 * times; in v3 they say that a channel is done, but not when.
 */
#include <string.h>

#include "nccl/nccl_record.h"
#include "nccl/profiler_abi.h"
#include "nccl/profiler_calls.h"
#include "settings/env.h"

/* --- NCCL's words --- */

static const char *const algorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

#define WORD(words, number) ((number) < sizeof(words) / sizeof(*(words)) ? (words)[number] : NULL)

/* By ncclFunc_t of v1. */
static const u8 ops_by_number[] = {TSCOPE_OP_BROADCAST, TSCOPE_OP_REDUCE,
                                   TSCOPE_OP_ALLGATHER, TSCOPE_OP_REDUCE_SCATTER,
                                   TSCOPE_OP_ALLREDUCE, 0,
                                   TSCOPE_OP_SEND,      TSCOPE_OP_RECV};

static u8 op_of_number(u8 func) {
  return func < sizeof(ops_by_number) ? ops_by_number[func] : 0;
}

static u8 op_of(const char *func) {
  static const struct {
    const char *func;
    u8 op;
  } ops[] = {
      {"AllReduce", TSCOPE_OP_ALLREDUCE},
      {"Broadcast", TSCOPE_OP_BROADCAST},
      {"Reduce", TSCOPE_OP_REDUCE},
      {"AllGather", TSCOPE_OP_ALLGATHER},
      {"ReduceScatter", TSCOPE_OP_REDUCE_SCATTER},
      {"AlltoAll", TSCOPE_OP_ALLTOALL},
      {"Gather", TSCOPE_OP_GATHER},
      {"Scatter", TSCOPE_OP_SCATTER},
      {"Send", TSCOPE_OP_SEND},
      {"Recv", TSCOPE_OP_RECV},
  };
  for (size_t i = 0; func && i < sizeof(ops) / sizeof(*ops); i++)
    if (strcmp(func, ops[i].func) == 0)
      return ops[i].op;
  return 0;
}

/* "ncclFloat32" and so on; 0 if not known. */
static u32 bytes_of(const char *datatype) {
  if (!datatype)
    return 0;
  if (strstr(datatype, "loat8") || strcmp(datatype, "ncclInt8") == 0 ||
      strcmp(datatype, "ncclUint8") == 0)
    return 1;
  return strstr(datatype, "16") ? 2 : strstr(datatype, "32") ? 4 : strstr(datatype, "64") ? 8 : 0;
}

/* NCCL says "Unknown" for what has no name. */
static const char *known_word(const char *text) {
  return text && strcmp(text, "Unknown") != 0 ? text : NULL;
}

/* --- events --- */

static bool wants_times(void) {
  return strcmp(tscope_env.nccl_profiler, "times") == 0;
}

/* The subject of an event in v5: its parent is the event of the call. */
static char called, captured;

static int start_call(struct profiler_comm *comm, void **event, const struct profiler_call *call) {
  *event = call->op ? profiler_call_started(comm, *call, wants_times()) : NULL;
  return 0;
}

#define TYPE(description) (*(const u8 *)(description))

static int start_v1(void *context, void **event, const void *description) {
  const struct profiler_event_v1 *event_info = description;
  (void)context;
  *event = NULL;
  if (TYPE(event_info) == PROFILE_COLL)
    return start_call(profiler_comm_by_hash(event_info->coll.comm_hash), event,
                      &(struct profiler_call){
                          .buffer = event_info->coll.receive_buffer,
                          .bytes = nccl_bytes(event_info->coll.datatype, event_info->coll.count),
                          .op = op_of_number(event_info->coll.func),
                          .algorithm = WORD(algorithms, event_info->coll.algorithm),
                          .protocol = WORD(protocols, event_info->coll.protocol)});
  if (TYPE(event_info) == PROFILE_P2P)
    return start_call(profiler_comm_by_hash(event_info->p2p.comm_hash), event,
                      &(struct profiler_call){
                          .buffer = event_info->p2p.buffer,
                          .bytes = nccl_bytes(event_info->p2p.datatype, event_info->p2p.count),
                          .op = op_of_number(event_info->p2p.func)});
  return 0;
}

static int start_channel(void **event, void *parent, u64 timer) {
  *event = profiler_channel_started(parent, timer);
  return 0;
}

/* What an event of v2 to v4 says of its call. */
#define COLL_CALL(coll)                                                                            \
  (struct profiler_call) {                                                                         \
    .buffer = (coll).receive_buffer, .bytes = (coll).count * bytes_of((coll).datatype),            \
    .op = op_of((coll).func), .algorithm = known_word((coll).algorithm),                           \
    .protocol = known_word((coll).protocol)                                                        \
  }
#define P2P_CALL(p2p)                                                                              \
  (struct profiler_call) {                                                                         \
    .buffer = (p2p).buffer, .bytes = (p2p).count * bytes_of((p2p).datatype),                       \
    .op = op_of((p2p).func)                                                                        \
  }

static int start_v2(void *context, void **event, const void *description) {
  const struct profiler_event_v2 *event_info = description;
  (void)context;
  *event = NULL;
  if (TYPE(event_info) == PROFILE_COLL)
    return start_call(profiler_comm_by_hash(event_info->coll.comm_hash), event,
                      &COLL_CALL(event_info->coll));
  if (TYPE(event_info) == PROFILE_P2P)
    return start_call(profiler_comm_by_hash(event_info->p2p.comm_hash), event,
                      &P2P_CALL(event_info->p2p));
  return 0;
}

static int start_v3(void *context, void **event, const void *description) {
  const struct profiler_event_v3 *event_info = description;
  *event = NULL;
  if (TYPE(event_info) == PROFILE_COLL)
    return start_call(profiler_comm_by_hash(event_info->coll.comm_hash), event,
                      &COLL_CALL(event_info->coll));
  if (TYPE(event_info) == PROFILE_KERNEL_CHANNEL)
    return start_channel(event, event_info->head.parent, 0);
  return start_v2(context, event, description);
}

static int start_event_v4(struct profiler_comm *comm, void **event,
                          const struct profiler_event_v4 *event_info, bool in_graph) {
  struct profiler_call call;
  if (TYPE(event_info) == PROFILE_KERNEL_CHANNEL)
    return start_channel(event, event_info->head.parent, event_info->kernel_channel.timer);
  if (TYPE(event_info) == PROFILE_COLL) {
    call = COLL_CALL(event_info->coll);
    call.channels = event_info->coll.channels;
  } else if (TYPE(event_info) == PROFILE_P2P) {
    call = P2P_CALL(event_info->p2p);
    call.channels = event_info->p2p.channels;
  } else {
    return 0;
  }
  call.captured = in_graph;
  return start_call(comm, event, &call);
}

static int start_v4(void *context, void **event, const void *description) {
  *event = NULL;
  return start_event_v4(context, event, description, false);
}

static int start_v5(void *context, void **event, const void *description) {
  const struct profiler_event_v5_api *event_info = description;
  *event = NULL;
  if (event_info->head.type == PROFILE_COLL_API)
    *event = event_info->coll.captured ? &captured : &called;
  else if (event_info->head.type == PROFILE_P2P_API)
    *event = event_info->p2p.captured ? &captured : &called;
  else if (event_info->head.type <= UINT8_MAX)
    start_event_v4(context, event, description, event_info->head.parent == &captured);
  return 0;
}

/* A collective that copy engines run has no channels: its copies are what the GPU clock sees. */
static int start_v6(void *context, void **event, const void *description) {
  const struct profiler_event_v6_copies *copies = description;
  if (copies->head.type != PROFILE_COPIES)
    return start_v5(context, event, description);
  struct profiler_call call = {.buffer = copies->receive_buffer,
                               .bytes = copies->count * bytes_of(copies->datatype),
                               .op = op_of(copies->func),
                               .captured = copies->head.parent == &captured,
                               .algorithm = "COPY_ENGINE",
                               .protocol = known_word(copies->synchronization)};
  *event = call.op ? profiler_call_started(context, call, false) : NULL;
  return 0;
}

/* Of a collective: it is on its stream, nothing more. */
static int stop(void *event) {
  struct profiler_channel *channel = profiler_channel_of(event);
  if (channel)
    profiler_channel_stopped(channel);
  return 0;
}

static int state(void *event, int what, const struct profiler_state *arguments) {
  struct profiler_channel *channel = profiler_channel_of(event);
  if (channel && arguments && what == PROFILER_KERNEL_CHANNEL_STOP)
    profiler_channel_timer(channel, arguments->timer);
  return 0;
}

/* --- communicators --- */

static int event_mask(int version) {
  int mask = PROFILE_COLL | PROFILE_P2P;
  if (version >= 3 && wants_times())
    mask |= PROFILE_KERNEL_CHANNEL;
  if (version >= 5)
    mask |= PROFILE_COLL_API | PROFILE_P2P_API;
  if (version >= 6)
    mask |= PROFILE_COPIES;
  return mask;
}

/* If the process does not record, NCCL runs the communicator without a profiler. */
static int attach(void **context, int *mask, u64 hash, int version) {
  *context = NULL;
  *mask = 0;
  if (!tscope_is_live() || strcmp(tscope_env.nccl_profiler, "off") == 0)
    return 0;
  *context = version >= 4 ? profiler_comm_new(hash) : NULL;
  *mask = event_mask(version);
  __atomic_store_n(&profiler_attached, 1, __ATOMIC_RELAXED);
  return 0;
}

static int init_v1(void **context, int *mask) {
  return attach(context, mask, 0, 1);
}

static int init_v3(void **context, int *mask) {
  return attach(context, mask, 0, 3);
}

static int init_v4(void **context, int *mask, const char *comm_name, u64 comm_hash, int nodes,
                   int ranks, int rank, void *log) {
  (void)comm_name, (void)nodes, (void)ranks, (void)rank, (void)log;
  return attach(context, mask, comm_hash, 4);
}

static int init_v5(void **context, u64 comm_hash, int *mask, const char *comm_name, int nodes,
                   int ranks, int rank, void *log) {
  (void)comm_name, (void)nodes, (void)ranks, (void)rank, (void)log;
  return attach(context, mask, comm_hash, 5);
}

static int init_v6(void **context, u64 comm_hash, int *mask, const char *comm_name, int nodes,
                   int ranks, int rank, void *log) {
  (void)comm_name, (void)nodes, (void)ranks, (void)rank, (void)log;
  return attach(context, mask, comm_hash, 6);
}

static int finalize(void *context) {
  profiler_comm_free(context);
  return 0;
}

extern struct profiler_plugin_v1 ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern struct profiler_plugin_v4 ncclProfiler_v4;
extern struct profiler_plugin_v5 ncclProfiler_v5, ncclProfiler_v6;

TSCOPE_EXPORT struct profiler_plugin_v1 ncclProfiler_v1 = {"tscope", init_v1, start_v1,
                                                           stop,     state,   finalize};
TSCOPE_EXPORT struct profiler_plugin_v1 ncclProfiler_v2 = {"tscope", init_v1, start_v2,
                                                           stop,     state,   finalize};
TSCOPE_EXPORT struct profiler_plugin_v1 ncclProfiler_v3 = {"tscope", init_v3, start_v3,
                                                           stop,     state,   finalize};
TSCOPE_EXPORT struct profiler_plugin_v4 ncclProfiler_v4 = {"tscope", init_v4, start_v4,
                                                           stop,     state,   finalize};
TSCOPE_EXPORT struct profiler_plugin_v5 ncclProfiler_v5 = {"tscope", init_v5, start_v5,
                                                           stop,     state,   finalize};
TSCOPE_EXPORT struct profiler_plugin_v5 ncclProfiler_v6 = {"tscope", init_v6, start_v6,
                                                           stop,     state,   finalize};
