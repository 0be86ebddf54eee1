/* SPDX-License-Identifier: MIT */
#include "callsites/sampled_threads.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "callsites/call_sites.h"
#include "inspect/memory_window.h"
#include "inspect/python_threads.h"
#include "inspect/thread_state.h"
#include "record/families.h"
#include "record/reserve.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

enum {
  MAX_THREADS = 256,
  MAX_CHILDREN = 128,
  CODES = 1024,    /* that are known to be shared with children */
  SLOTS = 64,      /* threads beside and children that are remembered, by their number */
  TRAINS_S = 60,   /* a thread trains for so long after a call, if others do too */
  LISTS_PER_S = 5, /* Python's threads are listed at most so often */
};

_Static_assert(MAX_THREADS == 256 && MAX_CHILDREN == 128, "texts below say so");

struct sampled_threads sampled_threads;

static struct memory_gather gather;
static struct stack_walk walk;

/* Of this process, as Python listed them last. */
static struct {
  struct python_thread at[MAX_THREADS];
  u32 n, turn;
  u64 listed;
} python_list;

static struct {
  u32 pids[MAX_CHILDREN + 1]; /* the last only shows that there are more */
  u32 n, turn;
} children;

static struct sampled_thread *beside, *of_children; /* SLOTS each */

static __thread bool is_open __attribute__((tls_model("initial-exec")));

static void forget_files(struct sampled_thread *threads, u32 n) {
  for (u32 i = 0; i < n; i++) {
    threads[i].activity = (struct thread_activity){0};
    threads[i].tid = 0;
  }
}

/* The table of descriptors of a helper that was ended for a pause is gone. The numbers of its files
 * may be those of the job's files now. */
bool sampled_threads_open(bool own_descriptors) {
  if (is_open)
    return true;
  if (!beside) {
    void *both = tscope_reserve_map(-1, 2ul * SLOTS * sizeof(*beside));
    if (both == MAP_FAILED)
      return false;
    beside = both;
    of_children = beside + SLOTS;
  }
  memory_gather_lost(&gather);
  forget_files(sampled_threads.training, MAX_TRAINING_THREADS);
  forget_files(beside, SLOTS);
  forget_files(of_children, SLOTS);
  is_open = memory_gather_open(&gather, own_descriptors);
  return is_open;
}

static const char of_threads[] = "lines of threads";
static const char of_children_lines[] = "lines of child processes";

static u32 list_threads(pid_t pid, struct python_thread threads[MAX_THREADS]) {
  static struct memory_window window;
  static bool said;
  memory_window_open(&window, pid);
  u32 n = python_threads(&python_here, python_read_window, &window, python_here_runtime, threads,
                         MAX_THREADS);
  if (n > MAX_THREADS)
    tscope_say_once(&said,
                    "a process has more threads of Python than are looked at, the 256 oldest",
                    of_threads);
  return MIN(n, MAX_THREADS);
}

/* A long list is asked for less often. */
static void list_python(u64 now) {
  u64 least = tscope_ticks_of_s(1) / LISTS_PER_S * (1 + python_list.n / 8);
  if (python_list.listed && now - python_list.listed < least)
    return;
  python_list.listed = now;
  python_list.n = python_here.layout.minor ? list_threads(getpid(), python_list.at) : 0;
}

/* Before Python 3.12 a thread that is made has the number of the one that makes it until it runs.
 * The newest come first in the list: the last of a number is the thread itself. */
static u64 state_of(const struct python_thread *threads, u32 n, u32 tid) {
  while (n-- > 0)
    if (threads[n].tid == tid)
      return threads[n].state;
  return 0;
}

/* State of a thread in a process, as Python has it now; 0. */
static u64 find_state(pid_t pid, u32 tid) {
  static struct python_thread threads[MAX_THREADS];
  return state_of(threads, list_threads(pid, threads), tid);
}

void sampled_thread_end(struct sampled_thread *thread) {
  thread_activity_close(&thread->activity);
  thread->tid = 0;
}

static bool begin(struct sampled_thread *thread, pid_t pid, u32 tid, u64 state) {
  sampled_thread_end(thread);
  if (state && !watched_stack_begin(&thread->watched, &gather, pid, state, python_here_runtime))
    return false;
  if (gather.file >= 0) /* else the helper's descriptors are the job's */
    thread_activity_open(&thread->activity, pid, tid);
  thread->tid = tid;
  thread->pid = pid;
  thread->is_native = !state;
  thread->is_over = false;
  thread->run = (struct sample_run){0};
  return true;
}

static struct sampled_thread *find_training(u32 tid) {
  for (u32 i = 0; i < sampled_threads.n; i++)
    if (sampled_threads.training[i].tid == tid)
      return &sampled_threads.training[i];
  return NULL;
}

static struct sampled_thread *free_slot(void) {
  struct sampled_thread *slot = find_training(0);
  if (!slot && sampled_threads.n < MAX_TRAINING_THREADS)
    slot = &sampled_threads.training[sampled_threads.n++];
  return slot;
}

/* Begins to sample a thread that makes calls; without Python in the process, from what its last
 * call showed. A thread that has no Python of its own, such as autograd's, is not sampled. */
static void begin_training(u64 now, u32 tid, const u64 *last_stack) {
  list_python(now);
  u64 state = state_of(python_list.at, python_list.n, tid);
  bool has_python = python_here.layout.minor;
  bool can_be_seen = state || (!has_python && last_stack);
  struct sampled_thread *slot = can_be_seen ? free_slot() : NULL;
  static bool said;
  if (can_be_seen && !slot)
    tscope_say_once(&said, "more threads train at once than are sampled, eight", of_threads);
  if (!slot || !begin(slot, getpid(), tid, state))
    return;
  slot->last_stack = last_stack;
}

static bool trains(struct call_site_countdown *calls, u64 now) {
  u32 n = __atomic_load_n(&calls->calls, __ATOMIC_RELAXED);
  if (n != calls->calls_seen)
    calls->called = now;
  calls->calls_seen = n;
  return calls->called && now - calls->called < tscope_ticks_of_s(TRAINS_S);
}

static u32 find_those_that_call(u64 now) {
  u32 n = 0;
  for (struct tscope_thread *thread = tscope_thread_newest(); thread; thread = thread->before) {
    u32 tid = __atomic_load_n(&thread->tid, __ATOMIC_ACQUIRE);
    struct call_site_countdown *calls = thread->family[TSCOPE_FAMILY_CALL_SITES];
    if (!tid || !calls || !trains(calls, now))
      continue;
    if (!find_training(tid))
      begin_training(now, tid, &calls->last_stack);
    struct sampled_thread *found = find_training(tid);
    if (found)
      found->called = now;
    n += found != NULL;
  }
  return n;
}

/* If no thread makes calls, those that did so last still train, else the first thread. */
void sampled_threads_find(u64 now) {
  bool any = find_those_that_call(now), known = false;
  sampled_threads.any_trains |= any;
  for (u32 i = 0; i < sampled_threads.n; i++) {
    struct sampled_thread *thread = &sampled_threads.training[i];
    thread->is_over = any && thread->called != now;
    known |= thread->tid && !thread->is_over;
  }
  if (!known && python_here.layout.minor)
    begin_training(now, (u32)getpid(), NULL);
}

/* Code that a child has from this process: the same tag at the same address. */
static bool is_shared(const struct python_frame *frame) {
  static struct { u64 code, tag; } found[CODES];
  static struct memory_window window;
  __typeof__(*found) *known = &found[python_mix(0, frame->code) % CODES];
  u64 tag;
  if (known->code == frame->code && known->tag == frame->tag)
    return true;
  memory_window_open(&window, getpid());
  if (!python_tag(&python_here, python_read_window, &window, frame->code, &tag) ||
      tag != frame->tag)
    return false;
  known->code = frame->code;
  known->tag = tag;
  return true;
}

/* If a child has different code at an address than its parent, that code is not the one that the
 * parent, or another child, has at this address. */
static void mark_child_frames(pid_t pid) {
  for (u32 i = 0; i < walk.n; i++)
    if (!is_shared(&walk.frames[i]))
      walk.keys[i] = nonzero_hash(python_mix(walk.keys[i], (u64)pid));
}

static u64 stack_of(struct sampled_thread *thread, struct watched_moment *at) {
  if (thread->is_native)
    return __atomic_load_n(thread->last_stack, __ATOMIC_RELAXED);
  if (!watched_stack_read(&thread->watched, &gather, &walk, at))
    return 0;
  if (thread->pid != getpid())
    mark_child_frames(thread->pid);
  return stack_in_trace(&walk, &(struct python_process){.pid = thread->pid});
}

/* Whether Python still has the state by which the thread was known. Python frees that when the
 * thread gives it up, or when the interpreter ends; a thread may go on without it. */
static bool has_its_state(const struct sampled_thread *thread) {
  return find_state(thread->pid, thread->tid) == thread->watched.state;
}

/* The kernel is asked first: a thread that waits still has the frames with which it began to. */
bool sampled_thread_look(struct sampled_thread *thread, struct thread_moment *moment) {
  u64 now_ns = tscope_clock_ns(CLOCK_MONOTONIC);
  struct watched_moment at = {0};
  u8 what = TSCOPE_ACTIVITY_UNKNOWN;
  bool own = thread->pid == getpid();
  bool alive = !thread->activity.tid ||
               thread_activity_read(&thread->activity, now_ns, thread->watched.gil_lock,
                                    GIL_LOCK_BYTES, &what);
  *moment = (struct thread_moment){.stack = alive ? stack_of(thread, &at) : 0};
  moment->unread = !moment->stack && !at.no_frames;
  if (!alive || (!thread->is_native && !thread->watched.state) ||
      (moment->unread && !thread->is_native && !has_its_state(thread)))
    return false;
  bool holds = at.gil_holder && at.gil_holder == thread->watched.state;
  if (what == TSCOPE_ACTIVITY_RUNNING && holds && at.collecting)
    what = TSCOPE_ACTIVITY_COLLECTING;
  moment->gil_holder = at.gil_holder;
  moment->tag =
      (u16)(what | (own ? TSCOPE_SAMPLE_OF_THREAD : 0) | (holds ? TSCOPE_SAMPLE_HOLDS_GIL : 0) |
            (thread->is_native ? TSCOPE_SAMPLE_AFTER_CALL : 0));
  return true;
}

/* The slot of a thread beside, or of a child, which was perhaps used for another one. */
static struct sampled_thread *use_slot(struct sampled_thread *slots, pid_t pid, u32 tid,
                                       u64 state) {
  struct sampled_thread *slot = &slots[tid % SLOTS];
  bool same = slot->tid == tid && slot->pid == pid && (!state || slot->watched.state == state);
  return same || begin(slot, pid, tid, state) ? slot : NULL;
}

struct sampled_thread *sampled_thread_of_state(u64 state) {
  if (!state)
    return NULL;
  list_python(tscope_ticks());
  for (u32 i = 0; i < python_list.n; i++)
    if (python_list.at[i].state == state && python_list.at[i].tid)
      return find_training(python_list.at[i].tid)
                 ? NULL
                 : use_slot(beside, getpid(), python_list.at[i].tid, state);
  return NULL;
}

struct sampled_thread *sampled_thread_beside(u32 *n) {
  list_python(tscope_ticks());
  *n = 0;
  for (u32 i = 0; i < python_list.n; i++)
    *n += python_list.at[i].tid && !find_training(python_list.at[i].tid);
  for (u32 i = 0; i < python_list.n; i++) {
    const struct python_thread *thread = &python_list.at[python_list.turn++ % python_list.n];
    if (thread->tid && !find_training(thread->tid))
      return use_slot(beside, getpid(), thread->tid, thread->state);
  }
  return NULL;
}

static void add_children(u32 pid, u32 tid) {
  children.n +=
      thread_children((pid_t)pid, tid, children.pids + children.n, MAX_CHILDREN + 1 - children.n);
}

static bool is_read(u32 pid) {
  return of_children[pid % SLOTS].tid == pid || find_state((pid_t)pid, pid);
}

static bool runs_this_program(u32 pid) {
  char link[32], its[512], mine[512];
  snprintf(link, sizeof(link), "/proc/%u/exe", pid);
  ssize_t length = readlink(link, its, sizeof(its));
  return length > 0 && readlink("/proc/self/exe", mine, sizeof(mine)) == length &&
         memcmp(its, mine, (size_t)length) == 0;
}

/* Once: that spawned children cannot be read. One that was only just started is no Python yet. */
static void note_unread_children(void) {
  enum { ROUNDS = 3 };
  static u32 rounds;
  bool any = false;
  if (rounds >= ROUNDS || !python_here.layout.minor)
    return;
  for (u32 i = 0; i < children.n && !any; i++)
    any = runs_this_program(children.pids[i]) && !is_read(children.pids[i]);
  rounds = any ? rounds + 1 : 0;
  if (rounds == ROUNDS)
    tscope_info(NULL, TSCOPE_INFO_FEATURE,
                "processes that run the same program, such as spawned workers, could not be read: "
                "Python's data has other addresses there (PIE), or the system forbids it",
                of_children_lines);
}

/* The kernel lists them for each thread that forked. A fork server's children are the workers. */
void sampled_children_find(void) {
  u32 first = (u32)getpid();
  children.n = 0;
  add_children(first, first);
  for (u32 i = 0; i < sampled_threads.n; i++)
    if (sampled_threads.training[i].tid && sampled_threads.training[i].tid != first)
      add_children(first, sampled_threads.training[i].tid);
  for (u32 i = 0, n = children.n; i < n; i++)
    add_children(children.pids[i], children.pids[i]);
  static bool said;
  if (children.n > MAX_CHILDREN) {
    children.n = MAX_CHILDREN;
    tscope_say_once(&said, "only of the first 128", of_children_lines);
  }
  note_unread_children();
}

/* A child that runs another program has no such Python, and then nothing can be read. */
struct sampled_thread *sampled_thread_of_child(u32 *n) {
  *n = children.n;
  if (!children.n || !python_here.layout.minor)
    return NULL;
  u32 pid = children.pids[children.turn++ % children.n];
  struct sampled_thread *slot = &of_children[pid % SLOTS];
  if (slot->tid == pid)
    return slot;
  u64 state = find_state((pid_t)pid, pid);
  return state ? use_slot(of_children, (pid_t)pid, pid, state) : NULL;
}
