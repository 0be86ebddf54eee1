/* SPDX-License-Identifier: MIT */
#include "record/thread.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "record/families.h"
#include "record/kernel_threads.h"
#include "record/lock.h"
#include "record/stack.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

__thread struct tscope_thread *tscope_self __attribute__((tls_model("initial-exec")));

/* The thread is inside tscope, or does not record any more because it ends. */
static __thread bool busy __attribute__((tls_model("initial-exec")));

/* The C library keeps a thread's values of its first keys in the thread itself, and allocates for
 * those of later ones: not in a thread whose first hooked call is in a signal handler that came
 * inside malloc(). So a later key is not used: an ended thread's slot is then found when a new
 * thread needs one. */
enum { KEYS_WITHOUT_ALLOCATION = 32 }; /* PTHREAD_KEY_2NDLEVEL_SIZE, ever since */
static pthread_key_t at_thread_end;
static bool is_told_of_ends;
static struct tscope_lock lock;
static struct tscope_thread *free_slots[TSCOPE_THREAD_SLOTS];
static u32 n_slots, n_free;
static struct tscope_thread *newest;

/* The kernel's numbers of threads that write, each in one of the places behind its own. */
#define WRITERS 1024u
#define WRITER_PLACES 16u
static u32 writers[WRITERS];

bool tscope_thread_busy(void) {
  bool was = busy;
  busy = true;
  return !was;
}

void tscope_thread_idle(void) {
  busy = false;
}

static size_t aligned(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

static size_t family_bytes(void) {
  size_t bytes = 0;
  TSCOPE_FOR_EACH_FAMILY(i, thread_bytes)
    bytes += aligned(tscope_families[i]->thread_bytes);
  return bytes;
}

static struct tscope_thread *new_slot(void) {
  if (n_slots == TSCOPE_THREAD_SLOTS)
    return NULL;
  u8 *memory = mmap(NULL, sizeof(struct tscope_thread) + family_bytes(), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return NULL;
  struct tscope_thread *thread = (struct tscope_thread *)(void *)memory;
  memory += sizeof(*thread);
  TSCOPE_FOR_EACH_FAMILY(i, thread_bytes) {
    thread->family[i] = memory;
    memory += aligned(tscope_families[i]->thread_bytes);
  }
  thread->number = ++n_slots;
  thread->before = newest;
  __atomic_store_n(&newest, thread, __ATOMIC_RELEASE);
  thread->tick_shift = tscope_clock.shift;
  tscope_writer_init(&thread->ring, TSCOPE_RING, TSCOPE_CLOCK_TICKS);
  tscope_writer_init(&thread->retained, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS);
  return thread;
}

static u32 *writer_place(u32 tid) {
  for (u32 i = 0; i < WRITER_PLACES; i++) {
    u32 *place = &writers[(tid + i) % WRITERS];
    if (__atomic_load_n(place, __ATOMIC_RELAXED) == tid)
      return place;
  }
  return NULL;
}

bool tscope_thread_writes(u32 tid) {
  return writer_place(tid) != NULL;
}

/* If all its places are taken, another thread is forgotten. */
static void add_writer(u32 tid) {
  for (u32 i = 0; i < WRITER_PLACES; i++) {
    u32 none = 0;
    if (__atomic_compare_exchange_n(&writers[(tid + i) % WRITERS], &none, tid, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return;
  }
  __atomic_store_n(&writers[tid % WRITERS], tid, __ATOMIC_RELAXED);
}

static void remove_writer(u32 tid) {
  u32 *place = writer_place(tid);
  if (place)
    __atomic_store_n(place, 0, __ATOMIC_RELAXED);
}

/* A slot whose thread has ended unnoticed; NULL if none is found. The lock is held. Each question
 * is a system call: only some are asked, and the next search goes on behind them. */
static struct tscope_thread *take_ended(void) {
  static struct tscope_thread *next;
  for (u32 asked = 0; !is_told_of_ends && asked < n_slots && asked < 32; asked++) {
    struct tscope_thread *thread = next ? next : newest;
    next = thread->before;
    if (thread->tid && tscope_tid_is_gone(thread->tid)) {
      remove_writer(thread->tid);
      thread->tid = 0;
      return thread;
    }
  }
  return NULL;
}

/* Of whole words. ThreadSanitizer in a program sees calls of memset(), but not that a lock of ours
 * orders them. */
static void clear(void *memory, size_t bytes) {
  for (u64 *word = memory; (u8 *)word < (u8 *)memory + bytes; word++)
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

/* The thread's chunks stay with the slot; the families' memory starts empty for the next thread. */
static void clear_slot(struct tscope_thread *thread) {
  for (size_t i = 0; i < LENGTH_OF(thread->more); i++) {
    if (thread->more[i])
      tscope_writer_retire(thread->more[i]);
    thread->more[i] = NULL;
  }
  thread->guard = NULL;
  TSCOPE_FOR_EACH_FAMILY(i, thread_bytes)
    clear(thread->family[i], aligned(tscope_families[i]->thread_bytes));
}

static struct tscope_thread *acquire_slot(void) {
  if (!tscope_lock(&lock))
    return NULL;
  struct tscope_thread *thread = n_free ? free_slots[--n_free] : NULL;
  struct tscope_thread *ended = thread ? NULL : take_ended();
  if (!thread && !ended)
    thread = new_slot();
  tscope_unlock(&lock);
  if (ended)
    clear_slot(ended);
  return ended ? ended : thread;
}

static void release_slot(void *slot) {
  struct tscope_thread *thread = slot;
  busy = true;
  tscope_self = NULL;
  if (!tscope_is_live())
    return;
  clear_slot(thread);
  if (tscope_lock(&lock)) {
    remove_writer(thread->tid);
    thread->tid = 0;
    free_slots[n_free++] = thread;
    tscope_unlock(&lock);
  }
}

struct tscope_thread *tscope_thread_newest(void) {
  return __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
}

void tscope_threads_init(void) {
  is_told_of_ends = pthread_key_create(&at_thread_end, release_slot) == 0 &&
                    at_thread_end < KEYS_WITHOUT_ALLOCATION;
}

/* The calling thread has this slot, or none. */
static void set_slot(struct tscope_thread *thread) {
  if (is_told_of_ends)
    pthread_setspecific(at_thread_end, thread);
}

struct tscope_thread *tscope_thread_here(void) {
  if (tscope_self)
    return tscope_self;
  if (!tscope_thread_busy()) {
    tscope_count_lost(TSCOPE_LOSS_REENTRY, 1);
    return NULL;
  }
  struct tscope_thread *thread = acquire_slot();
  if (thread) {
    tscope_stack_begin(&thread->stack);
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    set_slot(thread);
    u32 tid = tscope_tid();
    __atomic_store_n(&thread->tid, tid, __ATOMIC_RELEASE);
    add_writer(tid);
    tscope_definitions_write_thread(thread->number, tid, name);
    tscope_self = thread;
  } else {
    tscope_count_lost(TSCOPE_LOSS_THREADS, 1);
  }
  tscope_thread_idle();
  return thread;
}

void tscope_thread_hand_over(void) {
  tscope_self->tid = 0;
  set_slot(NULL);
  tscope_self = NULL;
}

void tscope_thread_take_over(struct tscope_thread *thread) {
  tscope_stack_begin(&thread->stack);
  set_slot(thread);
  thread->tid = tscope_tid();
  tscope_self = thread;
}
