/* SPDX-License-Identifier: MIT */
#include "record/self_cost.h"

#include "record/carry.h"
#include "record/losses.h"
#include "record/process_trace.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

u64 tscope_slow_path_ticks;

static u64 startup_ns, hook_ns;

/* What a hook adds to a call: two clock readings and one record, in memory of this thread. */
static u64 measure_hook(void) {
  enum { ROUNDS = 1024 };
  static struct {
    struct tscope_chunk_header header;
    u8 records[32 * ROUNDS];
  } chunk __attribute__((aligned(64)));
  struct tscope_thread thread = {.tick_shift = tscope_clock.shift, .number = TSCOPE_UNKNOWN};
  tscope_writer_init(&thread.ring, TSCOPE_RING, TSCOPE_CLOCK_TICKS);
  thread.ring.chunk = &chunk.header;
  thread.ring.limit = chunk.records + sizeof(chunk.records);
  thread.ring.base = tscope_ticks() >> thread.ring.shift;
  u64 best = UINT64_MAX;
  for (int attempt = 0; attempt < 4; attempt++) {
    thread.ring.cursor = chunk.records;
    u64 begun = tscope_ticks();
    for (int i = 0; i < ROUNDS; i++) {
      u64 start = tscope_ticks();
      struct tscope_launch_record *launch =
          tscope_reserve(&thread, &thread.ring, start, TSCOPE_REC_LAUNCH, 0, sizeof(*launch));
      if (launch) {
        launch->shape = (u32)i;
        tscope_commit_dur(&thread, &thread.ring, sizeof(*launch), start);
      }
    }
    u64 ticks = tscope_ticks() - begun;
    if (ticks < best)
      best = ticks;
  }
  return (u64)((double)best * 1e9 / (double)tscope_clock.hz / ROUNDS + 0.5);
}

void tscope_self_cost_init(u64 startup) {
  startup_ns = startup;
}

void tscope_self_cost_measure_hook(void) {
  __atomic_store_n(&hook_ns, measure_hook(), __ATOMIC_RELAXED);
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
      .slow_path_ns = (u64)((double)slow * 1e9 / (double)tscope_clock.hz),
      .hook_ns_per_record = __atomic_load_n(&hook_ns, __ATOMIC_RELAXED),
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
