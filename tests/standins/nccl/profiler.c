/* SPDX-License-Identifier: MIT
 *
 * NCCL's interface for a profiler plugin. NCCL_PROFILER_PLUGIN names a library; STATIC_PLUGIN means
 * what is already in the process. Of its ncclProfiler_v6, v5, ... the newest is used
 * (STANDIN_NCCL_PROFILER=N: N at most, as an older NCCL would).
 *
 * Each call has an event when it is launched, which is stopped at once. The events of a group are
 * not in the order of the job's calls. From v3 on, each of CHANNELS channels has an event for the
 * run of its kernel; from v4 on with times of the GPU's global timer, which is not on the host's
 * clock.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "comm.h"
#include "nccl/profiler_abi.h"
#include "profiler_events.h"

enum { CHANNELS = 2 };

#define GLOBAL_TIMER_AHEAD_NS 1234567890123456ll

static struct {
  const struct profiler_plugin_v1 *plugin;
  int version;
  int mask;
} profiler;

static void load(void) {
  static bool done;
  const char *name = getenv("NCCL_PROFILER_PLUGIN"), *limit = getenv("STANDIN_NCCL_PROFILER");
  if (done)
    return;
  done = true;
  if (!name)
    name = "libnccl-profiler.so";
  void *library = dlopen(strcasecmp(name, "STATIC_PLUGIN") ? name : NULL, RTLD_NOW);
  for (int version = limit ? atoi(limit) : 6; library && version > 0; version--) {
    char symbol[32];
    snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
    profiler.plugin = dlsym(library, symbol);
    profiler.version = version;
    if (profiler.plugin)
      return;
  }
}

static uint64_t hash_of(const struct ncclComm *comm) {
  return strtoull(comm->identity + 16, NULL, 16);
}

void profiler_comm_begins(struct ncclComm *comm) {
  load();
  if (!profiler.plugin)
    return;
  if (profiler.version >= 5)
    ((const struct profiler_plugin_v5 *)(const void *)profiler.plugin)
        ->init(&comm->profiler, hash_of(comm), &profiler.mask, NULL, 1, comm->nranks, comm->rank,
               NULL);
  else if (profiler.version == 4)
    ((const struct profiler_plugin_v4 *)(const void *)profiler.plugin)
        ->init(&comm->profiler, &profiler.mask, NULL, hash_of(comm), 1, comm->nranks, comm->rank,
               NULL);
  else
    profiler.plugin->init(&comm->profiler, &profiler.mask);
}

void profiler_comm_ends(struct ncclComm *comm) {
  if (profiler.plugin && comm->profiler)
    profiler.plugin->finalize(comm->profiler);
}

static const char *func_of(const struct call *call) {
  static const char *const funcs[] = {"AllReduce",     "Broadcast", "Reduce", "AllGather",
                                      "ReduceScatter", "AlltoAll",  "Gather", "Scatter",
                                      "Send",          "Recv"};
  return funcs[call->kind];
}

static const char *datatype_of(const struct call *call) {
  static const char *const names[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                      "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                      "ncclFloat64", "ncclBfloat16"};
  return names[call->dtype];
}

static bool is_transfer(const struct call *call) {
  return call->kind >= CALL_SEND;
}

/* The events of all-gathers and broadcasts have the count in bytes. */
static bool in_bytes(const struct call *call) {
  return call->kind == CALL_ALLGATHER || call->kind == CALL_BROADCAST;
}

/* Small calls use LL, as in NCCL. */
static const char *protocol_of(const struct call *call) {
  return call_bytes(call) < 65536 ? "LL" : "SIMPLE";
}

static const char *algorithm_of(const struct call *call) {
  return call->kind == CALL_ALLREDUCE && call_bytes(call) < 4096 ? "TREE" : "RING";
}

static void start(struct call *call, const void *event) {
  profiler.plugin->start(call->comm->profiler, &call->profiled, event);
}

static void *start_api_event(struct call *call) {
  struct profiler_event_v5_api event = {.head.type =
                                            is_transfer(call) ? PROFILE_P2P_API : PROFILE_COLL_API};
  void *handle = NULL;
  if (profiler.version >= 5 && (profiler.mask & (PROFILE_COLL_API | PROFILE_P2P_API)))
    profiler.plugin->start(call->comm->profiler, &handle, &event);
  return handle;
}

static void start_event_v4(struct call *call) {
  struct profiler_event_v4 event = {.head.type = is_transfer(call) ? PROFILE_P2P : PROFILE_COLL,
                                    .head.parent = start_api_event(call),
                                    .head.rank = call->comm->rank};
  size_t size = in_bytes(call) ? dtype_bytes(call->dtype) : 1;
  if (is_transfer(call)) {
    event.p2p.func = func_of(call);
    event.p2p.buffer = call->kind == CALL_SEND ? (void *)(uintptr_t)call->source : call->target;
    event.p2p.datatype = datatype_of(call);
    event.p2p.count = call->count;
    event.p2p.peer = call->peer;
    event.p2p.channels = CHANNELS;
  } else {
    event.coll.sequence = call->sequence;
    event.coll.func = func_of(call);
    event.coll.send_buffer = call->source;
    event.coll.receive_buffer = call->target;
    event.coll.count = call->count * size;
    event.coll.datatype = in_bytes(call) ? "ncclInt8" : datatype_of(call);
    event.coll.channels = CHANNELS;
    event.coll.algorithm = algorithm_of(call);
    event.coll.protocol = protocol_of(call);
  }
  start(call, &event);
}

static void start_event_v3(struct call *call) {
  struct profiler_event_v3 event = {.head.type = PROFILE_COLL, .head.rank = call->comm->rank};
  event.coll.comm_hash = hash_of(call->comm);
  event.coll.func = func_of(call);
  event.coll.receive_buffer = call->target;
  event.coll.count = call->count;
  event.coll.datatype = datatype_of(call);
  event.coll.algorithm = algorithm_of(call);
  event.coll.protocol = protocol_of(call);
  start(call, &event);
}

static void start_event_v2(struct call *call) {
  struct profiler_event_v2 event = {.head.type = PROFILE_COLL, .head.rank = call->comm->rank};
  event.coll.comm_hash = hash_of(call->comm);
  event.coll.func = func_of(call);
  event.coll.receive_buffer = call->target;
  event.coll.count = call->count;
  event.coll.datatype = datatype_of(call);
  event.coll.algorithm = algorithm_of(call);
  event.coll.protocol = protocol_of(call);
  start(call, &event);
}

static void start_event_v1(struct call *call) {
  static const uint8_t funcs[] = {[CALL_ALLREDUCE] = 4,
                                  [CALL_BROADCAST] = 0,
                                  [CALL_REDUCE] = 1,
                                  [CALL_ALLGATHER] = 2,
                                  [CALL_REDUCESCATTER] = 3};
  struct profiler_event_v1 event = {.head.type = PROFILE_COLL, .head.rank = call->comm->rank};
  event.coll.comm_hash = hash_of(call->comm);
  event.coll.func = funcs[call->kind];
  event.coll.receive_buffer = call->target;
  event.coll.count = call->count;
  event.coll.datatype = (uint8_t)call->dtype;
  event.coll.algorithm = !strcmp(algorithm_of(call), "RING");
  event.coll.protocol = !strcmp(protocol_of(call), "SIMPLE") ? 2 : 0;
  start(call, &event);
}

/* Inside NCCL, all-to-all, gather and scatter are sends and receives; they have no events here. */
static bool has_event(const struct call *call) {
  return call->kind <= CALL_REDUCESCATTER || (is_transfer(call) && profiler.version >= 4);
}

void profiler_calls_launched(struct call *calls, size_t n) {
  static void (*const start_event[])(struct call *) = {start_event_v1, start_event_v2,
                                                       start_event_v3, start_event_v4,
                                                       start_event_v4, start_event_v4};
  if (!profiler.plugin || !(profiler.mask & PROFILE_COLL))
    return;
  for (size_t i = n; i-- > 0;) {
    if (!has_event(&calls[i]))
      continue;
    start_event[profiler.version - 1](&calls[i]);
    if (calls[i].profiled)
      profiler.plugin->stop(calls[i].profiled);
  }
}

/* A collective that copy engines run has an event of its own in v6, and none before. */
void profiler_copies_launched(struct call *call, cudaStream_t stream) {
  if (!profiler.plugin || profiler.version < 6 || !(profiler.mask & PROFILE_COPIES))
    return;
  size_t size = in_bytes(call) ? dtype_bytes(call->dtype) : 1;
  struct profiler_event_v6_copies event = {.head.type = PROFILE_COPIES,
                                           .head.parent = start_api_event(call),
                                           .head.rank = call->comm->rank,
                                           .sequence = call->sequence,
                                           .func = func_of(call),
                                           .send_buffer = call->source,
                                           .receive_buffer = call->target,
                                           .count = call->count * size,
                                           .root = call->peer,
                                           .datatype =
                                               in_bytes(call) ? "ncclInt8" : datatype_of(call),
                                           .synchronization = "UC",
                                           .stream = stream};
  start(call, &event);
  if (call->profiled)
    profiler.plugin->stop(call->profiled);
}

static uint64_t global_timer(int64_t instant) {
  return (uint64_t)(instant + GLOBAL_TIMER_AHEAD_NS);
}

void profiler_call_ran(const struct call *call) {
  if (!profiler.plugin || !call->profiled || !(profiler.mask & PROFILE_KERNEL_CHANNEL))
    return;
  for (int channel = 0; channel < CHANNELS; channel++) {
    struct profiler_event_v4 event = {.head.type = PROFILE_KERNEL_CHANNEL,
                                      .head.parent = call->profiled};
    event.kernel_channel.channel = (uint8_t)channel;
    if (profiler.version >= 4)
      event.kernel_channel.timer = global_timer(call->arrival);
    void *handle = NULL;
    profiler.plugin->start(call->comm->profiler, &handle, &event);
    struct profiler_state state = {.timer = global_timer(call->end)};
    if (handle && profiler.version >= 4)
      profiler.plugin->state(handle, PROFILER_KERNEL_CHANNEL_STOP, &state);
    if (handle)
      profiler.plugin->stop(handle);
  }
}
