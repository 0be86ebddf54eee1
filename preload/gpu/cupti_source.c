/* SPDX-License-Identifier: MIT
 *
 * GPU times from CUPTI's activity records. No subscription is made, so that a profiler of the
 * job's own can make its. CUPTI delivers buffers on whatever thread it likes, also on the job's.
 */
#include <stdio.h>
#include <string.h>

#include "cupti_buffers.h"
#include "cupti_decode.h"
#include "cupti_library.h"
#include "gpu_clock.h"

enum { ZEROED_OUT_ACTIVITY_BUFFER = 5, FLUSH_WHAT_IS_DONE = 0, FLUSH_ALL = 1 };

/* Kernels, copies, copies between devices, fills. Never KIND_KERNEL (3): it makes kernels run one
 * after another. The first is the one that matters. */
static const int kinds[] = {10, 1, 22, 2};

static struct cupti cupti;
static struct gpu_clock_counts totals;
static bool closed;

/* CUPTI's notion of now, in which it says all times: while it works for tscope, and as it is
 * without any client's say (cupti_activity.h). */
static uint64_t read_clock(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
static uint64_t now(void) {
  return read_clock(CLOCK_MONOTONIC);
}
static uint64_t usual_now(void) {
  return read_clock(CLOCK_REALTIME);
}

static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  *buffer = cupti_buffer_take(bytes);
  *max_records = 0; /* as many as fit */
}

static void count(u64 *total, u64 more) {
  __atomic_fetch_add(total, more, __ATOMIC_RELAXED);
}

static void count_dropped(u64 more) {
  count(&totals.dropped, more);
  tscope_lose(TSCOPE_LOSS_GPU, more);
}

static void record_one(struct tscope_thread *thread, const uint8_t *record, size_t bytes) {
  struct gpu_span span;
  if (!cupti_decode(record, bytes, &span))
    return;
  if (!span.start || span.end <= span.start) {
    count(&totals.invalid, 1);
    return;
  }
  count(&totals.seen, 1);
  gpu_span_record(thread, &span);
}

/* The next record after `record` (NULL: the first), NULL after the last. */
static uint8_t *next_record(uint8_t *buffer, size_t valid, uint8_t *record) {
  void *next = record;
  return cupti.cuptiActivityGetNextRecord(buffer, valid, &next) == 0 ? next : NULL;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)size;
  /* This thread may be in the middle of a hooked call, which called CUPTI: its state is used as it
   * is then, since no hook keeps a reservation open over the real call. */
  struct tscope_thread *self = tscope_self && tscope_is_live() ? tscope_self : NULL;
  struct tscope_thread *thread = self ? self : tscope_enter(TSCOPE_QUIET);
  bool keep = thread && !__atomic_load_n(&closed, __ATOMIC_ACQUIRE) && cupti_buffer_counts(buffer);
  uint8_t *record = valid ? next_record(buffer, valid, NULL) : NULL;
  while (record) {
    uint8_t *next = next_record(buffer, valid, record);
    if (keep)
      record_one(thread, record, (size_t)((next ? next : buffer + valid) - record));
    else
      count_dropped(1);
    record = next;
  }
  if (thread && !self)
    tscope_leave(thread);
  cupti_buffer_give(buffer, valid);
  size_t dropped = 0;
  if (cupti.cuptiActivityGetNumDroppedRecords &&
      cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0)
    count_dropped(dropped);
}

static bool refused(const char *what, int result, char *why, size_t why_bytes) {
  const char *text = NULL;
  if (cupti.cuptiGetResultString)
    cupti.cuptiGetResultString(result, &text);
  snprintf(why, why_bytes, "CUPTI refused %s: %s", what, text ? text : "no reason given");
  return false;
}

static bool open_cupti(char *why, size_t why_bytes) {
  if (!cupti_find(&cupti, why, why_bytes))
    return false;
  if (cupti_buffers_map() < 0) {
    snprintf(why, why_bytes, "no memory for CUPTI's buffers");
    return false;
  }
  closed = false;
  uint8_t yes = 1;
  size_t yes_bytes = sizeof yes;
  if (cupti.cuptiActivitySetAttribute) /* else it clears them itself, on the job's thread */
    cupti.cuptiActivitySetAttribute(ZEROED_OUT_ACTIVITY_BUFFER, &yes_bytes, &yes);
  int result = cupti.cuptiActivityRegisterTimestampCallback(now);
  if (result)
    return refused("a clock", result, why, why_bytes);
  result = cupti.cuptiActivityRegisterCallbacks(requested, completed);
  if (result)
    return refused("buffers", result, why, why_bytes);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    result = cupti.cuptiActivityEnable(kinds[i]);
    if (result && i == 0) {
      cupti.cuptiActivityRegisterTimestampCallback(usual_now);
      return refused("to record kernels", result, why, why_bytes);
    }
  }
  return true;
}

static void poll(void) {
  cupti.cuptiActivityFlushAll(FLUSH_WHAT_IS_DONE);
}

static void close_cupti(void) {
  cupti.cuptiActivityFlushAll(FLUSH_ALL);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    cupti.cuptiActivityDisable(kinds[i]);
  cupti.cuptiActivityRegisterTimestampCallback(usual_now);
  __atomic_store_n(&closed, true, __ATOMIC_RELEASE);
}

static u32 stream_id(void *stream, bool per_thread) {
  u32 id;
  if (!cupti.cuptiGetStreamIdEx || cupti.cuptiGetStreamIdEx(NULL, stream, per_thread, &id) != 0)
    return TSCOPE_UNKNOWN;
  return id;
}

static struct gpu_clock_counts counts(void) {
  return (struct gpu_clock_counts){.seen = __atomic_load_n(&totals.seen, __ATOMIC_RELAXED),
                                   .dropped = __atomic_load_n(&totals.dropped, __ATOMIC_RELAXED),
                                   .invalid = __atomic_load_n(&totals.invalid, __ATOMIC_RELAXED)};
}

const struct gpu_clock_source gpu_clock_cupti = {
    .id = TSCOPE_GPU_CLOCK_CUPTI,
    .open = open_cupti,
    .poll = poll,
    .close = close_cupti,
    .stream_id = stream_id,
    .counts = counts,
};
