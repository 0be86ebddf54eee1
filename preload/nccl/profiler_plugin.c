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

static const char *const algorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

#define WORD(words, number) ((number) < LENGTH_OF(words) ? (words)[number] : NULL)

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
  for (size_t i = 0; func && i < LENGTH_OF(ops); i++)
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

static bool wants_times(void) {
  return strcmp(tscope_env.nccl_profiler, "times") == 0;
}

/* The subject of an event in v5: its parent is the event of the call. */
static char called, captured;

/* Where an event has what is read of it, in bytes; 0: it has no such thing. The first version has
 * numbers where the others have words. Later versions append to each kind of event. */
static const struct layout {
  u64 kind;
  u8 first, last; /* versions of the interface */
  u8 hash, func, buffer, count, datatype, algorithm, protocol, channels;
} layouts[] = {
    {PROFILE_COLL, 1, 1, 32, 48, 64, 72, 84, 106, 107, 0},
    {PROFILE_COLL, 2, 2, 32, 48, 64, 72, 88, 112, 120, 0},
    {PROFILE_COLL, 3, 3, 32, 48, 64, 72, 88, 104, 112, 0},
    {PROFILE_COLL, 4, 6, 0, 32, 48, 56, 72, 88, 96, 80},
    {PROFILE_P2P, 1, 3, 32, 40, 48, 64, 56, 0, 0, 0},
    {PROFILE_P2P, 4, 6, 0, 24, 32, 48, 40, 0, 0, 60},
    {PROFILE_COPIES, 6, 6, 0, 32, 48, 56, 72, 0, 80,
     0}, /* "protocol": how ranks wait for each other */
};
enum { PARENT_AT = 8, TIMER_AT = 32, COLL_API_CAPTURED_AT = 64, P2P_API_CAPTURED_AT = 56 };

static u64 word_at(const u8 *event, u32 place) {
  u64 word;
  memcpy(&word, event + place, sizeof(word));
  return word;
}

static const char *text_at(const u8 *event, u32 place) {
  return place ? (const char *)(uintptr_t)word_at(event, place) : NULL;
}

static const struct layout *layout_of(u64 kind, u8 version) {
  for (size_t i = 0; i < LENGTH_OF(layouts); i++)
    if (layouts[i].kind == kind && version >= layouts[i].first && version <= layouts[i].last)
      return &layouts[i];
  return NULL;
}

static struct profiler_call read_call(const u8 *event, const struct layout *layout, u8 version) {
  u64 count = word_at(event, layout->count);
  struct profiler_call call = {.buffer = text_at(event, layout->buffer),
                               .channels = layout->channels ? event[layout->channels] : 0};
  if (version == 1) {
    call.op = op_of_number(event[layout->func]);
    call.bytes = nccl_bytes(event[layout->datatype], count);
    call.algorithm = layout->algorithm ? WORD(algorithms, event[layout->algorithm]) : NULL;
    call.protocol = layout->protocol ? WORD(protocols, event[layout->protocol]) : NULL;
  } else {
    call.op = op_of(text_at(event, layout->func));
    call.bytes = count * bytes_of(text_at(event, layout->datatype));
    call.algorithm = known_word(text_at(event, layout->algorithm));
    call.protocol = known_word(text_at(event, layout->protocol));
  }
  return call;
}

/* A collective that copy engines run has no channels: its copies are what the GPU clock sees. */
static void *start_call(struct profiler_comm *comm, const u8 *event, u64 kind, u8 version) {
  const struct layout *layout = layout_of(kind, version);
  if (!layout)
    return NULL;
  struct profiler_call call = read_call(event, layout, version);
  if (layout->hash)
    comm = profiler_comm_by_hash(word_at(event, layout->hash));
  call.captured = version >= 5 && text_at(event, PARENT_AT) == &captured;
  if (kind == PROFILE_COPIES)
    call.algorithm = "COPY_ENGINE";
  return call.op ? profiler_call_started(comm, call, wants_times() && kind != PROFILE_COPIES)
                 : NULL;
}

static int start(void *context, void **handle, const u8 *event, u8 version) {
  u64 kind = version >= 5 ? word_at(event, 0) : event[0];
  if (version >= 5 && kind == PROFILE_COLL_API)
    *handle = event[COLL_API_CAPTURED_AT] ? &captured : &called;
  else if (version >= 5 && kind == PROFILE_P2P_API)
    *handle = event[P2P_API_CAPTURED_AT] ? &captured : &called;
  else if (version >= 3 && kind == PROFILE_KERNEL_CHANNEL)
    *handle = profiler_channel_started((void *)(uintptr_t)word_at(event, PARENT_AT),
                                       version >= 4 ? word_at(event, TIMER_AT) : 0);
  else
    *handle = start_call(context, event, kind, version);
  return 0;
}

#define START(version)                                                                             \
  static int start_v##version(void *context, void **handle, const void *event) {                   \
    return start(context, handle, event, version);                                                 \
  }
START(1)
START(2)
START(3)
START(4)
START(5)
START(6)

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
