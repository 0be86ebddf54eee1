/* SPDX-License-Identifier: MIT
 *
 * What a hook needs, and the whole of the hot path. A hook reads
 *
 *   struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
 *   if (!thread)
 *     return real(...);                         // dormant, off, or called from another hook
 *   u64 start = tscope_ticks();
 *   result = real(...);
 *   struct tscope_launch_record *launch =
 *       tscope_reserve(thread, &thread->ring, start, TSCOPE_REC_LAUNCH, stream, sizeof(*launch));
 *   if (launch) {
 *     launch->shape = shape;
 *     tscope_commit_dur(thread, &thread->ring, sizeof(*launch), start);
 *   }
 *   tscope_leave(thread);
 *
 * The thread's state proves that recording is allowed: every recording function needs it, and only
 * tscope_enter() returns it. No lock, system call or allocation happens here; a record becomes
 * visible with the one release store in tscope_commit().
 */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "format/tscope_format.h"
#include "inspect/kept_errno.h"
#include "record/lock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define TSCOPE_EXPORT __attribute__((visibility("default")))
#define TSCOPE_LIKELY(x) __builtin_expect(!!(x), 1)
#define TSCOPE_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TSCOPE_NOINLINE __attribute__((noinline, cold))
/* For functions that a sanitizer's runtime calls before it is set up. */
#define TSCOPE_NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* A truth that does not change in the life of the process: `expression` is evaluated at the first
 * call, and perhaps by several threads at once. */
#define TSCOPE_ONCE(expression)                                                                    \
  ({                                                                                               \
    static u8 known_; /* 1: no, 2: yes */                                                          \
    u8 now_ = __atomic_load_n(&known_, __ATOMIC_RELAXED);                                          \
    if (TSCOPE_UNLIKELY(!now_)) {                                                                  \
      now_ = (expression) ? 2 : 1;                                                                 \
      __atomic_store_n(&known_, now_, __ATOMIC_RELAXED);                                           \
    }                                                                                              \
    now_ == 2;                                                                                     \
  })

/* Everything below is internal to the shim: it is reached without the indirection that exported
 * names need. */
#pragma GCC visibility push(hidden)

/* Whether a call may wake a dormant process. Only calls that only training processes make may do
 * that. */
enum tscope_wake { TSCOPE_QUIET, TSCOPE_WAKES };

/* The chunk that a thread is filling for one retention. `base` and `committed` mirror the chunk
 * header so that the hot path reads this cache line only. */
struct tscope_writer {
  u8 *cursor;
  u8 *limit; /* a record begins before it, and ends before it except for the word of a long duration
              */
  u64 base;
  u64 committed;
  struct tscope_chunk_header *chunk;
  u32 sequence;
  u8 retention; /* enum tscope_retention */
  u8 clock;     /* enum tscope_chunk_clock */
  u8 shift;     /* converts readings of the clock to its units */
};

/* Is in the stack frame of the outermost hook in progress. Once that frame has ended, it is
 * possible to see that it was overwritten. */
struct tscope_guard {
  u64 check;
  const void *const *place; /* where the return address of the hook's function is stored */
  const void *returns_to;
};

/* The guard of a thread whose calls are never recorded. */
#define TSCOPE_GUARD_ALWAYS ((const struct tscope_guard *)UINTPTR_MAX)

/* A thread's own stack, as far as it is known: `high` is NULL until it is known. */
struct tscope_stack {
  const char *low, *high;
  const char *at;  /* an address in it, above all frames */
  const void *top; /* what is right above it; for the first thread an address below it: no other
                      stack is above that one */
};

struct tscope_thread {
  const struct tscope_guard *guard; /* NULL: no hook is in progress; see tscope_guard_is_active() */
  u32 tick_shift;
  u32 number;
  u32 tid; /* the kernel's; 0 while no thread has the slot */
  struct tscope_writer ring;
  struct tscope_writer retained;
  bool launches_inside; /* in a hooked call of a library whose kernel launches no other hook sees:
                           those launches are recorded although the guard is set */
  u8 via;               /* enum tscope_via: how the hooked call in progress came */
  const void *real;     /* ... and the function that it goes on to */
  u32 chunks[2];        /* chunks begun so far, retained and ring */
  u64 quiet_calls; /* hooked so far that wrote no record, of those made as often as operators */
  struct tscope_writer *more[2]; /* additional writers, beside the two above, that hold a chunk */
  u32 filling[4]; /* 1 + the number of the chunk that each writer fills, 0 for none */
  struct {
    u32 chunk, bytes;
  } touched[4];     /* what the helper last saw of those */
  void *family[12]; /* per-family memory, made at thread set-up; see families.h */
  struct tscope_stack stack;
  struct tscope_thread *before; /* the one set up before it; its slot stays */
} __attribute__((aligned(64)));

/* A page that the kernel wipes in every fork child, however the child was made. There `on` is 0, so
 * a child is dormant from its first instruction. */
struct tscope_live {
  u8 on;
  u8 waking; /* a thread is at work to set `on` */
};

extern __thread struct tscope_thread *tscope_self __attribute__((tls_model("initial-exec")));
extern struct tscope_live *tscope_live;
extern u8 tscope_tick_shift;

/* Raw tick clock of this process. Never fails. */
u64 tscope_ticks_slow(void);
extern bool tscope_ticks_are_monotonic_clock;

static inline u64 tscope_ticks(void) {
#if defined(__x86_64__)
  if (TSCOPE_LIKELY(!tscope_ticks_are_monotonic_clock))
    return __rdtsc();
#elif defined(__aarch64__)
  if (TSCOPE_LIKELY(!tscope_ticks_are_monotonic_clock)) {
    u64 ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return tscope_ticks_slow();
}

/* Whether this process records, as far as this thread knows. */
static inline bool tscope_is_live(void) {
  return __atomic_load_n(&__atomic_load_n(&tscope_live, __ATOMIC_RELAXED)->on, __ATOMIC_RELAXED);
}

/* Where the caller's stack ended when it called the function in which this is used. It is the same
 * for all functions that one function calls, and lower for the functions that those call. (The
 * frame address cannot be used: on aarch64 it is lower by the size of the frame.) */
#define TSCOPE_FRAME() ((const char *)__builtin_dwarf_cfa())

/* Where the return address of the function in which this is used is stored. */
#if defined(__x86_64__)
#define TSCOPE_RETURN_PLACE() ((const void *const *)(const void *)TSCOPE_FRAME() - 1)
#else
#define TSCOPE_RETURN_PLACE() ((const void *const *)__builtin_frame_address(0) + 1)
#endif

/* Always inline: it reads what may be a guard no more, in functions that no sanitizer watches. */
__attribute__((always_inline)) static inline u64
tscope_guard_check(const struct tscope_guard *guard) {
  return (u64)(uintptr_t)guard ^ (u64)(uintptr_t)guard->place ^ (u64)(uintptr_t)guard->returns_to ^
         0x7473636f70650a5eull;
}

__attribute__((always_inline)) static inline void tscope_guard_set(struct tscope_guard *guard,
                                                                   const void *const *place) {
  guard->place = place;
  guard->returns_to = *place;
  guard->check = tscope_guard_check(guard);
}

/* Whether the hook of a guard is still in progress, seen from a hook at `frame`. */
bool tscope_guard_is_active(const struct tscope_thread *thread, const struct tscope_guard *guard,
                            const char *frame);

/* The same of the thread's own guard, which is set. If that hook was left by a jump, so were the
 * locks that it had. */
bool tscope_hook_in_progress(const struct tscope_thread *thread, const char *frame);

/* Sets up the process and the thread, if that is still to do. NULL if recording is not possible;
 * errno is preserved. */
struct tscope_thread *tscope_enter_slow(enum tscope_wake wake, const struct tscope_guard *guard,
                                        const char *frame);

/* The thread's state, or NULL if the caller must only forward the call. To be left with
 * tscope_leave() in the same block. The guard says which hook is in progress. So a call that a
 * hooked library makes inside a hooked call is not recorded twice, nor a call by a signal handler
 * that came in between. If the hook was left by a longjmp or an exception, the guard proves nothing
 * any more: see tscope_guard_is_active(). */
#define tscope_enter(wake)                                                                         \
  tscope_enter_guarded((wake), &(struct tscope_guard){0}, TSCOPE_RETURN_PLACE(), TSCOPE_FRAME())

__attribute__((always_inline)) static inline struct tscope_thread *
tscope_enter_guarded(enum tscope_wake wake, struct tscope_guard *guard, const void *const *place,
                     const char *frame) {
  struct tscope_thread *thread = tscope_self;
  tscope_guard_set(guard, place);
  if (TSCOPE_UNLIKELY(!thread || !tscope_is_live()))
    return tscope_enter_slow(wake, guard, frame);
  if (TSCOPE_UNLIKELY(thread->guard != NULL) && tscope_hook_in_progress(thread, frame))
    return NULL;
  thread->guard = guard;
  thread->launches_inside = false; /* an exception may have left it */
  return thread;
}

/* The same for a hook of two functions: the first enters, the second leaves. `guard` lies in the
 * frame of the function that calls both. */
#define tscope_enter_for(wake, guard)                                                              \
  tscope_enter_guarded((wake), (guard), (const void *const *)&(guard)->place, TSCOPE_FRAME())

/* The thread's state for a kernel launched from inside a hooked call in which kernels are recorded;
 * else NULL. The guard does not change: do not leave. */
__attribute__((always_inline)) static inline struct tscope_thread *tscope_enter_inside(void) {
  struct tscope_thread *thread = tscope_self;
  return thread && thread->launches_inside && tscope_is_live() ? thread : NULL;
}

/* For hooks that mostly write nothing and are called as often as operators: what they cost counts.
 */
static inline void tscope_count_quiet_call(void) {
  struct tscope_thread *thread = tscope_self;
  if (TSCOPE_LIKELY(thread != NULL))
    __atomic_store_n(&thread->quiet_calls, thread->quiet_calls + 1, __ATOMIC_RELAXED);
}

static inline void tscope_leave(struct tscope_thread *thread) {
  thread->guard = NULL;
}

/* Gets the writer a chunk with room for `bytes`, with a base relative to which `units` can be
 * expressed. NULL if there is none; then the loss is counted. */
void *tscope_reserve_slow(struct tscope_thread *thread, struct tscope_writer *writer, u64 units,
                          u8 type, u16 tag, u32 bytes);

/* Room for one record of `bytes` (a multiple of 8) that starts at `start` (raw ticks, or
 * nanoseconds for a writer on CLOCK_MONOTONIC), header filled in. NULL if it cannot be recorded.
 * Nothing is visible until tscope_commit(). At most one reservation per writer is open. */
__attribute__((always_inline)) static inline void *tscope_reserve(struct tscope_thread *thread,
                                                                  struct tscope_writer *writer,
                                                                  u64 start, u8 type, u16 tag,
                                                                  u32 bytes) {
  tscope_check_no_lock();
  u64 units = start >> writer->shift;
  u64 relative = units - writer->base;
  if (TSCOPE_UNLIKELY(writer->limit - writer->cursor < (ptrdiff_t)bytes || relative > UINT32_MAX))
    return tscope_reserve_slow(thread, writer, units, type, tag, bytes);
  struct tscope_record *record = (struct tscope_record *)writer->cursor;
  *record = (struct tscope_record){
      .type = type, .words = (u8)(bytes / 8), .tag = tag, .time = (u32)relative};
  return record;
}

__attribute__((always_inline)) static inline void tscope_commit(struct tscope_writer *writer,
                                                                u32 bytes) {
  writer->cursor += bytes;
  writer->committed += (1ull << 32) + bytes;
  __atomic_store_n(&writer->chunk->committed, writer->committed, __ATOMIC_RELEASE);
}

/* Prepares an additional writer of this thread, for records on another clock than that of the
 * thread's own two writers, such as GPU spans in nanoseconds. It is in the thread's family
 * memory, gets its first chunk at its first reservation, and shares the thread's chunk numbering
 * for its retention. GPU spans arrive out of order by up to seconds, so a base on CLOCK_MONOTONIC
 * leaves room before and after the record for which it is made. */
static inline void tscope_writer_init(struct tscope_writer *writer, enum tscope_retention retention,
                                      enum tscope_chunk_clock clock) {
  *writer = (struct tscope_writer){.retention = (u8)retention,
                                   .clock = (u8)clock,
                                   .shift = clock == TSCOPE_CLOCK_TICKS ? tscope_tick_shift : 0};
}

/* tscope_commit() for a record whose u32 `dur`, the first field after the header, is too small for
 * the duration: adds the whole duration as one more word. Every chunk keeps this word free after
 * the last record. */
static inline void tscope_commit_long(struct tscope_writer *writer, u32 bytes, u64 dur) {
  struct tscope_record *record = (struct tscope_record *)writer->cursor;
  record->words++;
  *(u64 *)(void *)(writer->cursor + bytes) = dur;
  tscope_commit(writer, bytes + 8);
}

/* Since `start`, in the units of the thread's records. */
static inline u64 tscope_elapsed(const struct tscope_thread *thread, u64 start) {
  return (tscope_ticks() - start) >> thread->tick_shift;
}

/* Sets `dur`, the u32 right after the header of the record reserved in `writer`, to the time since
 * `start`, and commits the record, with one more word if the duration needs it. */
__attribute__((always_inline)) static inline void
tscope_commit_dur(const struct tscope_thread *thread, struct tscope_writer *writer, u32 bytes,
                  u64 start) {
  u64 units = tscope_elapsed(thread, start);
  u32 *dur = (u32 *)(void *)(writer->cursor + sizeof(struct tscope_record));
  if (TSCOPE_LIKELY(units < TSCOPE_DUR_LONG)) {
    *dur = (u32)units;
    tscope_commit(writer, bytes);
  } else {
    *dur = TSCOPE_DUR_LONG;
    tscope_commit_long(writer, bytes, units);
  }
}

/* Opens a retained span whose u64 `dur` is TSCOPE_DUR_PENDING until tscope_span_close(). The record
 * is committed before this returns, so the trace of a killed process shows the open span. `record`
 * is the whole struct, filled in except for its header and dur; dur must be the first field after
 * the header. Returns the address of dur, or NULL. Retained chunks are never reused, so the pointer
 * stays valid until the process ends. */
u64 *tscope_span_open(struct tscope_thread *thread, u64 start, u8 type, u16 tag, void *record,
                      u32 bytes);

static inline void tscope_span_close(const struct tscope_thread *thread, u64 *dur, u64 start) {
  if (dur)
    __atomic_store_n(dur, tscope_elapsed(thread, start), __ATOMIC_RELEASE);
}

/* The record of an open span; NULL of NULL. */
static inline void *tscope_span_record(u64 *dur) {
  return dur ? (void *)((u8 *)dur - sizeof(struct tscope_record)) : NULL;
}

/* Writes and commits a whole retained record at once; for rare records. False if it was lost. */
bool tscope_retain(struct tscope_thread *thread, u64 start, u8 type, u16 tag, void *record,
                   u32 bytes);

/* Number of an interned string; 0 for NULL, or if the table is full. Writes a STRING record the
 * first time. Takes a lock, for which only threads that intern at the same time compete: never call
 * it for every event. */
u32 tscope_string(struct tscope_thread *thread, const char *text);
u32 tscope_string_n(struct tscope_thread *thread, const char *text, size_t bytes);

/* Writes one fact about the process; `value` NULL is ignored. */
void tscope_info(struct tscope_thread *thread, enum tscope_info key, const char *value,
                 const char *detail);

/* A function to be found at run time; zero-initialised but for its names. */
struct tscope_symbol {
  const char *name;
  const char *const *sonames; /* NULL-terminated; tried last, with RTLD_NOLOAD */
  void *address;
};

/* The real function behind a hook: the next in the search order, else from the libraries that the
 * caller of the hook links, else from an already loaded library with a known soname. NULL if there
 * is none: then return an error of the API's own kind. Preserves errno. Waits for
 * no lock of the dynamic linker, unless several libraries that were loaded later define it. */
void *tscope_resolve_slow(struct tscope_symbol *symbol, const void *return_address);

static inline void *tscope_resolve(struct tscope_symbol *symbol, const void *return_address) {
  void *address = __atomic_load_n(&symbol->address, __ATOMIC_RELAXED);
  return TSCOPE_LIKELY(address != NULL) ? address : tscope_resolve_slow(symbol, return_address);
}

/* How a caller reaches a hooked function of a library of which a process may hold several copies:
 * through the linker, which binds to tscope's exported wrapper; or through a look-up of its name in
 * a library's handle, which returns a second wrapper. Each has its own real function, so that a
 * call goes on to the copy that its caller meant. */
enum tscope_via { TSCOPE_VIA_LINKER, TSCOPE_VIA_DLSYM, TSCOPE_VIAS };

/* tscope_resolve() for these: if a library is loaded several times, the function to which the
 * linker would have bound this caller. */
void *tscope_resolve_copy_slow(struct tscope_symbol *symbol, const void *return_address);

static inline void *tscope_resolve_copy(struct tscope_symbol *symbol, const void *return_address) {
  void *address = __atomic_load_n(&symbol->address, __ATOMIC_RELAXED);
  return TSCOPE_LIKELY(address != NULL) ? address
                                        : tscope_resolve_copy_slow(symbol, return_address);
}

/* A function of the copy of the library to which the hooked call in progress goes on, for queries
 * about its handles. `symbols` has one for each enum tscope_via. `thread` may be NULL: then no
 * hooked call is in progress. NULL if there is no such function. */
void *tscope_query_function_slow(struct tscope_symbol *symbol, const struct tscope_thread *thread);

static inline void *tscope_query_function(struct tscope_symbol symbols[TSCOPE_VIAS],
                                          const struct tscope_thread *thread) {
  struct tscope_symbol *symbol = &symbols[thread ? thread->via : TSCOPE_VIA_LINKER];
  void *address = __atomic_load_n(&symbol->address, __ATOMIC_RELAXED);
  return TSCOPE_LIKELY(address != NULL) ? address : tscope_query_function_slow(symbol, thread);
}

#define TSCOPE_QUERY(name_, sonames_)                                                              \
  { {.name = (name_), .sonames = (sonames_)}, {.name = (name_), .sonames = (sonames_)}, }

/* A function that tscope itself calls, of a library with one of these sonames; NULL if there is no
 * such function. The second: of the copy that tscope_query_function() finds. */
#define TSCOPE_FUNCTION(name_, sonames_)                                                           \
  ({                                                                                               \
    static struct tscope_symbol symbol_ = {.name = (name_), .sonames = (sonames_)};                \
    tscope_resolve(&symbol_, NULL);                                                                \
  })
#define TSCOPE_FUNCTION_OF_COPY(name_, sonames_, thread_)                                          \
  ({                                                                                               \
    static struct tscope_symbol symbols_[] = TSCOPE_QUERY((name_), (sonames_));                    \
    tscope_query_function(symbols_, (thread_));                                                    \
  })

/* Records that a call failed, for the first failures of a process; `what` says what the call was
 * for. errno is preserved. */
TSCOPE_NOINLINE void tscope_failed_call(struct tscope_thread *thread, enum tscope_failed_call whose,
                                        const char *what, i32 result);

/* Counts records that a hook could not keep. Safe from any thread; nothing is written here. */
void tscope_count_lost(enum tscope_loss reason, u64 records);

/* Moves the losses from before there was a trace into the trace. */
void tscope_count_lost_early(void);

/* Reads the GPU clock source's own clock in nanoseconds, for ANCHOR records; NULL if there is none.
 * Set with release order, once it can be called from any thread. */
extern u64 (*tscope_gpu_clock_now)(void);

/* Turns tscope off in this process until it ends, with one line on stderr that says why. */
void tscope_turn_off(const char *why);

/* From here on lines go only to the file that is standard error now. */
void tscope_log_begin(void);

/* One line on stderr if TSCOPE_VERBOSE allows it; level 0 always prints. */
void tscope_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#pragma GCC visibility pop
