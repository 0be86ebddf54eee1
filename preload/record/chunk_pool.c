/* SPDX-License-Identifier: MIT */
#include "record/chunk_pool.h"

#include <errno.h>
#include <sys/mman.h>

#include "record/carry.h"
#include "record/lock.h"
#include "record/process_trace.h"
#include "record/thread.h"
#include "record/tick_clock.h"

struct tscope_chunk_pool tscope_chunk_pool;

static struct tscope_queue_cell ready_cells[TSCOPE_READY_MAX];

/* Patience of callers that lose nothing if they come back later. */
enum { GROW_TIMEOUT_NS = 100000000, STARVED_NS = 50000000 };

/* The helper waits for a file server that does not answer: what would be kept until it does takes
 * too much memory. */
static const u64 patience_ns = 10000000000;

/* When the helper last looked whether chunks are wanted, and when it was first called after that.
 */
static u64 refilled_ns, called_ns;

/* Held while the file grows, until what was added is ready. Events never wait for it. */
static struct tscope_lock grow_lock;

bool tscope_chunks_within(u64 bytes, u32 *ring, u32 *retained) {
  u64 chunks = bytes / TSCOPE_CHUNK_BYTES, whole = (u64)*ring + *retained;
  if (chunks >= whole)
    return false;
  *ring = (u32)(*ring * chunks / whole);
  *retained = MAX((u32)(*retained * chunks / whole), TSCOPE_RETAINED_LEAST);
  return true;
}

int tscope_chunk_pool_init(u32 ring_max, u32 retained_max, void (*wake_helper)(void)) {
  u32 capacity = 2;
  while (capacity < ring_max)
    capacity *= 2;
  struct tscope_queue_cell *cells = mmap(NULL, capacity * sizeof(*cells), PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (cells == MAP_FAILED)
    return -errno;
  tscope_queue_init(&tscope_chunk_pool.ready, ready_cells, TSCOPE_READY_MAX);
  tscope_queue_init(&tscope_chunk_pool.filled, cells, capacity);
  tscope_chunk_pool.wake_helper = wake_helper;
  tscope_chunk_pool.ring_max = ring_max;
  tscope_chunk_pool.retained_max = retained_max;
  tscope_chunk_pool.retained_kept = retained_max / 8 + 1;
  tscope_chunk_pool.ready_wanted = TSCOPE_READY_MIN;
  return 0;
}

static u32 load(const u32 *number) {
  return __atomic_load_n(number, __ATOMIC_RELAXED);
}

/* Counts one more as used unless that is more than `max`. */
static bool claim(u32 *used, u32 max) {
  u32 now = load(used);
  while (now < max)
    if (__atomic_compare_exchange_n(used, &now, now + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return true;
  return false;
}

/* No room was found at the last try. Only the helper tries again, at its own pace: were it called
 * for every record, each would cost the job a system call. */
static bool no_room(void) {
  return __atomic_load_n(&tscope_trace.full, __ATOMIC_RELAXED);
}

static void call_helper(void) {
  if (__atomic_load_n(&called_ns, __ATOMIC_RELAXED) <=
      __atomic_load_n(&refilled_ns, __ATOMIC_RELAXED))
    __atomic_store_n(&called_ns, tscope_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
  tscope_chunk_pool.wake_helper();
}

/* A ready chunk if there are more than `kept`; and calls the helper in time for the next. */
static struct tscope_chunk_header *acquire_ready(u32 kept) {
  u32 number, n_ready = tscope_queue_length(&tscope_chunk_pool.ready);
  struct tscope_chunk_header *chunk = NULL;
  if (n_ready > kept && tscope_queue_pop(&tscope_chunk_pool.ready, &number))
    chunk = tscope_trace_chunk(number);
  u32 wanted = load(&tscope_chunk_pool.ready_wanted);
  if (n_ready <= wanted / 4 && wanted < TSCOPE_READY_MAX)
    __atomic_store_n(&tscope_chunk_pool.ready_wanted, wanted * 2, __ATOMIC_RELAXED);
  if (n_ready <= wanted / 2 + 1 && !no_room())
    call_helper();
  return chunk;
}

/* Empties a chunk; its records are lost. A process may be killed between any two of these stores,
 * and other threads count losses meanwhile: the one that empties the chunk counts its records. */
static void give_up_records(struct tscope_chunk_header *chunk, enum tscope_loss loss) {
  u64 records = chunk->committed >> 32, given_up = chunk->given_up + records;
  chunk->given_up_as = loss;
  __atomic_store_n(&chunk->given_up_empty, given_up, __ATOMIC_RELEASE);
  __atomic_store_n(&chunk->committed, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&chunk->given_up, given_up, __ATOMIC_RELEASE);
  __atomic_fetch_add(&tscope_trace.header->lost[loss], records, __ATOMIC_RELEASE);
  /* A reader may be reading the chunk in the file. So it must not see anything that is written into
   * the chunk from here on before it sees that the chunk is empty and has a new generation. */
  chunk->generation++;
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The oldest filled ring chunk, emptied; NULL if there is none. */
static struct tscope_chunk_header *recycle(enum tscope_loss loss) {
  u32 number;
  for (int attempt = 0;; attempt++) {
    if (attempt == 2 || !tscope_queue_pop(&tscope_chunk_pool.filled, &number))
      return NULL;
    if (tscope_carry_take_back(number))
      break;
    tscope_queue_push(&tscope_chunk_pool.filled, number); /* the helper has it; only ever one */
  }
  struct tscope_chunk_header *chunk = tscope_trace_chunk(number);
  give_up_records(chunk, loss);
  return chunk;
}

/* Whether the helper was called so long ago and does not come. */
static bool has_waited_for(u64 ns) {
  u64 called = __atomic_load_n(&called_ns, __ATOMIC_RELAXED);
  return called > __atomic_load_n(&refilled_ns, __ATOMIC_RELAXED) &&
         tscope_clock_ns(CLOCK_MONOTONIC) - called > ns;
}

static struct tscope_chunk_header *acquire_ring(enum tscope_loss *loss) {
  struct tscope_chunk_header *chunk = NULL;
  *loss = TSCOPE_LOSS_RING;
  if (claim(&tscope_chunk_pool.ring_used, tscope_chunk_pool.ring_max)) {
    chunk = acquire_ready(TSCOPE_READY_FOR_RETAINED);
    if (chunk)
      return chunk;
    __atomic_fetch_sub(&tscope_chunk_pool.ring_used, 1, __ATOMIC_RELAXED);
    *loss = no_room() ? TSCOPE_LOSS_DISK : TSCOPE_LOSS_BEHIND;
    /* The helper gets no time, as beside a thread of real-time priority on its only core: then the
     * latest records are worth more than those of long ago. */
    if (*loss == TSCOPE_LOSS_BEHIND && !has_waited_for(STARVED_NS))
      return NULL;
  }
  return recycle(*loss);
}

/* For collectives and steps, waiting for the helper, or a system call on their own thread, is
 * better than a gap. */
static struct tscope_chunk_header *make_ready(void) {
  if (!tscope_lock(&grow_lock))
    return NULL;
  struct tscope_chunk_header *chunk = acquire_ready(0);
  u32 first;
  if (!chunk && !no_room() && !has_waited_for(patience_ns) &&
      tscope_trace_grow(1, &first, true) == 1)
    chunk = tscope_trace_chunk(first);
  tscope_unlock(&grow_lock);
  return chunk;
}

static struct tscope_chunk_header *acquire_retained(enum tscope_need need, enum tscope_loss *loss) {
  u32 kept = need == TSCOPE_DEFINITIONS ? 0 : tscope_chunk_pool.retained_kept;
  *loss = TSCOPE_LOSS_RETAINED;
  if (!claim(&tscope_chunk_pool.retained_used, tscope_chunk_pool.retained_max - kept))
    return NULL;
  struct tscope_chunk_header *chunk = acquire_ready(0);
  if (!chunk)
    chunk = make_ready();
  if (!chunk) {
    *loss = TSCOPE_LOSS_DISK;
    __atomic_fetch_sub(&tscope_chunk_pool.retained_used, 1, __ATOMIC_RELAXED);
  }
  return chunk;
}

struct tscope_chunk_header *tscope_chunk_pool_acquire(enum tscope_retention retention,
                                                      enum tscope_need need,
                                                      enum tscope_loss *loss) {
  *loss = TSCOPE_LOSS_REENTRY;
  if (__atomic_load_n(&tscope_chunk_pool.closed, __ATOMIC_ACQUIRE))
    return NULL;
  return retention == TSCOPE_RETAINED ? acquire_retained(need, loss) : acquire_ring(loss);
}

void tscope_chunk_pool_release(struct tscope_chunk_header *chunk) {
  /* Never full: it has a cell for every possible ring chunk. */
  tscope_queue_push(&tscope_chunk_pool.filled, tscope_trace_number(chunk));
}

/* Chunks that may still be needed; it is useless to make more ready than that. */
static u32 remaining_chunks(void) {
  return tscope_chunk_pool.ring_max - load(&tscope_chunk_pool.ring_used) +
         tscope_chunk_pool.retained_max - load(&tscope_chunk_pool.retained_used);
}

/* Bytes of the address space that the trace is to take from now on; UINT64_MAX: as before. */
static u64 limit_wanted = UINT64_MAX;

/* Both kinds of chunks have less in proportion, but not less than there is of each. The lock is
 * held. */
static void apply_limit(void) {
  struct tscope_chunk_pool *pool = &tscope_chunk_pool;
  u64 bytes = __atomic_exchange_n(&limit_wanted, UINT64_MAX, __ATOMIC_RELAXED);
  u32 ring = pool->ring_max, ring_used = load(&pool->ring_used);
  u32 retained = pool->retained_max, used = load(&pool->retained_used);
  if (!tscope_chunks_within(bytes, &ring, &retained))
    return;
  retained = MAX(retained, used + TSCOPE_RETAINED_LEAST);
  ring = MAX(ring, ring_used);
  retained = MIN(retained, pool->retained_max);
  __atomic_store_n(&pool->retained_kept, retained / 8 + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&pool->retained_max, retained, __ATOMIC_RELAXED);
  __atomic_store_n(&pool->ring_max, ring, __ATOMIC_RELAXED);
  __atomic_store_n(&tscope_trace.header->ring_cap_chunks, ring, __ATOMIC_RELAXED);
  u32 most = ring + retained;
  tscope_trace_limit(MAX(most, tscope_trace.chunks));
}

/* Adds a batch of ready chunks; false when enough are ready or there are no more. */
static bool refill(void) {
  const u32 batch = 16;
  u32 n_ready = tscope_queue_length(&tscope_chunk_pool.ready);
  u32 wanted = load(&tscope_chunk_pool.ready_wanted), first;
  wanted = MIN(wanted, remaining_chunks());
  if (n_ready >= wanted || __atomic_load_n(&tscope_chunk_pool.closed, __ATOMIC_ACQUIRE))
    return false;
  u32 got = tscope_trace_grow(MIN(wanted - n_ready, batch), &first, false);
  for (u32 i = 0; i < got; i++)
    tscope_queue_push(&tscope_chunk_pool.ready, first + i);
  return got > 0;
}

void tscope_chunk_pool_refill(void) {
  bool more;
  __atomic_store_n(&refilled_ns, tscope_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
  do {
    if (!tscope_lock_within(&grow_lock, GROW_TIMEOUT_NS))
      return;
    apply_limit();
    more = refill();
    tscope_unlock(&grow_lock);
  } while (more);
}

/* The chunks that a thread is filling, from the point up to which they are filled. Chunks into
 * which nobody has written since the last time are skipped, so that an idle job writes nothing to
 * the disk. Returns whether there are any others. */
static bool touch_filling(struct tscope_thread *thread) {
  bool busy = false;
  for (size_t i = 0; i < LENGTH_OF(thread->filling); i++) {
    u32 number = __atomic_load_n(&thread->filling[i], __ATOMIC_ACQUIRE);
    if (!number)
      continue;
    u32 bytes = (u32)__atomic_load_n(&tscope_trace_chunk(number - 1)->committed, __ATOMIC_RELAXED);
    if (thread->touched[i].chunk == number && thread->touched[i].bytes == bytes)
      continue;
    busy = true;
    tscope_trace_touch(number - 1, bytes, TSCOPE_CHUNK_BYTES);
    thread->touched[i].chunk = number;
    thread->touched[i].bytes = bytes;
  }
  return busy;
}

/* The chunks that will be used again before the next round, estimated from the last round. */
static void touch_filled(void) {
  static u32 last;
  struct tscope_queue *queue = &tscope_chunk_pool.filled;
  u32 head = load(&queue->head), end = head + 2 * (head - last) + 2, number;
  for (u32 at = head; at != end && tscope_queue_peek(queue, at, &number); at++)
    tscope_trace_touch(number, 0, TSCOPE_CHUNK_BYTES);
  last = head;
}

void tscope_chunk_pool_touch(void) {
  bool busy = false;
  for (struct tscope_thread *thread = tscope_thread_newest(); thread; thread = thread->before)
    busy |= touch_filling(thread);
  if (busy && (load(&tscope_chunk_pool.ring_used) == tscope_chunk_pool.ring_max || no_room()))
    touch_filled();
}

bool tscope_chunk_pool_leave_reserve(void) {
  if (!tscope_lock_within(&grow_lock, GROW_TIMEOUT_NS))
    return false;
  tscope_trace_leave_reserve();
  return true;
}

void tscope_chunk_pool_take_reserve(void) {
  tscope_trace_take_reserve();
  tscope_unlock(&grow_lock);
}

void tscope_chunk_pool_limit(u64 bytes) {
  u64 wanted = __atomic_load_n(&limit_wanted, __ATOMIC_RELAXED);
  while (bytes < wanted && !__atomic_compare_exchange_n(&limit_wanted, &wanted, bytes, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
  if (!tscope_lock_within(&grow_lock, GROW_TIMEOUT_NS))
    return;
  apply_limit();
  tscope_unlock(&grow_lock);
}

/* Nobody uses a chunk that is popped from the queue here; a chunk that a thread got just before
 * stays in the file. So the file is cut back as far as the chunks popped here reach without a
 * gap, and nothing is mapped behind its end any more. */
void tscope_chunk_pool_close(void) {
  if (!tscope_lock_within(&grow_lock, GROW_TIMEOUT_NS))
    return;
  __atomic_store_n(&tscope_chunk_pool.closed, true, __ATOMIC_RELEASE);
  bool ours[TSCOPE_READY_MAX * 2] = {false};
  u32 end = __atomic_load_n(&tscope_trace.chunks, __ATOMIC_ACQUIRE), number;
  const u32 window = TSCOPE_READY_MAX * 2;
  while (tscope_queue_pop(&tscope_chunk_pool.ready, &number))
    if (number < end && end - number <= window)
      ours[end - number - 1] = true;
  u32 unused = 0;
  while (unused < window && ours[unused])
    unused++;
  tscope_trace_cut(end - unused);
  tscope_trace_leave_reserve();
  tscope_unlock(&grow_lock);
}
