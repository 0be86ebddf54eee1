/* SPDX-License-Identifier: MIT
 *
 * GPU times from CUPTI's activity records. tscope makes no subscription, so that the job's own
 * profiler can make one; cupti_clients.c handles such a profiler. CUPTI delivers buffers on any
 * thread, also on the job's threads.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/cupti_buffers.h"
#include "gpu/cupti_clients.h"
#include "gpu/cupti_clock.h"
#include "gpu/cupti_decode.h"
#include "gpu/cupti_library.h"
#include "gpu/gpu_spans.h"
#include "record/atomics.h"
#include "record/tick_clock.h"
#include "settings/env.h"
#include "streams/stream_numbers.h"

/* CUPTI's buffers in device memory, each of 3 MB and for 100,000 kernels that are not done. By
 * default it may take 250. CUPTI 13.0 really does, which is a gigabyte of the job's memory, because
 * kernels of graphs never free their place (parcagpu issue 23). */
static const size_t max_device_buffers = 32;

struct gpu_clock_timeouts gpu_clock_timeouts = {.silence_ns = 30000000000,
                                                .held_back_ns = 180000000000};

static u64 timeout(const u64 *of) {
  return __atomic_load_n(of, __ATOMIC_RELAXED);
}

enum { MAX_UNTIMED = 20000 }; /* in a row; fewer than this run at the end of a session */

/* Never KERNEL (3): it makes kernels run one after another. Never SYNCHRONIZATION (38): it makes
 * each call of CUDA take 0.2 us longer, also after it is disabled (H100, CUPTI 13.0). The hooks see
 * who waits for what. The first kind is the essential one, the last one is for graphs as a whole.
 */
static const int kinds[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY,
                            CUPTI_KIND_MEMCPY2,           CUPTI_KIND_MEMSET,
                            CUPTI_KIND_OVERHEAD,          CUPTI_KIND_GRAPH_TRACE};

static size_t n_kinds(void) {
  bool whole_graphs = strcmp(tscope_env.gpu_graphs, "whole") == 0;
  return LENGTH_OF(kinds) - !whole_graphs;
}

static struct cupti cupti;
static struct gpu_clock_counts totals;
static struct { u64 ns, times; } overhead[8]; /* by enum tscope_gpu_overhead */
static bool closed;
static u64 opened_ns, delivered_ns; /* CLOCK_MONOTONIC: opened; last delivered a record */
static u64 silent_since_ns;         /* 0: it has reported work */
static u32 untimed_in_a_row;
static size_t device_buffers_before; /* the limit that was set, 0 if not known */

static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  *buffer = cupti_buffer_acquire(bytes);
  *max_records = 0; /* as many as fit */
}

static void add_overhead(const struct cupti_record *record) {
  if (record->type >= LENGTH_OF(overhead) || record->span.end < record->span.start)
    return;
  tscope_atomic_add(&overhead[record->type].ns, record->span.end - record->span.start);
  tscope_atomic_add(&overhead[record->type].times, 1);
}

/* CUPTI has reported work, with times or without. */
static void count_report(bool times) {
  __atomic_store_n(&silent_since_ns, 0, __ATOMIC_RELAXED);
  if (times)
    __atomic_store_n(&untimed_in_a_row, 0, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(&untimed_in_a_row, 1, __ATOMIC_RELAXED);
}

static void record_work(struct tscope_thread *thread, const struct gpu_span *span) {
  bool timed = span->start && span->end > span->start;
  count_report(timed);
  if (!timed) {
    tscope_atomic_add(&totals.invalid, 1);
    return;
  }
  tscope_atomic_add(&totals.seen, 1);
  gpu_span_record(thread, span);
}

static void record_activity(struct tscope_thread *thread, const struct cupti_clock *clock,
                            const uint8_t *bytes, size_t length) {
  struct cupti_record record;
  if (!cupti_decode(bytes, length, &record))
    return;
  struct gpu_span *span = &record.span;
  if (record.kind == CUPTI_WORK && !span->start && !span->end) { /* given up before it was done */
    gpu_clock_dropped(&totals, 1);
    count_report(false);
    return;
  }
  span->start = span->start ? cupti_clock_ns(clock, span->start) : 0;
  span->end = span->end ? cupti_clock_ns(clock, span->end) : 0;
  if (record.kind == CUPTI_WORK)
    record_work(thread, span);
  else
    add_overhead(&record);
}

/* The next record after `record` (NULL: the first), NULL after the last. */
static uint8_t *next_record(uint8_t *buffer, size_t valid, uint8_t *record) {
  void *next = record;
  return cupti.cuptiActivityGetNextRecord(buffer, valid, &next) == 0 ? next : NULL;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  /* This thread may be in the middle of a hooked call that called CUPTI. Its state can still be
   * used, since no hook keeps a reservation open during the real call. */
  struct tscope_thread *self = tscope_self && tscope_is_live() ? tscope_self : NULL;
  struct tscope_thread *thread = self ? self : tscope_enter(TSCOPE_QUIET);
  enum cupti_buffer kind = cupti_buffer_kind(buffer);
  bool keep =
      thread && !__atomic_load_n(&closed, __ATOMIC_ACQUIRE) && kind != CUPTI_BUFFER_DISCARDED;
  struct cupti_clock clock = cupti_clock_read();
  uint8_t *record = valid ? next_record(buffer, valid, NULL) : NULL;
  if (record)
    __atomic_store_n(&delivered_ns, tscope_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
  while (record) {
    uint8_t *next = next_record(buffer, valid, record);
    if (keep)
      record_activity(thread, &clock, record, (size_t)((next ? next : buffer + valid) - record));
    else
      gpu_clock_dropped(&totals, 1);
    record = next;
  }
  if (thread && !self)
    tscope_leave(thread);
  if (kind == CUPTI_BUFFER_FOREIGN) /* CUPTI got it from the job's client, and had not filled it */
    cupti_client_return_buffer(context, stream, buffer, size);
  cupti_buffer_release(buffer, valid);
  size_t dropped = 0;
  if (cupti.cuptiActivityGetNumDroppedRecords &&
      cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0)
    gpu_clock_dropped(&totals, dropped);
}

static bool set_refusal(const char *what, int result, char *why, size_t why_bytes) {
  const char *text = NULL;
  if (cupti.cuptiGetResultString)
    cupti.cuptiGetResultString(result, &text);
  snprintf(why, why_bytes, "CUPTI refused %s: %s", what, text ? text : "no reason given");
  return false;
}

/* Enables all kinds; false, with the reason, if kernels are refused. A kind that this version does
 * not know is left out. */
static bool enable_kinds(char *why, size_t why_bytes) {
  for (size_t i = 0; i < n_kinds(); i++) {
    int result = cupti.cuptiActivityEnable(kinds[i]);
    if (result && i == 0)
      return set_refusal("to record kernels", result, why, why_bytes);
  }
  return true;
}

static void disable_kinds(void) {
  for (size_t i = 0; i < n_kinds(); i++)
    if (!cupti_client_wants(kinds[i]))
      cupti.cuptiActivityDisable(kinds[i]);
}

bool cupti_source_wants(int kind) {
  for (size_t i = 0; i < n_kinds(); i++)
    if (kinds[i] == kind)
      return true;
  return false;
}

/* Sets how much of the device's memory CUPTI may take; returns the previous limit, 0 if not
 * known. */
static size_t limit_device_buffers(size_t limit) {
  size_t before = 0, bytes = sizeof(before);
  if (!cupti.cuptiActivityGetAttribute || !cupti.cuptiActivitySetAttribute ||
      cupti.cuptiActivityGetAttribute(CUPTI_DEVICE_BUFFER_POOL_LIMIT, &bytes, &before))
    return 0;
  bytes = sizeof(limit);
  cupti.cuptiActivitySetAttribute(CUPTI_DEVICE_BUFFER_POOL_LIMIT, &bytes, &limit);
  return before;
}

static void apply_settings(void) {
  uint8_t yes = 1;
  size_t yes_bytes = sizeof(yes);
  if (cupti.cuptiActivitySetAttribute) /* else it clears them itself, on the job's thread */
    cupti.cuptiActivitySetAttribute(CUPTI_ZEROED_OUT_ACTIVITY_BUFFER, &yes_bytes, &yes);
  device_buffers_before = limit_device_buffers(max_device_buffers);
}

static void undo_settings(void) {
  if (device_buffers_before)
    limit_device_buffers(device_buffers_before);
  cupti_client_restore(&cupti);
}

static bool start_session(char *why, size_t why_bytes) {
  cupti_client_flush(&cupti); /* another client's records go to that client, before ours come */
  apply_settings();
  cupti_clock_begin(&cupti);
  int result = cupti.cuptiActivityRegisterCallbacks(requested, completed);
  if (result)
    return set_refusal("buffers", result, why, why_bytes);
  return enable_kinds(why, why_bytes);
}

static bool open_cupti(char *why, size_t why_bytes) {
  if (!cupti_find(&cupti, why, why_bytes))
    return false;
  if (cupti_buffers_map() < 0) {
    snprintf(why, why_bytes, "no memory for CUPTI's buffers");
    return false;
  }
  opened_ns = tscope_clock_ns(CLOCK_MONOTONIC);
  __atomic_store_n(&delivered_ns, opened_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&silent_since_ns,
                   __atomic_load_n(&totals.seen, __ATOMIC_RELAXED) ? 0 : opened_ns,
                   __ATOMIC_RELAXED);
  __atomic_store_n(&closed, false, __ATOMIC_RELEASE);
  if (start_session(why, why_bytes))
    return true;
  __atomic_store_n(&closed, true, __ATOMIC_RELEASE);
  undo_settings();
  return false;
}

/* Work comes in thousands of records, and its cost in dozens. The cost is recorded as totals. */
static void record_overhead(struct tscope_thread *thread) {
  static u64 reported[LENGTH_OF(overhead)];
  for (u16 i = 0; i < LENGTH_OF(overhead); i++) {
    u64 times = __atomic_load_n(&overhead[i].times, __ATOMIC_RELAXED);
    struct tscope_gpu_overhead_record record = {
        .ns = __atomic_load_n(&overhead[i].ns, __ATOMIC_RELAXED), .times = times};
    if (__atomic_exchange_n(&reported[i], times, __ATOMIC_RELAXED) != times)
      tscope_retain(thread, tscope_ticks(), TSCOPE_REC_GPU_OVERHEAD, i, &record, sizeof(record));
  }
}

static bool has_passed(const u64 *since, u64 ns) {
  u64 then = __atomic_load_n(since, __ATOMIC_RELAXED);
  return then && tscope_clock_ns(CLOCK_MONOTONIC) - then > ns;
}

/* CUPTI holds a buffer back while any work in it runs. In a job that hangs, that is all the work
 * that ran before. A forced flush delivers it, and gives up the times of what still runs. */
static void poll(struct tscope_thread *thread) {
  cupti_clock_update(&cupti);
  cupti.cuptiActivityFlushAll(CUPTI_FLUSH_COMPLETED);
  if (has_passed(&delivered_ns, timeout(&gpu_clock_timeouts.held_back_ns)) ||
      has_passed(&silent_since_ns, timeout(&gpu_clock_timeouts.silence_ns))) {
    __atomic_store_n(&delivered_ns, tscope_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
    cupti.cuptiActivityFlushAll(CUPTI_FLUSH_ALL);
  }
  if (thread)
    record_overhead(thread);
}

/* CUPTI may open and then report nothing (some virtual GPUs, confidential computing, a driver that
 * it does not know), or report impossible times. */
static const char *failed(void) {
  if (__atomic_load_n(&untimed_in_a_row, __ATOMIC_RELAXED) >= MAX_UNTIMED)
    return "CUPTI's times are not valid any more";
  if (!has_passed(&silent_since_ns, timeout(&gpu_clock_timeouts.silence_ns)) ||
      !__atomic_load_n(&gpu_clock_kernels_launched, __ATOMIC_RELAXED))
    return NULL;
  return "CUPTI delivers no records, though kernels were launched";
}

/* The times of work that still runs are given up: later they would go to another client. A process
 * that ends needs only the flush; CUDA 13.0 could deadlock when kernels are disabled. */
static void close_cupti(bool process_ends) {
  if (!process_ends)
    disable_kinds();
  cupti.cuptiActivityFlushAll(CUPTI_FLUSH_ALL);
  __atomic_store_n(&closed, true, __ATOMIC_RELEASE);
  if (!process_ends)
    undo_settings();
}

static void set_paused(bool paused) {
  char why[128];
  if (paused)
    disable_kinds();
  else
    enable_kinds(why, sizeof(why));
}

static void *current_context(void) {
  int (*get_current)(void **) = DRIVER_FUNCTION("cuCtxGetCurrent");
  void *context = NULL;
  return get_current && !get_current(&context) ? context : NULL;
}

/* The handles of the default streams (1, 2) belong to the driver. CUPTI is queried for them with no
 * stream and a flag for per-thread default streams. It then needs the context, or it finds no
 * stream (CUPTI 13.0 on an H100); other streams are found without. */
static u32 stream_id(void *stream, bool per_thread) {
  u32 id;
  void *context = NULL;
  if ((uintptr_t)stream <= TSCOPE_STREAM_PER_THREAD) {
    stream = NULL;
    context = current_context();
  }
  if (!cupti.cuptiGetStreamIdEx || cupti.cuptiGetStreamIdEx(context, stream, per_thread, &id) != 0)
    return TSCOPE_UNKNOWN;
  return id;
}

static u32 graph_id(void *executable) {
  u32 id;
  if (!cupti.cuptiGetGraphExecId || cupti.cuptiGetGraphExecId(executable, &id) != 0 || !id)
    return TSCOPE_UNKNOWN;
  return id;
}

const struct gpu_clock_source gpu_clock_cupti = {
    .id = TSCOPE_GPU_CLOCK_CUPTI,
    .open = open_cupti,
    .poll = poll,
    .ticks_per_poll = 5, /* a compromise: half-empty buffers cost something, and a killed process
                            loses what was not flushed */
    .pause = set_paused,
    .close = close_cupti,
    .failed = failed,
    .stream_id = stream_id,
    .graph_id = graph_id,
    .totals = &totals,
};
