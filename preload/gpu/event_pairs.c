/* SPDX-License-Identifier: MIT */
#include "gpu/event_pairs.h"

#include <errno.h>
#include <string.h>

#include "gpu/cuda_events.h"
#include "gpu/event_clock.h"
#include "gpu/gpu_clock.h"
#include "gpu/gpu_spans.h"
#include "record/lock.h"

enum { POOLS = 64, PAIRS = 256, BEGIN_PAIR_NS = 100000 };

enum pair_state { PAIR_FREE, PAIR_BEGUN, PAIR_ENDED, PAIR_VOID };

struct event_pair {
  void *start, *end;
  void *stream;
  struct event_subject subject;
  u64 begun_ns; /* when it was begun, to recognise one that never ends */
  u8 state;     /* enum pair_state; stored with release order after the other members are written */
};

/* The pairs of one stream. Pairs are begun at `head` and consumed at `tail`, in the stream's order.
 */
struct pool {
  struct event_pair pairs[PAIRS];
  void *context;
  u32 head, tail;
  u16 index;   /* of the stream */
  u8 in_use;   /* 0: the context's next stream may take it over, with its events */
  u8 released; /* its stream is destroyed; free once it is drained */
  u8 broken;   /* the driver refused an event: no more are recorded */
  struct tscope_lock begin_lock; /* for beginning a pair */
};

static struct pool pools[POOLS]; /* untouched ones take no memory */
static u32 n_pools;
static struct tscope_lock pools_lock; /* for making pools, or giving one to another stream */
static struct gpu_clock_counts totals;

u8 event_pairs_wanted;

static u64 now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (u64)time.tv_sec * 1000000000u + (u64)time.tv_nsec;
}

static void count(u64 *total, u64 more) {
  __atomic_fetch_add(total, more, __ATOMIC_RELAXED);
}

static void drop(u64 more) {
  count(&totals.dropped, more);
  tscope_count_lost(TSCOPE_LOSS_GPU, more);
}

/* --- on the job's threads --- */

static struct pool *find_pool(u16 index) {
  u32 n = __atomic_load_n(&n_pools, __ATOMIC_ACQUIRE);
  for (u32 i = 0; i < n; i++)
    if (__atomic_load_n(&pools[i].index, __ATOMIC_RELAXED) == index &&
        __atomic_load_n(&pools[i].in_use, __ATOMIC_ACQUIRE) &&
        !__atomic_load_n(&pools[i].released, __ATOMIC_ACQUIRE))
      return &pools[i];
  return NULL;
}

static bool is_broken(const struct pool *pool) {
  return __atomic_load_n(&pool->broken, __ATOMIC_RELAXED);
}

/* Events belong to the context that is current when they are made. */
static bool make_events(struct pool *pool, void *context) {
  bool made = true;
  int mode = CAPTURE_RELAXED;
  void *popped;
  if (cuda_events.cuCtxPushCurrent(context))
    return false;
  cuda_events.cuThreadExchangeStreamCaptureMode(&mode); /* another thread may be capturing */
  for (u32 i = 0; i < PAIRS && made; i++)
    made = !cuda_events.cuEventCreate(&pool->pairs[i].start, 0) &&
           !cuda_events.cuEventCreate(&pool->pairs[i].end, 0);
  cuda_events.cuThreadExchangeStreamCaptureMode(&mode);
  cuda_events.cuCtxPopCurrent(&popped);
  return made;
}

/* A pool whose stream is destroyed, or a new one. NULL if there is none, or none at the moment. */
static struct pool *assign_pool(void *stream, u16 index) {
  void *context;
  if (cuda_events.cuStreamGetCtx(stream, &context) || !tscope_lock_within(&pools_lock, 0))
    return NULL;
  struct pool *pool = find_pool(index);
  for (u32 i = 0; i < n_pools && !pool; i++)
    if (!__atomic_load_n(&pools[i].in_use, __ATOMIC_ACQUIRE) && pools[i].context == context)
      pool = &pools[i];
  bool fresh = !pool && n_pools < POOLS;
  if (fresh) {
    pool = &pools[n_pools];
    pool->context = context;
    __atomic_store_n(&pool->broken, !make_events(pool, context), __ATOMIC_RELAXED);
  }
  if (pool) {
    __atomic_store_n(&pool->index, index, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->in_use, 1, __ATOMIC_RELEASE);
  }
  if (fresh)
    __atomic_store_n(&n_pools, n_pools + 1, __ATOMIC_RELEASE);
  tscope_unlock(&pools_lock);
  return pool;
}

/* The next pair of the pool, begun; NULL when all are in use. */
static struct event_pair *begin_pair(struct pool *pool) {
  struct event_pair *pair = NULL;
  if (!tscope_lock_within(&pool->begin_lock, BEGIN_PAIR_NS)) /* another thread on the same stream */
    return NULL;
  if (pool->head - __atomic_load_n(&pool->tail, __ATOMIC_ACQUIRE) < PAIRS) {
    pair = &pool->pairs[pool->head % PAIRS];
    pair->begun_ns = now_ns();
    __atomic_store_n(&pair->state, PAIR_BEGUN, __ATOMIC_RELEASE);
    __atomic_store_n(&pool->head, pool->head + 1, __ATOMIC_RELEASE);
  }
  tscope_unlock(&pool->begin_lock);
  return pair;
}

static struct event_pair *open_pair(void *stream, u16 index) {
  int capturing;
  if (cuda_events.cuStreamIsCapturing(stream, &capturing) || capturing)
    return NULL; /* an error also means that a capture is in progress
                    (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) */
  struct pool *pool = find_pool(index);
  if (!pool)
    pool = assign_pool(stream, index);
  struct event_pair *pair = pool && !is_broken(pool) ? begin_pair(pool) : NULL;
  if (!pair) {
    drop(1);
    return NULL;
  }
  pair->stream = stream;
  if (!cuda_events.cuEventRecord(pair->start, stream))
    return pair;
  __atomic_store_n(&pool->broken, 1, __ATOMIC_RELAXED);
  drop(1);
  __atomic_store_n(&pair->state, PAIR_VOID, __ATOMIC_RELEASE);
  return NULL;
}

struct event_pair *event_pair_open(cudaStream_t stream, enum tscope_default_stream default_stream,
                                   u16 index) {
  int saved = errno;
  void *handle = stream ? (void *)stream : (void *)(uintptr_t)default_stream;
  struct event_pair *pair = index == TSCOPE_NO_STREAM ? NULL : open_pair(handle, index);
  errno = saved;
  return pair;
}

void event_pair_close(struct event_pair *pair, const struct event_subject *subject) {
  int saved = errno;
  u8 state = PAIR_VOID;
  if (subject) {
    pair->subject = *subject;
    if (!cuda_events.cuEventRecord(pair->end, pair->stream))
      state = PAIR_ENDED;
    else
      drop(1);
  }
  __atomic_store_n(&pair->state, state, __ATOMIC_RELEASE);
  errno = saved;
}

void event_pairs_release(u16 index) {
  struct pool *pool = find_pool(index);
  if (pool)
    __atomic_store_n(&pool->released, 1, __ATOMIC_RELEASE);
}

void event_pairs_stream_destroy(cudaStream_t stream) {
  u16 index = stream_remove(stream);
  if (index != TSCOPE_NO_STREAM)
    event_pairs_release(index);
}

/* --- on the ticker --- */

/* Names are few, and interned once each. */
static u32 name_number(struct tscope_thread *thread, const char *name) {
  static struct {
    const char *name;
    u32 number;
  } known[32];
  u32 i = 0;
  while (i < 32 && known[i].name && known[i].name != name)
    i++;
  if (i == 32)
    return tscope_string(thread, name);
  if (!known[i].name) {
    known[i].number = tscope_string(thread, name);
    known[i].name = name;
  }
  return known[i].number;
}

static void record(struct tscope_thread *thread, const struct event_clock *clock,
                   const struct pool *pool, const struct event_pair *pair) {
  float ms;
  u64 start = event_clock_ns(clock, pair->start);
  if (!start || cuda_events.cuEventElapsedTime(&ms, pair->start, pair->end) || ms < 0) {
    count(&totals.invalid, 1);
    return;
  }
  u64 end = start + (u64)((double)ms * 1e6);
  count(&totals.seen, 1);
  if (pair->subject.one_in)
    gpu_work_record(thread, &(struct gpu_work){.start = start,
                                               .end = end,
                                               .name = name_number(thread, pair->subject.name),
                                               .one_in = pair->subject.one_in,
                                               .number = pair->subject.seq,
                                               .stream = pool->index});
  else
    gpu_run_record(thread, &(struct gpu_run){.start = start,
                                             .end = end,
                                             .comm = pair->subject.comm,
                                             .seq = pair->subject.seq,
                                             .name = name_number(thread, pair->subject.name),
                                             .stream = pool->index});
}

/* Whether the oldest pair is finished, with or without times. */
static bool consume_oldest(struct tscope_thread *thread, const struct event_clock *clock,
                           struct pool *pool, struct event_pair *pair) {
  const u64 max_call_ns = 60000000000ull; /* no call takes a minute to put work on a stream */
  switch (__atomic_load_n(&pair->state, __ATOMIC_ACQUIRE)) {
  case PAIR_ENDED: {
    int state = cuda_events.cuEventQuery(pair->end);
    if (state == CUDA_NOT_READY)
      return false;
    if (state == 0)
      record(thread, clock, pool, pair);
    else /* an error is not an end */
      count(&totals.invalid, 1);
    return true;
  }
  case PAIR_BEGUN:
    if (now_ns() - pair->begun_ns < max_call_ns)
      return false;
    drop(1);
    return true;
  default:
    return true;
  }
}

static void drain(struct tscope_thread *thread, const struct event_clock *clock,
                  struct pool *pool) {
  while (pool->tail != __atomic_load_n(&pool->head, __ATOMIC_ACQUIRE)) {
    struct event_pair *pair = &pool->pairs[pool->tail % PAIRS];
    if (!consume_oldest(thread, clock, pool, pair))
      return;
    __atomic_store_n(&pair->state, PAIR_FREE, __ATOMIC_RELEASE);
    __atomic_store_n(&pool->tail, pool->tail + 1, __ATOMIC_RELEASE);
  }
  if (__atomic_load_n(&pool->released, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&pool->in_use, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&pool->released, 0, __ATOMIC_RELEASE);
  }
}

/* Held by the thread that consumes pairs: the ticker, or the thread that closes the source. */
static struct tscope_lock consuming = {.for_records = true};

static bool begin_consuming(void) {
  return tscope_lock_within(&consuming, 200000000);
}

static void poll(struct tscope_thread *thread) {
  u32 n = __atomic_load_n(&n_pools, __ATOMIC_ACQUIRE);
  int mode = CAPTURE_RELAXED; /* querying an event would break another thread's capture */
  if (!n || !thread || !begin_consuming())
    return;
  cuda_events.cuThreadExchangeStreamCaptureMode(&mode);
  for (u32 i = 0; i < n; i++) {
    void *popped;
    if (is_broken(&pools[i]) || cuda_events.cuCtxPushCurrent(pools[i].context))
      continue;
    struct event_clock *clock = event_clock_of(pools[i].context);
    if (clock) {
      event_clock_update(clock, thread);
      if (clock->n_anchors)
        drain(thread, clock, &pools[i]);
    }
    cuda_events.cuCtxPopCurrent(&popped);
  }
  cuda_events.cuThreadExchangeStreamCaptureMode(&mode);
  tscope_unlock(&consuming);
}

/* Work that is not done by now is never recorded. */
static void drop_all(struct pool *pool) {
  u32 head = __atomic_load_n(&pool->head, __ATOMIC_ACQUIRE);
  if (head != pool->tail)
    drop(head - pool->tail);
  __atomic_store_n(&pool->tail, head, __ATOMIC_RELEASE);
}

/* The pools stay, but get no more pairs. A new context may have the same address; calls on its
 * streams then find the pools marked as broken. */
void event_pairs_context_destroy(void *context) {
  u32 n = __atomic_load_n(&n_pools, __ATOMIC_ACQUIRE);
  if (!n)
    return;
  int saved = errno;
  for (u32 i = 0; i < n; i++)
    if (!context || pools[i].context == context)
      __atomic_store_n(&pools[i].broken, 1, __ATOMIC_SEQ_CST);
  bool alone = begin_consuming(); /* waits until the thread that queries its events has finished */
  for (u32 i = 0; i < n; i++)
    if (!context || pools[i].context == context)
      drop_all(&pools[i]);
  event_clock_remove(context);
  if (alone)
    tscope_unlock(&consuming);
  errno = saved;
}

static bool open_events(char *why, size_t why_bytes) {
  if (!cuda_events_find(why, why_bytes))
    return false;
  __atomic_store_n(&event_pairs_wanted, 1, __ATOMIC_RELEASE);
  return true;
}

static void close_events(bool process_ends) {
  (void)process_ends;
  __atomic_store_n(&event_pairs_wanted, 0, __ATOMIC_RELEASE);
  poll(tscope_self);
  u32 n = __atomic_load_n(&n_pools, __ATOMIC_ACQUIRE);
  for (u32 i = 0; i < n; i++)
    drop_all(&pools[i]);
}

static struct gpu_clock_counts counts(void) {
  return (struct gpu_clock_counts){.seen = __atomic_load_n(&totals.seen, __ATOMIC_RELAXED),
                                   .dropped = __atomic_load_n(&totals.dropped, __ATOMIC_RELAXED),
                                   .invalid = __atomic_load_n(&totals.invalid, __ATOMIC_RELAXED)};
}

const struct gpu_clock_source gpu_clock_events = {
    .id = TSCOPE_GPU_CLOCK_EVENTS,
    .open = open_events,
    .poll = poll,
    .ticks_per_poll = 1, /* a pool must not be used up in between */
    .close = close_events,
    .counts = counts,
};
