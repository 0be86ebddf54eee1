/* SPDX-License-Identifier: MIT
 *
 * A program that asks again and again whether gloo's work is done (is_completed()) waits for it,
 * and calls nothing that waits. The wait is from the first no to the first yes, as far as the
 * thread does nothing else between two questions than sleep a little, or ask again.
 */
#include "record/tick_clock.h"
#include "torch/torch_family.h"

#define SPIN_NS 100000     /* so soon after the last question there is no time to work */
#define ASKING_NS 200000   /* of CPU time that a sleep and a question take at most */
#define SLEEP_NS 100000000 /* who sleeps for longer does something else */
#define QUESTIONS 3        /* fewer may be made beside work of the thread's own */

static u64 ns_since(u64 ticks, u64 now) {
  return now > ticks ? tscope_ns_of_ticks(now - ticks) : 0;
}

/* Begins anew with this question: what was recorded until now stays as it is. */
static void begin_polls(struct tscope_thread *thread, struct torch_polls *polls, u64 now) {
  polls->dur = NULL;
  polls->questions = 0;
  polls->first = polls->at_cpu = now;
  polls->cpu_ns = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  polls->recorded = thread->retained.cursor;
}

/* Whether the thread did nothing since its last question. Its CPU clock is read only after a pause:
 * without one there was hardly more time than the question took. */
static bool only_asked(const struct tscope_thread *thread, struct torch_polls *polls, u64 now) {
  u64 pause = ns_since(polls->last, now);
  if (thread->retained.cursor != polls->recorded || pause > SLEEP_NS)
    return false;
  if (pause <= SPIN_NS)
    return true;
  u64 cpu_ns = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  u64 asking_ns = ns_since(polls->at_cpu, polls->last); /* at most, by the last question */
  bool worked = !cpu_ns || cpu_ns > polls->cpu_ns + asking_ns + ASKING_NS;
  polls->cpu_ns = cpu_ns;
  polls->at_cpu = now;
  return !worked;
}

/* To record a wait may take longer than to ask, as for a stack that is new. */
static void extend_wait(struct tscope_thread *thread, struct torch_polls *polls) {
  if (!polls->dur && polls->questions >= QUESTIONS) {
    polls->dur = torch_wait_record(thread, polls->first, polls->comm, polls->seq);
    polls->cpu_ns = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    polls->at_cpu = tscope_ticks();
  }
  tscope_span_close(thread, polls->dur, polls->first);
  polls->recorded = thread->retained.cursor;
}

void polls_note(struct tscope_thread *thread, const void *work, u32 comm, u32 seq, bool done) {
  struct torch_polls *polls = &torch_thread_of(thread)->polls;
  u64 now = tscope_ticks();
  bool same = polls->work == work && polls->comm == comm && polls->seq == seq;
  /* One of several that are asked by turns: it is waited for when the first is done. */
  if (!same && (done || (polls->work && ns_since(polls->last, now) <= SLEEP_NS)))
    return;
  if (!same) {
    polls->work = work;
    polls->comm = comm;
    polls->seq = seq;
  }
  if (same && only_asked(thread, polls, now))
    extend_wait(thread, polls);
  else
    begin_polls(thread, polls, now);
  polls->questions++;
  polls->last = now;
  if (!done)
    return;
  if (polls->dur)
    torch_record_cpu_time(thread, now);
  polls->work = NULL;
}
