/* SPDX-License-Identifier: MIT
 *
 * Where the program is, ten times a second: the helper reads the frames of the first thread while
 * that thread runs, without stopping it. So time belongs to a line even where no hooked function is
 * called: in a slow line of the input, in a loop of pure Python. Children that the first thread
 * forked, such as the workers of a data loader, are sampled in turn.
 *
 * Each stack is read twice through the kernel. Only what is the same both times counts: from the
 * outermost frame inwards, up to the first frame that changed.
 *
 * A record is written when the stack differs from the one before, else after one second, two, four
 * and so on. The cost of sampling is limited to three thousandths of the time that passes.
 */
#include <unistd.h>

#include "callsites/call_sites.h"
#include "callsites/known_stacks.h"
#include "inspect/memory_window.h"
#include "inspect/python_threads.h"
#include "inspect/thread_state.h"
#include "record/process_trace.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

enum {
  MAX_THREADS = 256,
  MAX_CHILDREN = 128,
  SAMPLES_PER_SECOND = 10,
  COST_SHARE = 333,     /* sampling may take one part of so many of the time */
  MAX_UNCHANGED_S = 64, /* the same stack is written at least so often */
  RECENT_S = 16,        /* if the first thread moved within this time, children are sampled too */
};

/* Of the first thread. */
static struct {
  u64 state;          /* address of its PyThreadState; 0: not found yet */
  u64 stack;          /* of the last sample; 0: could not be read */
  u64 unwritten, run; /* ticks: of the same stack, not yet in the trace; in total */
  u64 sampled, next, write_after;
} first;

static struct {
  u32 pids[MAX_CHILDREN];
  u32 n, turn;
} children;

static struct memory_window window;
static struct stack_walk walk;
static struct python_frame previous_frames[MAX_STACK_FRAMES];
static u64 previous_keys[MAX_STACK_FRAMES];
static struct python_thread threads[MAX_THREADS];

static u64 seconds(u64 s) {
  return s * tscope_clock.hz;
}

/* A frame further in than all the frames that were the same both times; it ran in between. Its
 * function is certain if the position in the function is a pointer that can be checked. */
static bool is_same_function(u32 at, u32 previous) {
  return python_here.layout.code_start != PYTHON_NONE &&
         walk.frames[at].code == previous_frames[previous].code &&
         walk.frames[at].tag == previous_frames[previous].tag;
}

/* Keeps in `walk` only the frames that are the same as in the `n` frames before. */
static void keep_common_frames(u32 n) {
  u32 same = 0;
  while (same < n && same < walk.n && previous_keys[n - 1 - same] == walk.keys[walk.n - 1 - same])
    same++;
  if (same < n && same < walk.n && is_same_function(walk.n - 1 - same, n - 1 - same))
    same++;
  u32 moved = walk.n - same;
  memmove(walk.keys, walk.keys + moved, same * sizeof(*walk.keys));
  memmove(walk.frames, walk.frames + moved, same * sizeof(*walk.frames));
  walk.n = same;
}

/* The part of a thread's stack that did not change, into `walk`. False if it cannot be known. */
static bool read_stable_stack(pid_t pid, u64 state) {
  const struct window_reading reading = {.window = &window};
  memory_window_open(&window, pid);
  if (!stack_walk(&walk, python_read_window, &reading, state))
    return false;
  u32 n = walk.n;
  bool cut = walk.more;
  memcpy(previous_frames, walk.frames, n * sizeof(*previous_frames));
  memcpy(previous_keys, walk.keys, n * sizeof(*previous_keys));
  memory_window_open(&window, pid);
  if (!stack_walk(&walk, python_read_window, &reading, state))
    return false;
  if (cut || walk.more) /* there is no outermost frame to begin at */
    return walk.n == n && memcmp(previous_keys, walk.keys, n * sizeof(*previous_keys)) == 0;
  keep_common_frames(n);
  return walk.n > 0;
}

/* If a child has different code at an address than its parent, that code is not the one that the
 * parent, or another child, has at this address. */
static void mark_child_frames(pid_t pid) {
  const struct python_process self = {.pid = getpid()};
  for (u32 i = 0; i < walk.n; i++) {
    u64 tag;
    if (!python_tag(&python_here, python_read_process, &self, walk.frames[i].code, &tag) ||
        tag != walk.frames[i].tag)
      walk.keys[i] = nonzero_hash(python_mix(walk.keys[i], (u64)pid));
  }
}

/* The hash of the stack in `walk`, which is written to the trace; 0 where that cannot be done. */
static u64 define_stack(pid_t pid) {
  const struct python_process process = {.pid = pid};
  u64 hash = stack_hash(&walk);
  return stack_is_known(hash) || stack_define(&walk, hash, &process) ? hash : 0;
}

static void write_sample(u64 at, u64 stack, u64 ticks, pid_t child) {
  u64 us = (u64)((double)ticks * 1e6 / (double)tscope_clock.hz);
  struct tscope_line_sample_record record = {.at = at,
                                             .stack = stack,
                                             .stands_us = us < UINT32_MAX ? (u32)us : UINT32_MAX,
                                             .tid = (u32)child};
  tscope_definitions_write(TSCOPE_REC_LINE_SAMPLE, 0, &record, sizeof(record));
}

static void write_unwritten(void) {
  if (first.stack && first.unwritten)
    write_sample(first.sampled, first.stack, first.unwritten, 0);
  first.unwritten = 0;
}

/* `since`: ticks since the last sample; this sample stands for them. */
static void sample_first_thread(u64 now, u64 since) {
  u64 stack = read_stable_stack(getpid(), first.state) ? define_stack(getpid()) : 0;
  if (stack != first.stack) {
    write_unwritten();
    first.run = 0;
    first.write_after = 0;
  }
  first.stack = stack;
  first.sampled = now;
  first.run += since;
  first.unwritten += since;
  if (first.unwritten < first.write_after)
    return;
  write_unwritten();
  first.write_after = first.write_after ? 2 * first.write_after : seconds(1);
  if (first.write_after > seconds(MAX_UNCHANGED_S))
    first.write_after = seconds(MAX_UNCHANGED_S);
}

static u64 find_first_thread(pid_t pid) {
  const struct window_reading reading = {.window = &window};
  memory_window_open(&window, pid);
  u32 n = python_threads(&python_here, python_read_window, &reading, python_here_runtime, threads,
                         MAX_THREADS);
  for (u32 i = 0; i < n; i++)
    if (threads[i].tid == (u32)pid)
      return threads[i].state;
  return 0;
}

/* A child that runs another program has no such Python, and then nothing can be read. */
static void sample_child(u64 now, u64 since) {
  if (!children.n)
    return;
  pid_t pid = (pid_t)children.pids[children.turn++ % children.n];
  u64 state = find_first_thread(pid);
  if (!state || !read_stable_stack(pid, state))
    return;
  mark_child_frames(pid);
  u64 stack = define_stack(pid);
  if (stack)
    write_sample(now, stack, since * children.n, pid);
}

static bool is_wanted(void) {
  u8 wanted = __atomic_load_n(&call_sites_wanted, __ATOMIC_ACQUIRE);
  return wanted & 1 << CALL_SITE_SAMPLED && python_here.layout.minor && tscope_is_live() &&
         __atomic_load_n(&tscope_trace.header->end_ticks, __ATOMIC_RELAXED) == 0;
}

static void watch(void) {
  static u32 samples;
  u64 now = tscope_ticks();
  if (!is_wanted() || now < first.next)
    return;
  u64 cpu = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  u64 since = first.sampled ? now - first.sampled : 0;
  if (!first.state)
    first.state = find_first_thread(getpid());
  if (samples++ % SAMPLES_PER_SECOND == 0)
    children.n = thread_children(getpid(), (u32)getpid(), children.pids, MAX_CHILDREN);
  if (since > seconds(1)) /* the process did not run */
    since = seconds(1) / SAMPLES_PER_SECOND;
  if (first.state)
    sample_first_thread(now, since);
  if (first.run < seconds(RECENT_S))
    sample_child(now, since);
  u64 cost = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
  first.next = now + (u64)((double)cost * COST_SHARE / 1e9 * (double)tscope_clock.hz);
}

const struct tscope_family tscope_line_samples_family = {
    .name = "line_samples",
    .watch = watch,
};
