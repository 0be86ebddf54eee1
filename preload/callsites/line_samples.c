/* SPDX-License-Identifier: MIT
 *
 * Where the program is, a hundred times a second, and what it does there: the helper reads the
 * frames of the threads that train while they run, without stopping them, and asks the kernel
 * whether they compute, wait, or have no core. So time belongs to a line even where no hooked
 * function is called: in a slow line of the input, in a loop of pure Python.
 *
 * While a thread that trains waits for the GIL, the thread that holds it is sampled too; while it
 * waits for a lock, the other threads are, in turn: one of them may do its work. Forked children,
 * such as a data loader's workers, are sampled in turn, one at every second look. Before a thread
 * trains, while a program imports its libraries, ten looks a second are enough.
 *
 * A record is written when stack or activity differ from the last sample's, else after one second,
 * two, four and so on. The CPU time that all this takes is limited (looking_rate.h), and its
 * records to an eighth of the room for retained records. Where that is not enough, the interval
 * between two looks doubles, and the trace says so.
 */
#include "callsites/call_sites.h"
#include "callsites/looking_rate.h"
#include "callsites/sampled_threads.h"
#include "record/families.h"
#include "record/process_trace.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"
#include "settings/env.h"

enum {
  ROUNDS_PER_S = 10, /* in each, threads are searched */
  ROUND_US = 1000000 / ROUNDS_PER_S,
  LOOKS_PER_CHILD = 2,
  MAX_UNCHANGED_S = 64, /* the same stack is written at least so often */
  RECENT_S = 16,        /* if a thread moved within this time, children are sampled too */
  REPORT_S = 10,
  NOT_WANTED_NS = 100000000,
};

/* Of the helper. */
static struct {
  u32 looks, rounds, interval_us;
  u64 chance;
  u64 looked, looked_at_child, round; /* ticks: the last of each; 0: none yet */
  u64 samples, unreadable, cpu_ns;    /* so far */
  u64 bytes;                          /* of records */
  u64 reported;                       /* ticks */
  struct looking_rate rate;
} sampling = {.interval_us = LEAST_LOOK_INTERVAL_US};

static void write_sample(u64 at, u64 stack, u64 ticks, u32 tid, u16 tag) {
  u64 us = tscope_ns_of_ticks(ticks) / 1000;
  struct tscope_line_sample_record record = {
      .at = at, .stack = stack, .stands_us = (u32)MIN(us, UINT32_MAX), .tid = tid};
  tscope_definitions_write(TSCOPE_REC_LINE_SAMPLE, tag, &record, sizeof(record));
  sampling.bytes += sizeof(record);
}

static void write_run(const struct sampled_thread *thread, struct sample_run *run) {
  if (run->stack && run->unwritten)
    write_sample(run->sampled, run->stack, run->unwritten, thread->tid, run->tag);
  run->unwritten = 0;
}

/* `since`: ticks since the last look; this moment stands for them. */
static void add_moment(struct sampled_thread *thread, const struct thread_moment *moment, u64 now,
                       u64 since) {
  struct sample_run *run = &thread->run;
  if (moment->stack != run->stack || moment->tag != run->tag) {
    write_run(thread, run);
    *run = (struct sample_run){.stack = moment->stack, .tag = moment->tag};
  }
  run->sampled = now;
  run->total += since;
  run->unwritten += since;
  if (run->unwritten < run->write_after)
    return;
  write_run(thread, run);
  u64 after = run->write_after ? 2 * run->write_after : tscope_ticks_of_s(1);
  run->write_after = MIN(after, tscope_ticks_of_s(MAX_UNCHANGED_S));
}

static void count(const struct thread_moment *moment) {
  sampling.samples += moment->stack != 0;
  sampling.unreadable += moment->unread;
}

static bool is_idle(u16 tag) {
  u16 what = tag & TSCOPE_SAMPLE_ACTIVITY;
  return what == TSCOPE_ACTIVITY_LOCK || what == TSCOPE_ACTIVITY_EVENTS;
}

static bool look_at(struct sampled_thread *thread, struct thread_moment *moment) {
  bool seen = sampled_thread_look(thread, moment);
  if (!seen)
    sampled_thread_end(thread);
  return seen;
}

/* A thread for whose sake one that trains waits: it holds the GIL, or is one of `n`. */
static void sample_beside(struct sampled_thread *thread, u64 now, u64 ticks) {
  struct thread_moment moment;
  if (!thread || !look_at(thread, &moment))
    return;
  count(&moment);
  if (moment.stack && !is_idle(moment.tag))
    write_sample(now, moment.stack, ticks, thread->tid, moment.tag | TSCOPE_SAMPLE_BESIDE);
}

/* Ten times a second, for the time that it waited since the last time. */
static void sample_who_has_the_lock(u64 now, u64 since) {
  static u64 waited, looked;
  u32 n = 0;
  waited += since;
  if (now - looked < tscope_ticks_of_s(1) / ROUNDS_PER_S)
    return;
  struct sampled_thread *thread = sampled_thread_beside(&n);
  sample_beside(thread, now, waited * n);
  looked = now;
  waited = 0;
}

static void sample_who_makes_it_wait(const struct thread_moment *moment, u64 now, u64 since) {
  if ((moment->tag & TSCOPE_SAMPLE_ACTIVITY) == TSCOPE_ACTIVITY_GIL)
    sample_beside(sampled_thread_of_state(moment->gil_holder), now, since);
  else if (is_idle(moment->tag))
    sample_who_has_the_lock(now, since);
}

/* Ticks since one of the threads that train last moved. */
static u64 sample_training(u64 now, u64 since) {
  u64 unmoved = UINT64_MAX;
  struct thread_moment waits = {0};
  for (u32 i = 0; i < sampled_threads.n; i++) {
    struct sampled_thread *thread = &sampled_threads.training[i];
    struct thread_moment moment;
    if (!thread->tid)
      continue;
    struct sample_run *run = &thread->run;
    if (thread->is_over || !sampled_thread_look(thread, &moment)) {
      write_run(thread, run);
      sampled_thread_end(thread);
      continue;
    }
    count(&moment);
    add_moment(thread, &moment, now, since);
    unmoved = MIN(run->total, unmoved);
    if (is_idle(moment.tag) || (moment.tag & TSCOPE_SAMPLE_ACTIVITY) == TSCOPE_ACTIVITY_GIL)
      waits = moment;
  }
  if (waits.tag && unmoved < tscope_ticks_of_s(RECENT_S))
    sample_who_makes_it_wait(&waits, now, since);
  return unmoved;
}

/* In turn; stands for the time since the last look at any of them. */
static void sample_child(u64 now) {
  u32 n = 0;
  u64 since = sampling.looked_at_child ? now - sampling.looked_at_child : 0;
  struct thread_moment moment;
  struct sampled_thread *thread = sampled_thread_of_child(&n);
  sampling.looked_at_child = n ? now : 0;
  if (!thread || since > tscope_ticks_of_s(2) || !look_at(thread, &moment))
    return;
  count(&moment);
  if (moment.stack)
    write_sample(now, moment.stack, since * n, (u32)thread->pid, moment.tag);
}

static void report(u64 now) {
  u32 threads = 0;
  for (u32 i = 0; i < sampled_threads.n; i++)
    threads += sampled_threads.training[i].tid != 0;
  struct tscope_line_sampling_record record = {.at = now,
                                               .samples = sampling.samples,
                                               .unreadable = sampling.unreadable,
                                               .cpu_ns = sampling.cpu_ns,
                                               .interval_us = sampling.interval_us,
                                               .threads = threads};
  tscope_definitions_write(TSCOPE_REC_LINE_SAMPLING, 0, &record, sizeof(record));
  sampling.reported = now;
}

/* The records' share of the disk: the interval doubles when half of it is used, and whenever half
 * of the rest is. */
static u32 least_interval_us(void) {
  u64 room = tscope_env.retained_max / 8, left = room > sampling.bytes ? room - sampling.bytes : 0;
  u32 interval = LEAST_LOOK_INTERVAL_US;
  while (interval < MOST_LOOK_INTERVAL_US && left < room / 2) {
    interval *= 2;
    room /= 2;
  }
  return interval;
}

static void adjust_interval(u64 now, u64 now_ns) {
  u32 least = least_interval_us();
  u32 interval = looking_rate_update(&sampling.rate, now_ns, sampling.cpu_ns, sampling.looks,
                                     sampled_threads.any_trains);
  interval = MAX(interval, least);
  if (interval == sampling.interval_us && now - sampling.reported < tscope_ticks_of_s(REPORT_S))
    return;
  sampling.interval_us = interval;
  report(now);
}

static bool is_wanted(void) {
  u8 wanted = __atomic_load_n(&call_sites_wanted, __ATOMIC_ACQUIRE);
  return wanted & 1 << CALL_SITE_SAMPLED && !tscope_trace_has_ended();
}

static u64 ticks_of(u32 us) {
  return us * tscope_clock.hz / 1000000;
}

/* Until the next look. */
static u32 wanted_interval_us(void) {
  bool trains = sampled_threads.any_trains || sampling.interval_us > ROUND_US;
  return trains ? sampling.interval_us : ROUND_US;
}

static bool begin_round(u64 now) {
  if (sampling.round && now - sampling.round < ticks_of(ROUND_US))
    return false;
  sampling.round = now;
  sampled_threads_find(now);
  if (sampling.rounds++ % ROUNDS_PER_S == 0)
    sampled_children_find();
  return true;
}

static void look_now(u64 now, u64 now_ns, u64 cpu_ns) {
  u64 since = sampling.looked ? now - sampling.looked : 0,
      interval = ticks_of(wanted_interval_us());
  if (since > tscope_ticks_of_s(1) && since > 8 * interval) /* the process did not run */
    since = interval;
  sampling.looked = now;
  bool round = begin_round(now);
  u64 unmoved = sample_training(now, since);
  if (sampling.looks++ % LOOKS_PER_CHILD == 0 && unmoved < tscope_ticks_of_s(RECENT_S))
    sample_child(now);
  sampling.cpu_ns += tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  if (round)
    adjust_interval(now, now_ns);
}

/* Whether a look, or the last report, is being made: they are made by different threads. */
static bool taken;

static u64 look(bool own_descriptors, u64 cpu_ns) {
  u64 now_ns = tscope_clock_ns(CLOCK_MONOTONIC);
  if (!is_wanted() || __atomic_exchange_n(&taken, true, __ATOMIC_ACQUIRE))
    return now_ns + NOT_WANTED_NS;
  bool opened = sampled_threads_open(own_descriptors);
  if (opened)
    look_now(tscope_ticks(), now_ns, cpu_ns);
  __atomic_store_n(&taken, false, __ATOMIC_RELEASE);
  return now_ns +
         (opened ? looking_rate_next_ns(wanted_interval_us(), &sampling.chance) : NOT_WANTED_NS);
}

static void write_last(struct tscope_thread *thread) {
  (void)thread;
  if (!sampling.looked || __atomic_exchange_n(&taken, true, __ATOMIC_ACQUIRE))
    return;
  for (u32 i = 0; i < sampled_threads.n; i++)
    write_run(&sampled_threads.training[i], &sampled_threads.training[i].run);
  report(tscope_ticks());
}

const struct tscope_family tscope_line_samples_family = {
    .look = look,
    .end = write_last,
};
