/* SPDX-License-Identifier: MIT */
#include "gpu/event_pairs.h"

#include "gpu/cuda_events.h"
#include "gpu/event_clock.h"
#include "gpu/gpu_clock.h"
#include "gpu/gpu_spans.h"
#include "record/atomics.h"
#include "record/lock.h"

enum { POOLS = 64, PAIRS = 256, BEGIN_PAIR_NS = 100000 };

/* While a pair is opening or closing, only its owner changes it. A pair that is begun belongs to a
 * call that may take any time, or that never ends: it was left by a jump. If others need it, it is
 * taken away, by making it void. Its next use has another number, so that the end of a call that
 * lost its pair changes nothing. */
enum pair_state { PAIR_VOID, PAIR_OPENING, PAIR_BEGUN, PAIR_CLOSING, PAIR_ENDED };

struct event_pair {
  void *start, *end;
  void *stream;
  struct event_subject subject;
  u64 use; /* number of its use << 8 | enum pair_state; stored with release order after the rest */
};

/* The pairs of one stream. Pairs are begun at `head` and given back at `tail`. */
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

static enum pair_state state_of(const struct event_pair *pair) {
  return (enum pair_state)(__atomic_load_n(&pair->use, __ATOMIC_ACQUIRE) & 0xff);
}

/* For the pair's owner. */
static void set_state(struct event_pair *pair, enum pair_state state) {
  __atomic_store_n(&pair->use, (pair->use & ~0xffull) | state, __ATOMIC_RELEASE);
}

/* False if it is not in state `from` of this use any more. */
static bool change_use(struct event_pair *pair, u64 from, u64 to) {
  return __atomic_compare_exchange_n(&pair->use, &from, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* Takes a pair away from a call that has begun it and not ended it. */
static void take_away(struct event_pair *pair) {
  u64 use = __atomic_load_n(&pair->use, __ATOMIC_ACQUIRE);
  if ((use & 0xff) == PAIR_BEGUN && change_use(pair, use, (use & ~0xffull) | PAIR_VOID))
    gpu_clock_dropped(&totals, 1);
}

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

/* A green context, which has a part of the device's processors, may be current in one thread at a
 * time: the poller must leave it to the job. It ends when the job says so. */
static bool is_of_green_context(void *stream) {
  void *green = NULL;
  return cuda_events.cuStreamGetGreenCtx &&
         (cuda_events.cuStreamGetGreenCtx(stream, &green) || green);
}

/* A pool whose stream is destroyed, or a new one. NULL if there is none, or none at the moment. */
static struct pool *assign_pool(void *stream, u16 index) {
  void *context;
  if (is_of_green_context(stream) || cuda_events.cuStreamGetCtx(stream, &context) ||
      !tscope_lock_within(&pools_lock, 0))
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

/* The next pair of the pool, opening; NULL when all are in use. Then the oldest is taken away if
 * its call has not ended it while so many others began theirs. */
static struct event_pair *begin_pair(struct pool *pool) {
  struct event_pair *pair = NULL;
  if (!tscope_lock_within(&pool->begin_lock, BEGIN_PAIR_NS)) /* another thread on the same stream */
    return NULL;
  u32 tail = __atomic_load_n(&pool->tail, __ATOMIC_ACQUIRE);
  if (pool->head - tail < PAIRS) {
    struct event_pair *next = &pool->pairs[pool->head % PAIRS];
    u64 use = __atomic_load_n(&next->use, __ATOMIC_ACQUIRE);
    bool owned = (use & 0xff) == PAIR_OPENING || (use & 0xff) == PAIR_CLOSING;
    if (!owned && change_use(next, use, ((use >> 8) + 1) << 8 | PAIR_OPENING)) {
      pair = next;
      __atomic_store_n(&pool->head, pool->head + 1, __ATOMIC_RELEASE);
    }
  } else {
    take_away(&pool->pairs[tail % PAIRS]);
  }
  tscope_unlock(&pool->begin_lock);
  return pair;
}

static event_pair_ticket ticket_of(const struct pool *pool, const struct event_pair *pair) {
  return (pair->use >> 8) << 16 | (u64)(pool - pools) << 8 | (u64)(pair - pool->pairs);
}
_Static_assert(POOLS <= 256 && PAIRS == 256, "a ticket has 8 bits for each");

static event_pair_ticket open_pair(void *stream, u16 index) {
  int capturing;
  if (cuda_events.cuStreamIsCapturing(stream, &capturing) || capturing)
    return 0; /* an error also means that a capture is in progress
                 (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) */
  struct pool *pool = find_pool(index);
  if (!pool)
    pool = assign_pool(stream, index);
  struct event_pair *pair = pool && !is_broken(pool) ? begin_pair(pool) : NULL;
  if (!pair) {
    gpu_clock_dropped(&totals, 1);
    return 0;
  }
  pair->stream = stream;
  event_pair_ticket ticket = ticket_of(pool, pair);
  if (!cuda_events.cuEventRecord(pair->start, stream)) {
    set_state(pair, PAIR_BEGUN);
    return ticket;
  }
  __atomic_store_n(&pool->broken, 1, __ATOMIC_RELAXED);
  gpu_clock_dropped(&totals, 1);
  set_state(pair, PAIR_VOID);
  return 0;
}

event_pair_ticket event_pair_open(cudaStream_t stream, enum tscope_default_stream default_stream,
                                  u16 index) {
  TSCOPE_KEEP_ERRNO;
  void *handle = stream ? (void *)stream : (void *)(uintptr_t)default_stream;
  return index == TSCOPE_NO_STREAM ? 0 : open_pair(handle, index);
}

void event_pair_close(event_pair_ticket ticket, const struct event_subject *subject) {
  struct event_pair *pair = &pools[ticket >> 8 & 0xff].pairs[ticket & 0xff];
  u64 use = ticket >> 16 << 8;
  if (!change_use(pair, use | PAIR_BEGUN, use | PAIR_CLOSING))
    return; /* taken away, and counted */
  TSCOPE_KEEP_ERRNO;
  enum pair_state state = PAIR_VOID;
  if (subject) {
    pair->subject = *subject;
    if (!cuda_events.cuEventRecord(pair->end, pair->stream))
      state = PAIR_ENDED;
    else
      gpu_clock_dropped(&totals, 1);
  }
  set_state(pair, state);
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
    tscope_atomic_add(&totals.invalid, 1);
    return;
  }
  u64 end = start + (u64)((double)ms * 1e6);
  tscope_atomic_add(&totals.seen, 1);
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

/* False if the work of the pair, which is ended, is not done yet. */
static bool consume(struct tscope_thread *thread, const struct event_clock *clock,
                    const struct pool *pool, struct event_pair *pair) {
  int result = cuda_events.cuEventQuery(pair->end);
  if (result == CUDA_NOT_READY)
    return false;
  if (result == 0)
    record(thread, clock, pool, pair);
  else /* an error is not an end */
    tscope_atomic_add(&totals.invalid, 1);
  set_state(pair, PAIR_VOID);
  return true;
}

/* Work is done in the stream's order. But a call may take long to put its own there, or never end,
 * while other threads put theirs. */
static void drain(struct tscope_thread *thread, const struct event_clock *clock,
                  struct pool *pool) {
  bool released = __atomic_load_n(&pool->released, __ATOMIC_ACQUIRE);
  u32 head = __atomic_load_n(&pool->head, __ATOMIC_ACQUIRE);
  for (u32 i = pool->tail; i != head; i++) {
    struct event_pair *pair = &pool->pairs[i % PAIRS];
    if (released)
      take_away(pair); /* there is nothing left to end it on */
    if (state_of(pair) == PAIR_ENDED && !consume(thread, clock, pool, pair))
      break;
  }
  while (pool->tail != head && state_of(&pool->pairs[pool->tail % PAIRS]) == PAIR_VOID)
    __atomic_store_n(&pool->tail, pool->tail + 1, __ATOMIC_RELEASE);
  if (released && pool->tail == head) {
    __atomic_store_n(&pool->in_use, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&pool->released, 0, __ATOMIC_RELEASE);
  }
}

/* Held by the thread that consumes pairs: the poller, or the thread that closes the source. */
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

/* Work that is not done by now is never recorded. A call that is opening or closing its pair keeps
 * it until then. */
static void drop_all(struct pool *pool) {
  u32 head = __atomic_load_n(&pool->head, __ATOMIC_ACQUIRE);
  for (u32 i = pool->tail; i != head; i++) {
    struct event_pair *pair = &pool->pairs[i % PAIRS];
    take_away(pair);
    if (state_of(pair) != PAIR_VOID)
      gpu_clock_dropped(&totals, 1);
  }
  __atomic_store_n(&pool->tail, head, __ATOMIC_RELEASE);
}

/* The pools stay, but get no more pairs. A new context may have the same address; calls on its
 * streams then find the pools marked as broken. */
void event_pairs_context_destroy(void *context) {
  u32 n = __atomic_load_n(&n_pools, __ATOMIC_ACQUIRE);
  if (!n)
    return;
  TSCOPE_KEEP_ERRNO;
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
}

bool event_pairs_hold(void) {
  return __atomic_load_n(&n_pools, __ATOMIC_ACQUIRE) && begin_consuming();
}

void event_pairs_let_go(bool held) {
  if (held)
    tscope_unlock(&consuming);
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

const struct gpu_clock_source gpu_clock_events = {
    .id = TSCOPE_GPU_CLOCK_EVENTS,
    .open = open_events,
    .poll = poll,
    .ticks_per_poll = 1, /* a pool must not be used up in between */
    .close = close_events,
    .totals = &totals,
};
