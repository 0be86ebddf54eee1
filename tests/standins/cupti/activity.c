/* SPDX-License-Identifier: MIT
 *
 * The activity API of the stand-in CUPTI: records of the operations that are done, with their
 * computed times on the client's clock, in buffers that are the client's. As with the real library,
 * a record reaches the client when it flushes, or when a buffer is full.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_standin.h"

enum { FLUSH_AT = 16384 };

struct pending {
  struct pending *next;
  struct standin_record record;
};

static struct {
  pthread_mutex_t lock; /* one delivery at a time; never taken with the engine's lock held */
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
  pthread_cond_t many;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .many = PTHREAD_COND_INITIALIZER};

/* Guarded by the engine's lock. */
static struct pending *first, **end = &first;
static _Atomic size_t n_pending;
static size_t dropped;
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
static uint32_t last_correlation;
static bool worker;

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
 * client that has given none out does not trouble to flush. Guarded by the engine's lock. */
static struct buffer ahead;

static struct standin_record *append(CUpti_ActivityKind kind) {
  struct pending *pending = calloc(1, sizeof *pending);
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

static void on_op(const struct sim_op *op) {
  bool kernel = op->kind == SIM_KERNEL || op->kind == SIM_COLLECTIVE;
  struct standin_record *record = NULL;
  if (kernel && enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
    record = append(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  else if (kernel && enabled[CUPTI_ACTIVITY_KIND_KERNEL])
    record = append(CUPTI_ACTIVITY_KIND_KERNEL);
  else if (op->kind == SIM_COPY && enabled[CUPTI_ACTIVITY_KIND_MEMCPY])
    record = append(CUPTI_ACTIVITY_KIND_MEMCPY);
  else if (op->kind == SIM_FILL && enabled[CUPTI_ACTIVITY_KIND_MEMSET])
    record = append(CUPTI_ACTIVITY_KIND_MEMSET);
  if (record)
    record_fill(record, op);
}

static bool anything_enabled(void) {
  for (unsigned kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
    if (enabled[kind])
      return true;
  return false;
}

static uint32_t on_launch(void) {
  uint32_t correlation = ++last_correlation;
  if (!ahead.start && anything_enabled())
    buffer_open(&ahead);
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

/* The client's lock is held, the engine's is not: the client may do as it likes in its callbacks.
 */
static void deliver(void) {
  sim_lock();
  sim_progress();
  struct pending *at = first;
  first = NULL;
  end = &first;
  n_pending = 0;
  struct buffer buffer = {0};
  if (at) {
    buffer = ahead;
    ahead.start = NULL;
  }
  sim_unlock();
  struct clock_map map = clock_map_now();
  size_t records = 0, lost = 0;
  while (at) {
    struct pending *next = at->next;
    size_t bytes = record_bytes(at->record.any.kind);
    if (buffer.start && (buffer.used + bytes > buffer.size || records == buffer.most))
      buffer_close(&buffer);
    if (!buffer.start) {
      records = 0;
      if (client.request)
        buffer_open(&buffer);
    }
    if (buffer.start && bytes <= buffer.size) {
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
  buffer_close(&buffer);
  sim_lock();
  dropped += lost;
  sim_unlock();
}

static void *deliver_when_many(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&client.lock);
    while (n_pending < FLUSH_AT)
      pthread_cond_wait(&client.many, &client.lock);
    deliver();
    pthread_mutex_unlock(&client.lock);
  }
  return NULL;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  static const struct sim_activity activity = {on_op, on_launch};
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
  sim_lock();
  sim_progress(); /* what ended before belongs to the setting before */
  enabled[kind] = on;
  sim_unlock();
  return CUPTI_SUCCESS;
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
  (void)flag;
  if (!client.request)
    return CUPTI_ERROR_INVALID_OPERATION;
  pthread_mutex_lock(&client.lock);
  deliver();
  pthread_mutex_unlock(&client.lock);
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
