/* SPDX-License-Identifier: MIT
 *
 * The activity API of the stand-in CUPTI: records of the operations that are done, with their
 * computed times on the client's clock, in buffers that are the client's. As with the real library,
 * a record reaches the client when it flushes, or when a buffer is full.
 *
 *   STANDIN_CUPTI_WITHHOLD=1      a flush that is not forced hands over nothing while traced work
 *                                 runs, as the real one holds back buffers with records unfinished
 *   STANDIN_CUPTI_CLOCK_MISSES=1  see clock.c
 *   STANDIN_CUPTI_SILENT=1        everything succeeds and nothing is told
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_standin.h"

enum { FLUSH_AT = 16384 };

struct pending_communicator {
  struct pending_communicator *next;
  struct standin_record record;
};

static struct {
  pthread_mutex_t lock; /* one delivery at a time; never taken with the engine's lock held */
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
  pthread_cond_t many;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .many = PTHREAD_COND_INITIALIZER};

/* Guarded by the engine's lock. */
static struct pending_communicator *first, **end = &first;
static _Atomic size_t n_pending;
static size_t dropped;
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
static bool all_waits = true; /* also questions that found something unfinished */
static uint32_t last_correlation;
static uint32_t
    given_up; /* work launched until then was told as incomplete, and is not told again */
static bool worker;

/* From which to which correlation id kernels were asked for: what counts is when work is launched.
 */
static struct { uint32_t first, last; } asked[1024];
static size_t n_asked;

/* The replay that is under way, when graphs are told as a whole. */
static struct {
  struct standin_record record;
  bool open;
} replay;

static __thread struct {
  uint64_t ids[16];
  unsigned depth;
} external[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];

/* One buffer of the client's and what is in it. */
struct buffer {
  uint8_t *start;
  size_t size, used, most;
};

static bool buffer_open(struct buffer *buffer) {
  size_t most = 0;
  *buffer = (struct buffer){0};
  client.request(&buffer->start, &buffer->size, &most);
  buffer->most = most ? most : SIZE_MAX;
  if (!buffer->start || !buffer->size)
    buffer->start = NULL;
  return buffer->start != NULL;
}

static void buffer_close(struct buffer *buffer) {
  if (buffer->start)
    client.complete(NULL, 0, buffer->start, buffer->size, buffer->used);
  buffer->start = NULL;
}

/* Asked for with the first work after the one before was handed back, as the real library does: a
 * client that has given none out does not trouble to flush. Since CUDA 13 each thread that launches
 * has its own. Guarded by the engine's lock. */
static struct ahead {
  struct ahead *next;
  struct buffer buffer;
} shared_ahead, **last_ahead = &shared_ahead.next;

static struct buffer *own_ahead(void) {
  static __thread struct ahead *own;
  if (!activity_buffers_are_per_thread())
    return &shared_ahead.buffer;
  if (!own && (own = calloc(1, sizeof(*own)))) {
    *last_ahead = own;
    last_ahead = &own->next;
  }
  return own ? &own->buffer : &shared_ahead.buffer;
}

/* Of the buffers that clients have given, two that are one would overwrite each other. */
static void assert_own(const struct buffer *buffer) {
  for (const struct ahead *other = &shared_ahead; other; other = other->next)
    if (&other->buffer != buffer && other->buffer.start == buffer->start) {
      fprintf(stderr, "stand-in CUPTI: one buffer was given out twice\n");
      abort();
    }
}

static struct standin_record *append(CUpti_ActivityKind kind) {
  struct pending_communicator *pending = calloc(1, sizeof(*pending));
  if (!pending) {
    dropped++;
    return NULL;
  }
  pending->record.any.kind = kind;
  *end = pending;
  end = &pending->next;
  if (++n_pending == FLUSH_AT)
    pthread_cond_signal(&client.many);
  return &pending->record;
}

static bool was_asked_for(uint32_t correlation) {
  for (size_t i = 0; i < n_asked; i++)
    if (correlation >= asked[i].first && correlation <= asked[i].last)
      return true;
  return false;
}

static void end_replay(void) {
  struct standin_record *record = replay.open ? append(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) : NULL;
  if (record)
    record->graph = replay.record.graph;
  replay.open = false;
}

static void replay_op(const struct sim_op *op) {
  CUpti_ActivityGraphTrace2 *graph = &replay.record.graph;
  if (replay.open && graph->correlationId != op->correlation)
    end_replay();
  if (!replay.open)
    *graph = (CUpti_ActivityGraphTrace2){.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                                         .correlationId = op->correlation,
                                         .start = (uint64_t)op->start,
                                         .deviceId = (uint32_t)op->stream->device,
                                         .graphId = (uint32_t)op->graph,
                                         .contextId = 1,
                                         .streamId = op->stream->id};
  replay.open = true;
  if ((uint64_t)op->start < graph->start)
    graph->start = (uint64_t)op->start;
  if ((uint64_t)op->end > graph->end)
    graph->end = (uint64_t)op->end;
}

static void on_op(const struct sim_op *op) {
  bool kernel = op->kind == SIM_KERNEL || op->kind == SIM_COLLECTIVE;
  struct standin_record *record = NULL;
  if (op->correlation && op->correlation <= given_up)
    return;
  if (op->graph && enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]) {
    replay_op(op);
    return;
  }
  if (kernel && was_asked_for(op->correlation))
    record = append(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  else if (kernel && enabled[CUPTI_ACTIVITY_KIND_KERNEL])
    record = append(CUPTI_ACTIVITY_KIND_KERNEL);
  else if (op->kind == SIM_COPY && enabled[CUPTI_ACTIVITY_KIND_MEMCPY])
    record = append(CUPTI_ACTIVITY_KIND_MEMCPY);
  else if (op->kind == SIM_FILL && enabled[CUPTI_ACTIVITY_KIND_MEMSET])
    record = append(CUPTI_ACTIVITY_KIND_MEMSET);
  if (record)
    record_memset(record, op);
}

static bool anything_enabled(void) {
  for (unsigned kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
    if (enabled[kind])
      return true;
  return false;
}

static uint32_t event_id(const struct CUevent_st *event) {
  return (uint32_t)((uintptr_t)event >> 4);
}

static void on_record(const struct CUevent_st *event, const struct CUstream_st *stream) {
  uint32_t correlation = ++last_correlation;
  struct standin_record *record =
      enabled[CUPTI_ACTIVITY_KIND_CUDA_EVENT] ? append(CUPTI_ACTIVITY_KIND_CUDA_EVENT) : NULL;
  if (!record)
    return;
  record->event.correlationId = correlation;
  record->event.contextId = 1;
  record->event.streamId = stream->id;
  record->event.eventId = event_id(event);
#if STANDIN_CUDA_MAJOR > 12
  record->event.cudaEventSyncId = event->op->id;
#endif
}

static void on_wait(const struct CUevent_st *event, const struct CUstream_st *stream, bool host,
                    int64_t from, int64_t to) {
  uint32_t correlation = ++last_correlation;
  struct standin_record *record = enabled[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]
                                      ? append(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
                                      : NULL;
  if (!record)
    return;
  record->wait.type = !event ? stream ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE
                                      : CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE
                      : host ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE
                             : CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  record->wait.start = (uint64_t)from;
  record->wait.end = (uint64_t)to + 1; /* it took some time */
  record->wait.correlationId = correlation;
  record->wait.contextId = 1;
  record->wait.streamId = stream ? stream->id : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record->wait.cudaEventId =
      event ? event_id(event) : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
#if STANDIN_CUDA_MAJOR > 12
  record->wait.cudaEventSyncId = event && event->op ? event->op->id : 0;
#endif
}

/* Since CUDA 12.8 the real library tells of each question, unless it is told not to. */
static void on_query(const struct CUevent_st *event, cudaError_t result) {
#if STANDIN_CUDA_MAJOR > 12
  struct standin_record *record =
      enabled[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] && (all_waits || result == cudaSuccess)
          ? append(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
          : NULL;
  if (!record)
    return;
  record->wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  record->wait.start = (uint64_t)clock_now();
  record->wait.end = record->wait.start + 1;
  record->wait.correlationId = ++last_correlation;
  record->wait.contextId = 1;
  record->wait.streamId = (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record->wait.cudaEventId = event_id(event);
  record->wait.cudaEventSyncId = event->op ? event->op->id : 0;
  record->wait.returnValue = (uint32_t)result;
#else
  (void)event, (void)result;
#endif
}

static uint32_t on_launch(void) {
  uint32_t correlation = ++last_correlation;
  struct buffer *own = own_ahead();
  if (!own->start && anything_enabled() && buffer_open(own))
    assert_own(own);
  if (!enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
    return correlation;
  for (unsigned kind = 0; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; kind++) {
    unsigned depth = external[kind].depth;
    struct standin_record *record = depth ? append(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) : NULL;
    if (!record)
      continue;
    record->external.externalKind = (CUpti_ExternalCorrelationKind)kind;
    record->external.externalId = external[kind].ids[depth - 1];
    record->external.correlationId = correlation;
  }
  return correlation;
}

/* Work under way is told as it is, without times, and never again. */
static void give_up_what_runs(void) {
  for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next)
    for (const struct sim_op *op = stream->head; op; op = op->next) {
      struct standin_record *record = (op->kind == SIM_KERNEL || op->kind == SIM_COLLECTIVE) &&
                                              op->correlation > given_up &&
                                              was_asked_for(op->correlation)
                                          ? append(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
                                          : NULL;
      if (record) {
        record_memset(record, op);
        record->kernel.start = record->kernel.end = 0;
      }
    }
  given_up = last_correlation;
}

/* What delivering costs is told with the next delivery. */
static void tell_cost(int64_t from) {
  struct standin_record *record =
      enabled[CUPTI_ACTIVITY_KIND_OVERHEAD] ? append(CUPTI_ACTIVITY_KIND_OVERHEAD) : NULL;
  if (!record)
    return;
  record->overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  record->overhead.start = (uint64_t)from;
  record->overhead.end = (uint64_t)clock_now();
}

static bool traced_work_runs(void) {
  for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next)
    for (const struct sim_op *op = stream->head; op; op = op->next)
      if (op->correlation > given_up && was_asked_for(op->correlation))
        return true;
  return false;
}

/* The buffer that is out for the longest-known thread, which gets another with its next work. */
static struct buffer take_ahead(void) {
  struct buffer buffer = {0};
  for (struct ahead *ahead = &shared_ahead; ahead && !buffer.start; ahead = ahead->next) {
    buffer = ahead->buffer;
    ahead->buffer.start = NULL;
  }
  return buffer;
}

/* The first kernels of a session may be told on the wrong clock. */
static bool misses_clock(const struct standin_record *record, size_t *kernels) {
  static uint32_t session; /* the first correlation id of the one that was looked at last */
  static size_t known;
  if (record->any.kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || !n_asked)
    return false;
  if (session != asked[n_asked - 1].first)
    known = 0;
  session = asked[n_asked - 1].first;
  *kernels = ++known;
  return known <= clock_misses();
}

/* The client's lock is held, the engine's is not: the client may do as it likes in its callbacks.
 */
static void deliver(bool forced) {
  int64_t from = clock_now();
  sim_lock();
  sim_progress();
  if (!forced && n_pending < FLUSH_AT && traced_work_runs() && sim_setting("CUPTI_WITHHOLD", 0)) {
    sim_unlock();
    return;
  }
  if (forced)
    give_up_what_runs();
  end_replay();
  struct pending_communicator *at = first;
  first = NULL;
  end = &first;
  n_pending = 0;
  struct buffer buffer = {0};
  if (at || forced)
    buffer = take_ahead();
  sim_unlock();
  struct clock_map map = clock_map_now();
  size_t records = 0, lost = 0, kernels = 0;
  while (at) {
    struct pending_communicator *next = at->next;
    size_t bytes = record_bytes(at->record.any.kind);
    if (buffer.start && (buffer.used + bytes > buffer.size || records == buffer.most))
      buffer_close(&buffer);
    if (!buffer.start) {
      records = 0;
      if (client.request)
        buffer_open(&buffer);
    }
    if (buffer.start && bytes <= buffer.size) {
      if (misses_clock(&at->record, &kernels))
        record_on_usual_clock(&at->record);
      else
        record_on_client_clock(&at->record, &map);
      memcpy(buffer.start + buffer.used, &at->record, bytes);
      buffer.used += bytes;
      records++;
    } else {
      lost++;
    }
    free(at);
    at = next;
  }
  do { /* forced, all buffers go back */
    buffer_close(&buffer);
    sim_lock();
    buffer = forced ? take_ahead() : (struct buffer){0};
    sim_unlock();
  } while (buffer.start);
  sim_lock();
  dropped += lost;
  if (records)
    tell_cost(from);
  sim_unlock();
}

static void *deliver_when_many(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&client.lock);
    while (n_pending < FLUSH_AT)
      pthread_cond_wait(&client.many, &client.lock);
    deliver(false);
    pthread_mutex_unlock(&client.lock);
  }
  return NULL;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  static const struct sim_activity activity = {on_op, on_launch, on_record, on_wait, on_query};
  pthread_t thread;
  if (!request || !complete)
    return CUPTI_ERROR_INVALID_PARAMETER;
  pthread_mutex_lock(&client.lock);
  client.request = request;
  client.complete = complete;
  if (!worker && pthread_create(&thread, NULL, deliver_when_many, NULL) == 0) {
    pthread_detach(thread);
    worker = true;
  }
  pthread_mutex_unlock(&client.lock);
  sim_lock();
  sim_activity_set(&activity);
  sim_unlock();
  clock_map_now();
  return CUPTI_SUCCESS;
}

static CUptiResult enable(CUpti_ActivityKind kind, bool on) {
  if ((unsigned)kind >= CUPTI_ACTIVITY_KIND_COUNT)
    return CUPTI_ERROR_INVALID_KIND;
  if (sim_setting("CUPTI_SILENT", 0))
    return CUPTI_SUCCESS;
  sim_lock();
  sim_progress(); /* what ended before belongs to the setting before */
  bool kernels = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && on != enabled[kind];
  if (kernels && on && n_asked < sizeof(asked) / sizeof(*asked)) {
    asked[n_asked].first = last_correlation + 1;
    asked[n_asked++].last = UINT32_MAX;
  } else if (kernels && !on && n_asked) {
    asked[n_asked - 1].last = last_correlation;
  }
  enabled[kind] = on;
  sim_unlock();
  return CUPTI_SUCCESS;
}

void activity_forget(void) {
  for (int kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
    enable((CUpti_ActivityKind)kind, false);
  pthread_mutex_lock(&client.lock);
  client.request = NULL;
  client.complete = NULL;
  pthread_mutex_unlock(&client.lock);
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  return enable(kind, true);
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  return enable(kind, false);
}

CUptiResult CUPTIAPI cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  (void)context;
  return enable(kind, true);
}

CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
  (void)context;
  return enable(kind, false);
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  if (!client.request)
    return CUPTI_ERROR_INVALID_OPERATION;
  pthread_mutex_lock(&client.lock);
  deliver(flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  pthread_mutex_unlock(&client.lock);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableAllSyncRecords(uint8_t all) {
  sim_lock();
  all_waits = all;
  sim_unlock();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flag) {
  (void)context, (void)stream;
  return cuptiActivityFlushAll(flag);
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes,
                                                CUpti_Activity **record) {
  if (!buffer || !record)
    return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t *at = buffer;
  if (*record)
    at = (uint8_t *)*record + record_bytes((*record)->kind);
  if (at >= buffer + bytes)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)(void *)at;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                       size_t *n) {
  (void)context, (void)stream;
  if (!n)
    return CUPTI_ERROR_INVALID_PARAMETER;
  sim_lock();
  *n = dropped;
  dropped = 0;
  sim_unlock();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                            uint64_t id) {
  if ((unsigned)kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE || external[kind].depth == 16)
    return CUPTI_ERROR_INVALID_PARAMETER;
  external[kind].ids[external[kind].depth++] = id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                           uint64_t *last) {
  if ((unsigned)kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (!external[kind].depth)
    return CUPTI_ERROR_QUEUE_EMPTY;
  uint64_t id = external[kind].ids[--external[kind].depth];
  if (last)
    *last = id;
  return CUPTI_SUCCESS;
}
