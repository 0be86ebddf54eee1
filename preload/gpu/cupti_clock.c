/* SPDX-License-Identifier: MIT */
#include "gpu/cupti_clock.h"

#include <time.h>

#include "record/lock.h"
#include "record/tick_clock.h"

enum {
  TRIES = 3,
  FIRST_TRIES = 20,
  TIGHT_READING_NS = 1000,
  GOOD_READING_NS = 100000,
  STEP_NS = 1000000,
};
static const u64 second_ns = 1000000000;

/* Written by the holder of `writing`; readers try again if `changes` was odd or has changed. */
static struct tscope_lock writing;
static u32 changes;
static struct clock_line line;
static u64 began_ns;

/* The reading from which the rate is measured: as soon as possible, at least BASE_S seconds ago and
 * at most twice that. */
enum { BASE_S = 30 };
static struct clock_line base, next_base;

static u64 distance(u64 a, u64 b) {
  return a > b ? a - b : b - a;
}

struct clock_reading {
  u64 cupti_time, ns, width;
};

/* CUPTI's clock, read between two readings of ours; the narrowest of a few tries. */
static struct clock_reading read_both_clocks(const struct cupti *cupti, int tries) {
  struct clock_reading best = {.width = UINT64_MAX};
  for (int i = 0; i < tries && best.width > TIGHT_READING_NS; i++) {
    uint64_t cupti_time = 0;
    u64 before = tscope_clock_ns(CLOCK_MONOTONIC);
    if (cupti->cuptiGetTimestamp(&cupti_time))
      cupti_time = tscope_clock_ns(CLOCK_REALTIME);
    u64 after = tscope_clock_ns(CLOCK_MONOTONIC);
    if (after - before < best.width)
      best = (struct clock_reading){cupti_time, before + (after - before) / 2, after - before};
  }
  return best;
}

static void publish(const struct clock_line *new) {
  __atomic_store_n(&changes, changes + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(&line.cupti_time, new->cupti_time, __ATOMIC_RELAXED);
  __atomic_store_n(&line.ns, new->ns, __ATOMIC_RELAXED);
  __atomic_store(&line.rate, &new->rate, __ATOMIC_RELAXED);
  __atomic_store_n(&changes, changes + 1, __ATOMIC_RELEASE);
}

/* CLOCK_REALTIME and CLOCK_MONOTONIC run at the same rate and differ by a constant, except for
 * steps. */
static bool is_realtime(const struct clock_reading *reading) {
  u64 ahead = tscope_clock_ns(CLOCK_REALTIME) - tscope_clock_ns(CLOCK_MONOTONIC);
  return distance(reading->cupti_time - ahead, reading->ns) < second_ns;
}

static double rate_between(const struct clock_line *from, const struct clock_reading *to) {
  return (double)(to->ns - from->ns) / (double)(to->cupti_time - from->cupti_time);
}

void cupti_clock_begin(const struct cupti *cupti) {
  const struct timespec pause = {.tv_nsec = 2000000};
  struct clock_reading first = read_both_clocks(cupti, FIRST_TRIES);
  struct clock_line fresh = {first.cupti_time, first.ns, 1};
  if (!is_realtime(&first)) { /* whose rate is not known: at first from two readings */
    nanosleep(&pause, NULL);
    struct clock_reading second = read_both_clocks(cupti, FIRST_TRIES);
    if (second.cupti_time > first.cupti_time)
      fresh.rate = rate_between(&fresh, &second);
  }
  if (!tscope_lock_within(&writing, 100000000))
    return;
  base = next_base = fresh;
  __atomic_store_n(&began_ns, first.ns, __ATOMIC_RELAXED);
  publish(&fresh);
  tscope_unlock(&writing);
}

/* Whether one of the clocks was set meanwhile. A rate from two readings close together cannot show
 * it. */
static bool has_stepped(const struct clock_reading *now, bool rate_is_known) {
  if (now->cupti_time < line.cupti_time)
    return true;
  u64 expected = line.ns + (u64)((double)(now->cupti_time - line.cupti_time) * line.rate);
  return (rate_is_known || line.ns - base.ns > second_ns / 4) &&
         distance(expected, now->ns) > STEP_NS + (now->ns - line.ns) / 1000;
}

static void update_line(const struct clock_reading *now) {
  bool realtime = is_realtime(now);
  struct clock_line fresh = {now->cupti_time, now->ns, realtime ? 1 : line.rate};
  if (has_stepped(now, realtime)) {
    base = next_base = fresh;
  } else if (now->cupti_time > base.cupti_time) {
    if (!realtime)
      fresh.rate = rate_between(&base, now);
    if (now->ns - next_base.ns > BASE_S * second_ns) {
      base = next_base;
      next_base = fresh;
    }
  }
  publish(&fresh);
}

void cupti_clock_update(const struct cupti *cupti) {
  struct clock_reading now = read_both_clocks(cupti, TRIES);
  if (now.width > GOOD_READING_NS || !tscope_lock_within(&writing, 0))
    return;
  if (now.ns > base.ns)
    update_line(&now);
  tscope_unlock(&writing);
}

struct cupti_clock cupti_clock_read(void) {
  struct cupti_clock clock;
  u32 before, after;
  do {
    before = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
    clock.line.cupti_time = __atomic_load_n(&line.cupti_time, __ATOMIC_RELAXED);
    clock.line.ns = __atomic_load_n(&line.ns, __ATOMIC_RELAXED);
    __atomic_load(&line.rate, &clock.line.rate, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    after = __atomic_load_n(&changes, __ATOMIC_RELAXED);
  } while (before & 1 || before != after);
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
  u64 began = __atomic_load_n(&began_ns, __ATOMIC_RELAXED);
  clock.real_ahead = tscope_clock_ns(CLOCK_REALTIME) - now;
  clock.earliest = began > second_ns ? began - second_ns : 0;
  clock.latest = now + second_ns / 10;
  return clock;
}

static bool is_possible(const struct cupti_clock *clock, u64 ns) {
  return ns >= clock->earliest && ns <= clock->latest;
}

/* A time that fits no clock of the session may be on CUPTI's own clock, to which CUPTI falls
 * back. */
u64 cupti_clock_ns(const struct cupti_clock *clock, u64 cupti_time) {
  double since = (double)(i64)(cupti_time - clock->line.cupti_time) * clock->line.rate;
  u64 ns = clock->line.ns + (u64)(i64)since;
  if (is_possible(clock, ns))
    return ns;
  ns = cupti_time - clock->real_ahead;
  return is_possible(clock, ns) ? ns : 0;
}
