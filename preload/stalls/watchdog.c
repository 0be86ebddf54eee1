/* SPDX-License-Identifier: MIT
 *
 * Detects that nothing of the job moves any more: on the helper, once a second, from how far the
 * job's threads have filled their chunks. A process that records is one that moves. If threads
 * write retained records (collectives, phases, steps), only those threads count: another thread
 * that goes on allocating does not hide that the training hangs.
 */
#include <string.h>

#include "format/text_parts.h"
#include "process/process_end.h"
#include "record/families.h"
#include "record/process_trace.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "settings/env.h"
#include "stalls/stall_records.h"
#include "stalls/step_duration.h"
#include "stalls/threads_now.h"

enum {
  LIMIT_STEPS = 20,
  MAX_STALLS_WITH_THREADS = 32, /* stalls of a process that are written with its threads */
  MAX_STALLS = 1024,            /* and that are written at all */
};
enum { RING, RETAINED, FURTHER };

static struct tscope_thread *poller;

static struct {
  u64 looked, moved; /* ticks */
  u64 signature;
  u32 stalls;
  bool written; /* the one that lasts */
  bool again;   /* and its neighbours were checked once more */
} state;

/* How far the chunk is filled that one of a thread's writers writes to. */
static u64 fill_level(const struct tscope_thread *thread, u32 writer) {
  u32 number = __atomic_load_n(&thread->filling[writer], __ATOMIC_ACQUIRE);
  if (!number)
    return 0;
  const u64 *committed = &tscope_trace_chunk(number - 1)->committed;
  return python_mix(number, __atomic_load_n(committed, __ATOMIC_RELAXED));
}

/* Changes when a thread of the job writes a record. What the poller writes itself is not the job's,
 * but for what it passes on of the GPU. */
static u64 current_signature(void) {
  u64 all = 1, trains = 1;
  bool any_trains = false;
  for (const struct tscope_thread *thread = tscope_thread_newest(); thread;
       thread = thread->before) {
    bool own = thread == __atomic_load_n(&poller, __ATOMIC_ACQUIRE);
    u64 marks = thread->number;
    for (u32 i = own ? FURTHER : RING; i < LENGTH_OF(thread->filling); i++)
      marks = python_mix(marks, fill_level(thread, i));
    all = python_mix(all, marks);
    bool trains_here = !own && __atomic_load_n(&thread->filling[RETAINED], __ATOMIC_RELAXED);
    any_trains |= trains_here;
    if (own || trains_here)
      trains = python_mix(trains, marks);
  }
  return any_trains ? trains : all;
}

/* The stretch without movement that is a stall; 0: none is. */
static u64 limit_ns(void) {
  const u64 min_ns = 60000000000, max_s = 1000000000;
  if (strcmp(tscope_env.stall, "off") == 0)
    return 0;
  u64 set_s = leading_number(tscope_env.stall, max_s, NULL);
  return set_s ? set_s * 1000000000u : MAX(LIMIT_STEPS * step_median_ns(), min_ns);
}

static u32 milliseconds(u64 ns) {
  return (u32)MIN(ns / 1000000, UINT32_MAX);
}

static void write_stall(u64 since, u64 now, enum tscope_stall what) {
  if (state.stalls == MAX_STALLS)
    return;
  struct tscope_stall_record stall = {.since = since,
                                      .looked = now,
                                      .stall = ++state.stalls,
                                      .limit_ms = milliseconds(limit_ns()),
                                      .step_ms = milliseconds(step_median_ns())};
  stall_write(&stall, what,
              what == TSCOPE_STALL_NOTHING_MOVED && state.stalls <= MAX_STALLS_WITH_THREADS);
}

/* True when this process was stopped, frozen, or got no processor since the last check. */
static bool was_stopped(u64 now) {
  u64 before = state.looked;
  state.looked = now;
  if (!before || now - before < tscope_ticks_of_s(TSCOPE_GAP_S))
    return false;
  if (!state.written) {
    write_stall(before, now, TSCOPE_STALL_NOT_RUNNING);
    stall_write_end(state.stalls, now);
    state.moved = now;
  }
  return true;
}

/* Whether other families shall add what they know to the stall in progress. */
static void publish_stall(bool lasts) {
  bool whole = lasts && state.stalls <= MAX_STALLS_WITH_THREADS;
  __atomic_store_n(&tscope_stall_now, whole ? state.stalls : 0, __ATOMIC_RELEASE);
}

static void check(u64 now, u64 limit) {
  u64 signature = current_signature();
  if (signature != state.signature || !state.moved) {
    publish_stall(false);
    if (state.written)
      stall_write_end(state.stalls, now);
    state.written = false;
    state.signature = signature;
    state.moved = now;
  } else if (!state.written && tscope_ns_of_ticks(now - state.moved) >= limit) {
    state.written = true;
    state.again = false;
    write_stall(state.moved, now, TSCOPE_STALL_NOTHING_MOVED);
    publish_stall(true);
  } else if (state.written && !state.again && tscope_ns_of_ticks(now - state.moved) >= 2 * limit) {
    state.again = true; /* one of them may have been stopped after this one stopped moving */
    if (state.stalls <= MAX_STALLS_WITH_THREADS)
      stall_write_peers(state.stalls);
  }
}

static void watch(void) {
  static u32 calls;
  u64 limit = limit_ns();
  if (!limit || tscope_trace_has_ended()) {
    publish_stall(false);
    return;
  }
  u64 now = tscope_ticks();
  if (!was_stopped(now) && ++calls % TSCOPE_TICKS_PER_S == 0)
    check(now, limit);
}

static void tick(struct tscope_thread *thread) {
  __atomic_store_n(&poller, thread, __ATOMIC_RELEASE);
}

static void step_ended(struct tscope_thread *thread, u32 steps, bool first) {
  (void)thread, (void)steps;
  step_duration_take(first);
}

const struct tscope_family tscope_stalls_family = {
    .tick = tick,
    .watch = watch,
    .step_ended = step_ended,
};
