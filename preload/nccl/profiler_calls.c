/* SPDX-License-Identifier: MIT */
#include "nccl/profiler_calls.h"

#include <stddef.h>

#include "record/atomics.h"
#include "record/lock.h"

enum { EXPECTED = 1024, COMMS = 256, SPANS = 8192, CHANNELS = 16384 };

u8 profiler_attached;

static struct profiler_comm comms[COMMS];

struct profiler_comm *profiler_comm_new(u64 hash) {
  for (u32 i = 0; i < COMMS; i++) {
    u32 none = 0;
    if (__atomic_compare_exchange_n(&comms[i].in_use, &none, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      comms[i].number = TSCOPE_UNKNOWN;
      __atomic_store_n(&comms[i].hash, hash, __ATOMIC_RELEASE);
      return &comms[i];
    }
  }
  return NULL;
}

struct profiler_comm *profiler_comm_by_hash(u64 hash) {
  for (u32 i = 0; i < COMMS; i++)
    if (__atomic_load_n(&comms[i].in_use, __ATOMIC_RELAXED) &&
        __atomic_load_n(&comms[i].hash, __ATOMIC_ACQUIRE) == hash)
      return &comms[i];
  return profiler_comm_new(hash);
}

void profiler_comm_free(struct profiler_comm *comm) {
  if (comm)
    __atomic_store_n(&comm->in_use, 0, __ATOMIC_RELEASE);
}

/* Calls that the job's hook has seen and NCCL has not reported yet, those of the open groups: a
 * ring in their order, in which op 0 marks a call that was joined. In a full one the oldest never
 * ran as collectives (a communicator of one rank copies). */
static struct profiler_call expected[EXPECTED];
static u32 n_expected; /* ever */
static u32 oldest;     /* all before it were joined */
static struct tscope_lock expected_lock;

void profiler_expect(const struct profiler_call *call) {
  if (!tscope_lock(&expected_lock))
    return;
  if (n_expected - oldest == EXPECTED)
    oldest++;
  expected[n_expected++ % EXPECTED] = *call;
  tscope_unlock(&expected_lock);
}

static bool matches(const struct profiler_comm *comm, const struct profiler_call *wanted,
                    const struct profiler_call *call) {
  return call->op == wanted->op && call->buffer == wanted->buffer &&
         (!call->bytes || !wanted->bytes || call->bytes == wanted->bytes) &&
         (!comm || comm->number == TSCOPE_UNKNOWN || comm->number == call->comm);
}

/* Finds the oldest call that matches, and with it the communicator's number. NCCL runs the calls of
 * a group in its own order; their buffers distinguish them. */
static void match_call(struct profiler_comm *comm, struct profiler_call *call) {
  call->comm = comm ? comm->number : TSCOPE_UNKNOWN;
  call->seq = TSCOPE_UNKNOWN;
  if (!tscope_lock(&expected_lock))
    return;
  for (u32 i = oldest; i != n_expected; i++) {
    struct profiler_call *found = &expected[i % EXPECTED];
    if (!matches(comm, call, found))
      continue;
    call->comm = found->comm;
    call->seq = found->seq;
    if (comm)
      comm->number = found->comm;
    found->op = 0;
    break;
  }
  while (oldest != n_expected && !expected[oldest % EXPECTED].op)
    oldest++;
  tscope_unlock(&expected_lock);
}

struct profiler_span {
  struct tscope_collective_inside_record
      *record; /* its retained record, which is kept until the end */
  u64 start;
};

struct profiler_channel {
  struct profiler_span *span;
  u64 start;
};

/* Rings: NCCL has fewer calls than this in progress at once. */
static struct profiler_span spans[SPANS];
static struct profiler_channel channels[CHANNELS];

/* NCCL calls these functions from within hooked calls, where tscope_enter() refuses a second
 * recording, and from its own threads. No reservation is open while a hook's real function runs. */
static struct tscope_thread *enter_thread(bool *entered, struct tscope_guard *guard) {
  struct tscope_thread *thread = tscope_self;
  *entered = !thread;
  if (thread)
    return tscope_is_live() ? thread : NULL;
  return tscope_enter_for(TSCOPE_QUIET, guard);
}

struct profiler_span *profiler_call_started(struct profiler_comm *comm, struct profiler_call call,
                                            bool timed) {
  static u32 next;
  bool entered;
  struct tscope_guard guard;
  match_call(comm, &call);
  if (call.op >= TSCOPE_OP_SEND && call.seq == TSCOPE_UNKNOWN && !call.captured)
    return NULL;
  struct tscope_thread *thread = enter_thread(&entered, &guard);
  if (!thread)
    return NULL;
  struct profiler_span *span = &spans[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % SPANS];
  struct tscope_collective_inside_record record = {
      .comm = call.comm,
      .seq = call.seq,
      .algorithm = tscope_string(thread, call.algorithm),
      .protocol = tscope_string(thread, call.protocol),
      .channels = call.channels,
      .captured = call.captured,
  };
  span->start = tscope_ticks();
  u64 *dur = tscope_span_open(thread, span->start, TSCOPE_REC_COLLECTIVE_INSIDE, call.op, &record,
                              sizeof(record));
  span->record = tscope_span_record(dur);
  if (dur && !timed)
    __atomic_store_n(dur, 0, __ATOMIC_RELEASE);
  if (entered)
    tscope_leave(thread);
  return span->record ? span : NULL;
}

struct profiler_channel *profiler_channel_started(struct profiler_span *span, u64 timer) {
  static u32 next;
  if (span < spans || span >= spans + SPANS)
    return NULL;
  struct profiler_channel *channel =
      &channels[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % CHANNELS];
  *channel = (struct profiler_channel){.span = span, .start = timer};
  return channel;
}

struct profiler_channel *profiler_channel_of(void *handle) {
  struct profiler_channel *channel = handle;
  return channel >= channels && channel < channels + CHANNELS ? channel : NULL;
}

static void atomic_min(u64 *least, u64 value) {
  u64 seen = __atomic_load_n(least, __ATOMIC_RELAXED);
  while (
      (!seen || value < seen) &&
      !__atomic_compare_exchange_n(least, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

/* The span ends when its last channel ends. It is not known before which channel is the last, so
 * each one writes the end so far. */
void profiler_channel_timer(struct profiler_channel *channel, u64 timer) {
  struct tscope_collective_inside_record *record = channel->span->record;
  if (!record || !tscope_is_live())
    return;
  if (channel->start)
    atomic_min(&record->gpu_start, channel->start);
  tscope_atomic_max(&record->gpu_stop, timer);
}

void profiler_channel_stopped(struct profiler_channel *channel) {
  struct tscope_collective_inside_record *record = channel->span->record;
  if (!record || !tscope_is_live())
    return;
  u64 dur = (tscope_ticks() - channel->span->start) >> tscope_tick_shift;
  __atomic_fetch_add(&record->channels_seen, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&record->dur, dur, __ATOMIC_RELEASE);
}
