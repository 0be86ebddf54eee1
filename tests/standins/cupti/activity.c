/* SPDX-License-Identifier: MIT
 *
 * The activity API of the stand-in CUPTI: records of completed operations, with their computed
 * times on the client's clock, in the client's buffers. As with the real library, the client gets a
 * record when it flushes, or when a buffer is full.
 *
 *   STANDIN_CUPTI_WITHHOLD=1      a flush that is not forced delivers nothing while traced work
 *                                 runs: the real library keeps buffers with unfinished records
 *   STANDIN_CUPTI_CLOCK_MISSES=1  see clock.c
 *   STANDIN_CUPTI_SILENT=1        every call succeeds, but no record is made
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_standin.h"

enum { FLUSH_AT = 16384 };

struct pending_record {
  struct pending_record *next;
  struct standin_record record;
};

static struct {
  pthread_mutex_t lock; /* one delivery at a time; never taken with the engine's lock held */
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
  pthread_cond_t many;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .many = PTHREAD_COND_INITIALIZER};

/* Guarded by the engine's lock. */
static struct pending_record *first, **end = &first;
static _Atomic size_t n_pending;
static size_t dropped;
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
static bool all_waits = true; /* also records of event queries that returned "not ready" */
static uint32_t last_correlation;
static uint32_t given_up; /* work up to this correlation id was delivered as unfinished */
static bool worker;

/* Ranges of correlation ids that were launched while kernel records were enabled: a kernel has a
 * record if the kind was enabled at its launch. */
static struct { uint32_t first, last; } sessions[1024];
static size_t n_sessions;

/* The record of the graph launch in progress, when each launch has one record. */
static struct {
  struct standin_record record;
  bool open;
} replay;

static __thread struct {
  uint64_t ids[16];
  unsigned depth;
} external[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];

/* One buffer of the client and how much of it is used. */
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

/* A buffer that the client has given before there are records for it. As in the real library, it is
 * requested at the first launch after the previous buffer was returned, because a client that has
 * given no buffer may not flush. Since CUDA 13 each thread that launches work has its own. Guarded
 * by the engine's lock. */
static struct ready_buffer {
  struct ready_buffer *next;
  struct buffer buffer;
} shared_ready, **last_ready = &shared_ready.next;

static struct buffer *ready_buffer_of_thread(void) {
  static __thread struct ready_buffer *own;
  if (!activity_buffers_are_per_thread())
    return &shared_ready.buffer;
  if (!own && (own = calloc(1, sizeof(*own)))) {
    *last_ready = own;
    last_ready = &own->next;
  }
  return own ? &own->buffer : &shared_ready.buffer;
}

/* If the client gave the same memory twice, the records would overwrite each other. */
static void assert_not_given_twice(const struct buffer *buffer) {
  for (const struct ready_buffer *other = &shared_ready; other; other = other->next)
    if (&other->buffer != buffer && other->buffer.start == buffer->start) {
      fprintf(stderr, "stand-in CUPTI: one buffer was given out twice\n");
      abort();
    }
}

static struct standin_record *append(CUpti_ActivityKind kind) {
  struct pending_record *pending = calloc(1, sizeof(*pending));
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

static bool was_enabled_at_launch(uint32_t correlation) {
  for (size_t i = 0; i < n_sessions; i++)
    if (correlation >= sessions[i].first && correlation <= sessions[i].last)
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

static void one_copy(struct sim_op *copy, size_t bytes, int64_t from, int64_t to) {
  struct standin_record *record = append(CUPTI_ACTIVITY_KIND_MEMCPY);
  if (!record)
    return;
  copy->bytes = bytes;
  copy->start = from;
  copy->end = to;
  record_set(record, copy);
}

/* STANDIN_NODES: on how many nodes NCCL takes the ranks to be. */
static unsigned nodes_of(unsigned ranks) {
  const char *text = getenv("STANDIN_NODES");
  unsigned nodes = text ? (unsigned)strtoul(text, NULL, 10) : 1;
  return nodes && ranks % nodes == 0 && ranks / nodes > 1 ? nodes : 1;
}

/* What is seen of a collective that copy engines run: flags to the peers of the node when this rank
 * is there, the data when all are, and flags again. Over several nodes a rank copies to those peers
 * its own part, and what the network brought it from each other node. */
static void copies_of_collective(const struct sim_op *op) {
  enum { FLAG_NS = 200, FLAG_BYTES = 4 };
  struct sim_op copy = *op;
  unsigned nodes = nodes_of(op->copies.peers + 1), peers = (op->copies.peers + 1) / nodes - 1;
  unsigned parts = peers * nodes;
  int64_t flags = peers * FLAG_NS, there = op->start + flags, last = op->end - flags;
  int64_t from = op->copies.from > there ? op->copies.from : there;
  copy.copy_kind = cudaMemcpyDeviceToDevice;
  for (unsigned i = 0; i < peers; i++)
    one_copy(&copy, FLAG_BYTES, op->start + i * FLAG_NS, op->start + (i + 1) * FLAG_NS);
  for (unsigned i = 0; i < parts; i++)
    one_copy(&copy, op->copies.bytes, from + (last - from) * i / parts,
             from + (last - from) * (i + 1) / parts);
  for (unsigned i = 0; i < peers; i++)
    one_copy(&copy, FLAG_BYTES, last + i * FLAG_NS, last + (i + 1) * FLAG_NS);
}

/* Copies between GPUs have records of their own. */
static CUpti_ActivityKind copy_record(const struct sim_op *op) {
  return op->copy_kind == SIM_PEER ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
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
  if (op->copies.peers) {
    if (enabled[CUPTI_ACTIVITY_KIND_MEMCPY])
      copies_of_collective(op);
    return;
  }
  if (kernel && was_enabled_at_launch(op->correlation))
    record = append(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  else if (kernel && enabled[CUPTI_ACTIVITY_KIND_KERNEL])
    record = append(CUPTI_ACTIVITY_KIND_KERNEL);
  else if (op->kind == SIM_COPY && enabled[copy_record(op)])
    record = append(copy_record(op));
  else if (op->kind == SIM_FILL && enabled[CUPTI_ACTIVITY_KIND_MEMSET])
    record = append(CUPTI_ACTIVITY_KIND_MEMSET);
  if (record)
    record_set(record, op);
}

static bool anything_enabled(void) {
  for (unsigned kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
    if (enabled[kind])
      return true;
  return false;
}

bool standin_cupti_records(CUpti_ActivityKind kind) {
  return enabled[kind];
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
  record->wait.end = (uint64_t)to + 1; /* a wait is never 0 long */
  record->wait.correlationId = correlation;
  record->wait.contextId = 1;
  record->wait.streamId = stream ? stream->id : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record->wait.cudaEventId =
      event ? event_id(event) : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
#if STANDIN_CUDA_MAJOR > 12
  record->wait.cudaEventSyncId = event && event->op ? event->op->id : 0;
#endif
}

/* Since CUDA 12.8 the real library makes a record for each event query, unless the client turns
 * that off. */
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
  struct buffer *own = ready_buffer_of_thread();
  if (!own->start && anything_enabled() && buffer_open(own))
    assert_not_given_twice(own);
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

/* Unfinished kernels get a record without times now, and none later. */
static void give_up_unfinished(void) {
  for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next)
    for (const struct sim_op *op = stream->head; op; op = op->next) {
      struct standin_record *record = (op->kind == SIM_KERNEL || op->kind == SIM_COLLECTIVE) &&
                                              !op->copies.peers && op->correlation > given_up &&
                                              was_enabled_at_launch(op->correlation)
                                          ? append(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
                                          : NULL;
      if (record) {
        record_set(record, op);
        record->kernel.start = record->kernel.end = 0;
      }
    }
  given_up = last_correlation;
}

/* The cost of a delivery is a record in the next one. */
static void record_overhead(int64_t from) {
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
      if (op->correlation > given_up && was_enabled_at_launch(op->correlation))
        return true;
  return false;
}

/* The first ready buffer. Its thread requests another at its next launch. */
static struct buffer take_ready_buffer(void) {
  struct buffer buffer = {0};
  for (struct ready_buffer *ready = &shared_ready; ready && !buffer.start; ready = ready->next) {
    buffer = ready->buffer;
    ready->buffer.start = NULL;
  }
  return buffer;
}

/* The times of a session's first kernels may be on the wrong clock. */
static bool misses_clock(const struct standin_record *record, size_t *kernels) {
  static uint32_t session; /* the first correlation id of the session at the last call */
  static size_t known;
  if (record->any.kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || !n_sessions)
    return false;
  if (session != sessions[n_sessions - 1].first)
    known = 0;
  session = sessions[n_sessions - 1].first;
  *kernels = ++known;
  return known <= clock_misses();
}

/* Called with the client's lock held and without the engine's, so that the client's callbacks may
 * call CUDA. */
static void deliver(bool forced) {
  int64_t from = clock_now();
  sim_lock();
  sim_progress();
  if (!forced && n_pending < FLUSH_AT && traced_work_runs() && sim_setting("CUPTI_WITHHOLD", 0)) {
    sim_unlock();
    return;
  }
  if (forced)
    give_up_unfinished();
  end_replay();
  struct pending_record *at = first;
  first = NULL;
  end = &first;
  n_pending = 0;
  struct buffer buffer = {0};
  if (at || forced)
    buffer = take_ready_buffer();
  sim_unlock();
  struct clock_map map = clock_map_now();
  size_t records = 0, lost = 0, kernels = 0;
  while (at) {
    struct pending_record *next = at->next;
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
        record_on_realtime_clock(&at->record);
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
  do { /* a forced flush returns all buffers */
    buffer_close(&buffer);
    sim_lock();
    buffer = forced ? take_ready_buffer() : (struct buffer){0};
    sim_unlock();
  } while (buffer.start);
  sim_lock();
  dropped += lost;
  if (records)
    record_overhead(from);
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
  sim_progress(); /* operations that have ended are recorded under the old setting */
  bool kernels = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && on != enabled[kind];
  if (kernels && on && n_sessions < sizeof(sessions) / sizeof(*sessions)) {
    sessions[n_sessions].first = last_correlation + 1;
    sessions[n_sessions++].last = UINT32_MAX;
  } else if (kernels && !on && n_sessions) {
    sessions[n_sessions - 1].last = last_correlation;
  }
  enabled[kind] = on;
  sim_unlock();
  return CUPTI_SUCCESS;
}

void activity_reset(void) {
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
