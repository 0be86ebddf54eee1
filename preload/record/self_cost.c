/* SPDX-License-Identifier: MIT */
#include "record/self_cost.h"

#include "record/carry.h"
#include "record/process_trace.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

u64 tscope_slow_path_ticks;

static u64 startup_ns, record_ns, quiet_ns;

/* A thread that records into memory of its own, and what is read between two of its calls so that
 * they find nothing of theirs in the nearest cache: what a job does between two calls displaces it
 * as well. */
static struct {
  struct tscope_chunk_header header;
  u8 records[4096];
  u8 displacing[128 << 10];
} measured __attribute__((aligned(64)));

static struct tscope_thread measured_thread;
static struct tscope_live measured_live = {.on = 1}; /* the process's own may not be on yet */
static struct tscope_live *volatile is_on = &measured_live;

static void nothing(void) {}
static void (*volatile real)(void) = nothing;

static void bare_call(void) {
  real();
}

/* A hooked call as hooks make them, to a function that does nothing. */
__attribute__((always_inline)) static inline void hooked_call(bool records) {
  struct tscope_guard guard;
  struct tscope_thread *thread = &measured_thread;
  tscope_guard_set(&guard, TSCOPE_RETURN_PLACE());
  if (thread->guard || !__atomic_load_n(&is_on->on, __ATOMIC_RELAXED))
    return;
  thread->guard = &guard;
  u64 start = tscope_ticks();
  struct tscope_launch_record *launch =
      records ? tscope_reserve(thread, &thread->ring, start, TSCOPE_REC_LAUNCH, 0, sizeof(*launch))
              : NULL;
  real();
  if (launch) {
    launch->shape = (u32)start;
    tscope_commit_dur(thread, &thread->ring, sizeof(*launch), start);
  }
  tscope_leave(thread);
}

static void quiet_call(void) {
  hooked_call(false);
}

static void recorded_call(void) {
  hooked_call(true);
}

/* Read after all that comes before it, and before all that follows. */
static u64 ordered_ticks(void) {
#if defined(__x86_64__)
  _mm_lfence();
  u64 ticks = tscope_ticks();
  _mm_lfence();
#else
  __asm__ volatile("dsb sy\n\tisb" ::: "memory");
  u64 ticks = tscope_ticks();
  __asm__ volatile("isb" ::: "memory");
#endif
  return ticks;
}

static u64 ticks_of(void (*volatile call)(void)) {
  for (size_t i = 0; i < sizeof(measured.displacing); i += 64)
    (void)*(volatile u8 *)&measured.displacing[i];
  u64 begun = ordered_ticks();
  call();
  return ordered_ticks() - begun;
}

/* Calls in turn, so that a processor that becomes faster or slower meanwhile does so for all. */
struct turns {
  u64 bare, quiet, recorded; /* ticks of all rounds */
};

enum { ROUNDS = 64, ATTEMPTS = 6 };

static struct turns take_turns(void) {
  struct turns turns = {0};
  measured_thread.ring.cursor = measured.records;
  for (int round = 0; round < ROUNDS; round++) {
    turns.bare += ticks_of(bare_call);
    turns.quiet += ticks_of(quiet_call);
    turns.recorded += ticks_of(recorded_call);
  }
  return turns;
}

static u64 ns_of_one(u64 ticks, u64 bare) {
  return ticks > bare ? (tscope_ns_of_ticks(ticks - bare) + ROUNDS / 2) / ROUNDS : 0;
}

void tscope_self_cost_init(u64 startup) {
  startup_ns = startup;
}

void tscope_self_cost_measure_hook(void) {
  measured_thread.tick_shift = tscope_clock.shift;
  tscope_writer_init(&measured_thread.ring, TSCOPE_RING, TSCOPE_CLOCK_TICKS);
  measured_thread.ring.chunk = &measured.header;
  measured_thread.ring.limit = measured.records + sizeof(measured.records);
  measured_thread.ring.base = tscope_ticks() >> measured_thread.ring.shift;
  struct turns best = take_turns(); /* nothing else took the processor, or the least did */
  for (int attempt = 1; attempt < ATTEMPTS; attempt++) {
    struct turns turns = take_turns();
    if (turns.bare + turns.quiet + turns.recorded < best.bare + best.quiet + best.recorded)
      best = turns;
  }
  __atomic_store_n(&record_ns, ns_of_one(best.recorded, best.bare), __ATOMIC_RELAXED);
  __atomic_store_n(&quiet_ns, ns_of_one(best.quiet, best.bare), __ATOMIC_RELAXED);
}

static u64 quiet_calls(void) {
  u64 calls = 0;
  for (struct tscope_thread *thread = tscope_thread_newest(); thread; thread = thread->before)
    calls += __atomic_load_n(&thread->quiet_calls, __ATOMIC_RELAXED);
  return calls;
}

static u64 records_committed(void) {
  u64 records = __atomic_load_n(&tscope_trace.header->lost[TSCOPE_LOSS_RING], __ATOMIC_RELAXED);
  u32 chunks = __atomic_load_n(&tscope_trace.chunks, __ATOMIC_ACQUIRE);
  for (u32 i = 0; i < chunks; i++)
    records += tscope_carry_committed(i) >> 32;
  return records;
}

static void write_cost(u64 helper_cpu_ns) {
  u64 slow = __atomic_load_n(&tscope_slow_path_ticks, __ATOMIC_RELAXED);
  struct tscope_cost_record cost = {
      .records = records_committed(),
      .helper_cpu_ns = helper_cpu_ns,
      .startup_ns = startup_ns,
      .slow_path_ns =
          tscope_ns_of_ticks(slow) + quiet_calls() * __atomic_load_n(&quiet_ns, __ATOMIC_RELAXED),
      .hook_ns_per_record = __atomic_load_n(&record_ns, __ATOMIC_RELAXED),
  };
  tscope_definitions_write(TSCOPE_REC_COST, 0, &cost, sizeof(cost));
}

static void write_losses(void) {
  static u64 written[TSCOPE_LOSS_REASONS];
  tscope_count_lost_early();
  for (u32 reason = 0; reason < TSCOPE_LOSS_REASONS; reason++) {
    u64 lost = __atomic_load_n(&tscope_trace.header->lost[reason], __ATOMIC_RELAXED);
    if (lost == written[reason])
      continue;
    struct tscope_loss_record record = {.records = lost};
    if (tscope_definitions_write(TSCOPE_REC_LOSS, (u16)reason, &record, sizeof(record)))
      written[reason] = lost;
  }
}

void tscope_self_cost_write(u64 helper_cpu_ns) {
  struct tscope_anchor_record anchor = {0};
  tscope_clock_anchor(&anchor);
  tscope_definitions_write(TSCOPE_REC_ANCHOR, 0, &anchor, sizeof(anchor));
  write_cost(helper_cpu_ns);
  write_losses();
}
