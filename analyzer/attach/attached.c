/* SPDX-License-Identifier: MIT */
#include "attach/attached.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "attach/python_image.h"
#include "base/checked_memory.h"
#include "inspect/python_threads.h"
#include "inspect/thread_state.h"

enum { THREADS_MOST = 4096, FRAMES_MOST = 512 };

struct process_look {
  struct arena *arena;
  pid_t pid;
  struct python python;
  struct rank_stall *stacks;
  u64 states[2 * THREADS_MOST]; /* PyThreadState of each thread of `stacks`, 0 */
  struct python_frame frames[FRAMES_MOST], again[FRAMES_MOST];
};

static const char *copy_text(struct arena *arena, const char *text) {
  return *text ? arena_text(arena, text) : NULL;
}

static const char *working_folder(struct arena *arena, pid_t pid) {
  char link[32], folder[PATH_MAX];
  snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
  ssize_t length = readlink(link, folder, sizeof(folder));
  return length > 0 ? arena_copy(arena, folder, (size_t)length) : NULL;
}

static int list_threads(struct process_look *l, u32 *tids) {
  struct rank_stall *stacks = l->stacks;
  u32 n = thread_list(l->pid, tids, THREADS_MOST);
  stacks->all_threads = n;
  if (!n)
    return -ESRCH;
  n = MIN(n, THREADS_MOST);
  stacks->threads = arena_array(l->arena, size_sum(n, THREADS_MOST), sizeof(*stacks->threads));
  FOR_EACH(tids, n, tid) {
    struct thread_state state;
    if (!thread_state_read(l->pid, *tid, &state))
      continue;
    stacks->threads[stacks->n_threads++] =
        (struct stalled_thread){.tid = *tid,
                                .state = state.state,
                                .waits_for = state.waits_for,
                                .main = *tid == (u32)l->pid,
                                .name = copy_text(l->arena, state.name),
                                .wait = copy_text(l->arena, state.wait),
                                .call = copy_text(l->arena, state.call),
                                .file = copy_text(l->arena, state.file)};
  }
  return 0;
}

/* The frames of a thread, innermost first; how many, negative where they cannot be read. */
static int read_frames(struct process_look *l, u64 state, struct python_frame *frames, bool *cut) {
  const struct python_process process = {.pid = l->pid};
  u64 at;
  int n = 0;
  *cut = false;
  if (!python_first_frame(&l->python, python_read_process, &process, state, &at))
    return -1;
  for (;;) {
    struct python_frame frame;
    enum python_walk next =
        python_next_frame(&l->python, python_read_process, &process, &at, &frame);
    if (next == PYTHON_UNREADABLE)
      return -1;
    *cut = next == PYTHON_FRAME;
    if (next == PYTHON_END || n == FRAMES_MOST)
      return n;
    frames[n++] = frame;
  }
}

static bool same_frames(const struct python_frame *a, const struct python_frame *b, int n) {
  for (int i = 0; i < n; i++)
    if (a[i].code != b[i].code || a[i].tag != b[i].tag || a[i].instruction != b[i].instruction)
      return false;
  return true;
}

static struct stalled_thread *thread_of(struct rank_stall *stacks, u32 tid) {
  struct stalled_thread *known = rank_stall_thread(stacks, tid);
  if (known)
    return known;
  stacks->threads[stacks->n_threads] = (struct stalled_thread){.tid = tid};
  return &stacks->threads[stacks->n_threads++];
}

static void read_stack(struct process_look *l, const struct python_thread *from) {
  struct stalled_thread *thread = thread_of(l->stacks, from->tid);
  bool cut;
  int n = read_frames(l, from->state, l->frames, &thread->cut);
  l->states[thread - l->stacks->threads] = from->state;
  thread->python = true;
  thread->holds_gil = from->holds_gil;
  thread->moved = n < 0 || read_frames(l, from->state, l->again, &cut) != n ||
                  !same_frames(l->frames, l->again, n);
  thread->frames = arena_array(l->arena, n > 0 ? (u32)n : 0, sizeof(*thread->frames));
  FOR_EACH(l->frames, n, one) {
    struct call_frame *frame = python_call_frame(l->arena, &l->python, l->pid, one);
    thread->frames[thread->n_frames++] = frame;
  }
}

static const char no_answer[] =
    "its memory cannot be read now: one of its threads holds the memory map and waits for a device";

static void read_python(struct process_look *l) {
  static struct python_thread threads[THREADS_MOST];
  const struct python_process process = {.pid = l->pid};
  u64 runtime;
  l->stacks->no_python = python_image_find(l->pid, &l->python, &runtime);
  if (l->stacks->no_python)
    return;
  u32 n = python_threads(&l->python, python_read_process, &process, runtime, threads, THREADS_MOST);
  for (u32 i = 0; i < n && i < THREADS_MOST; i++)
    read_stack(l, &threads[i]);
}

int attached_read_stacks(struct arena *arena, pid_t pid, enum native_which which,
                         struct rank_stall *stacks, struct native_outcome *native) {
  static struct process_look l;
  static u32 tids[THREADS_MOST];
  *stacks = rank_stall_empty();
  stacks->folder = working_folder(arena, pid);
  *native = (struct native_outcome){0};
  l = (struct process_look){.arena = arena, .pid = pid, .stacks = stacks};
  int error = list_threads(&l, tids);
  if (error)
    return error;
  if (!process_is_readable(pid)) {
    stacks->no_python = native->why_none = no_answer;
    return 0;
  }
  read_python(&l);
  if (which == NATIVE_NONE)
    return 0;
  native_stacks_add(arena, pid, stacks->no_python ? NULL : &l.python, l.states, which, stacks,
                    native);
  return 0;
}
