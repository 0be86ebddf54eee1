/* SPDX-License-Identifier: MIT
 *
 * Notices that nothing of the job moves any more: on the helper, once a second, by looking at how
 * far the chunks are filled that the job's threads write to. A process that records is one that
 * moves. Where threads write retained records (collectives, phases, steps), those threads count
 * alone: a thread beside them that goes on allocating does not hide that the training stands still.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "callsites/known_stacks.h"
#include "callsites/python_here.h"
#include "process/step_duration.h"
#include "record/families.h"
#include "record/process_trace.h"
#include "record/stall_now.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "settings/env.h"
#include "stalls/stall_records.h"

enum {
  LOOKS_PER_SECOND = 10, /* watch() is called so often */
  LEAST_S = 60,
  STEPS = 20,
  GAP_S = 5,              /* a helper that did not run for so long: its process did not */
  WITH_THREADS_MOST = 32, /* stalls of a process that are written with its threads */
  WRITTEN_MOST = 1024,    /* and that are written at all */
};
enum { RING, RETAINED, FURTHER };

static struct tscope_thread *ticker;

static struct {
  u64 looked, moved; /* ticks */
  u64 signature;
  u32 stalls;
  bool written; /* the one that lasts */
  bool again;   /* and its neighbours were looked at once more */
} state;

static u64 mix(u64 hash, u64 word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

/* How far the chunk is filled that one of a thread's writers writes to. */
static u64 mark_of(const struct tscope_thread *thread, u32 writer) {
  u32 number = __atomic_load_n(&thread->filling[writer], __ATOMIC_ACQUIRE);
  if (!number)
    return 0;
  const u64 *committed = &tscope_trace_chunk(number - 1)->committed;
  return mix(number, __atomic_load_n(committed, __ATOMIC_RELAXED));
}

/* Changes when a thread of the job writes a record. What the ticker writes itself is not the job's,
 * but for what it passes on of the GPU. */
static u64 signature_now(void) {
  u64 all = 1, trains = 0;
  for (const struct tscope_thread *thread = tscope_thread_newest(); thread;
       thread = thread->before) {
    bool own = thread == __atomic_load_n(&ticker, __ATOMIC_ACQUIRE);
    u64 marks = thread->number;
    for (u32 i = own ? FURTHER : RING; i < sizeof(thread->filling) / sizeof(*thread->filling); i++)
      marks = mix(marks, mark_of(thread, i));
    all = mix(all, marks);
    if (own || __atomic_load_n(&thread->filling[RETAINED], __ATOMIC_RELAXED))
      trains = mix(trains, marks);
  }
  return trains ? trains : all;
}

/* The stretch without movement that is a stall, in seconds; 0: none is. */
static double limit_s(void) {
  if (strcmp(tscope_env.stall, "off") == 0)
    return 0;
  double steps_s = STEPS * (double)tscope_step_median_ns() / 1e9;
  double set_s = (double)strtoul(tscope_env.stall, NULL, 10);
  return set_s > 0 ? set_s : steps_s > LEAST_S ? steps_s : LEAST_S;
}

static double seconds(u64 ticks) {
  return (double)ticks / (double)tscope_clock.hz;
}

static u32 milliseconds(double s) {
  return s < 4e6 ? (u32)(s * 1e3) : UINT32_MAX;
}

static void write_stall(u64 since, u64 now, enum tscope_stall what) {
  if (state.stalls == WRITTEN_MOST)
    return;
  struct tscope_stall_record stall = {.since = since,
                                      .looked = now,
                                      .stall = ++state.stalls,
                                      .limit_ms = milliseconds(limit_s()),
                                      .step_ms =
                                          milliseconds((double)tscope_step_median_ns() / 1e9)};
  stall_write(&stall, what,
              what == TSCOPE_STALL_NOTHING_MOVED && state.stalls <= WITH_THREADS_MOST);
}

/* True when this process was stopped, frozen, or got no processor since the last look. */
static bool was_stopped(u64 now) {
  u64 before = state.looked;
  state.looked = now;
  if (!before || seconds(now - before) < GAP_S)
    return false;
  if (!state.written) {
    write_stall(before, now, TSCOPE_STALL_NOT_RUNNING);
    stall_write_end(state.stalls, now);
    state.moved = now;
  }
  return true;
}

/* Whether others shall add to the stall that lasts what they know. */
static void tell_others(bool lasts) {
  bool whole = lasts && state.stalls <= WITH_THREADS_MOST;
  __atomic_store_n(&tscope_stall_now, whole ? state.stalls : 0, __ATOMIC_RELEASE);
}

static void look(u64 now, double limit) {
  u64 signature = signature_now();
  if (signature != state.signature || !state.moved) {
    tell_others(false);
    if (state.written)
      stall_write_end(state.stalls, now);
    state.written = false;
    state.signature = signature;
    state.moved = now;
  } else if (!state.written && seconds(now - state.moved) >= limit) {
    state.written = true;
    state.again = false;
    write_stall(state.moved, now, TSCOPE_STALL_NOTHING_MOVED);
    tell_others(true);
  } else if (state.written && !state.again && seconds(now - state.moved) >= 2 * limit) {
    state.again = true; /* one of them may have been stopped after this one stood still */
    if (state.stalls <= WITH_THREADS_MOST)
      stall_write_peers(state.stalls);
  }
}

static void watch(void) {
  static u32 looks;
  double limit = limit_s();
  if (limit <= 0 || stall_is_over()) {
    tell_others(false);
    return;
  }
  u64 now = tscope_ticks();
  if (!was_stopped(now) && ++looks % LOOKS_PER_SECOND == 0)
    look(now, limit);
}

static void wake(struct tscope_thread *thread) {
  (void)thread;
  if (strcmp(tscope_env.stall, "off") == 0)
    return;
  if (strcmp(tscope_env.stall, "auto") != 0 && strtoul(tscope_env.stall, NULL, 10) == 0)
    tscope_say(0, "TSCOPE_STALL=%.40s is not valid; using auto", tscope_env.stall);
  const char *why = python_here_find();
  if (!why && !known_stacks_ready())
    why = "no memory";
  __atomic_store_n(&stall_python_why, why, __ATOMIC_RELEASE);
}

static void tick(struct tscope_thread *thread) {
  if (ticker)
    return;
  __atomic_store_n(&stall_ticker_tid, (u32)syscall(SYS_gettid), __ATOMIC_RELAXED);
  __atomic_store_n(&ticker, thread, __ATOMIC_RELEASE);
}

const struct tscope_family tscope_stalls_family = {
    .name = "stalls",
    .wake = wake,
    .tick = tick,
    .watch = watch,
};
