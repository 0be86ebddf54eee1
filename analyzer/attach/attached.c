/* SPDX-License-Identifier: MIT */
#include "attach/attached.h"

#include <errno.h>
#include <stdlib.h>

#include "attach/python_image.h"
#include "inspect/python_threads.h"
#include "inspect/thread_state.h"

enum { THREADS_MOST = 4096, FRAMES_MOST = 512 };

struct looking {
  struct arena *arena;
  pid_t pid;
  struct python python;
  struct rank_stall *look;
  u64 states[2 * THREADS_MOST]; /* PyThreadState of each thread of `look`, 0 */
  struct python_frame frames[FRAMES_MOST], again[FRAMES_MOST];
};

static const char *text_of(struct arena *arena, const char *text) {
  return *text ? arena_text(arena, text) : NULL;
}

static int list_threads(struct looking *l, u32 *tids) {
  struct rank_stall *look = l->look;
  u32 n = thread_list(l->pid, tids, THREADS_MOST);
  look->all_threads = n;
  if (!n)
    return -ESRCH;
  n = n < THREADS_MOST ? n : THREADS_MOST;
  look->threads = arena_array(l->arena, n + THREADS_MOST, sizeof(*look->threads));
  for (u32 i = 0; i < n && look->threads; i++) {
    struct thread_state state;
    if (!thread_state_read(l->pid, tids[i], &state))
      continue;
    look->threads[look->n_threads++] =
        (struct stalled_thread){.tid = tids[i],
                                .state = state.state,
                                .main = tids[i] == (u32)l->pid,
                                .name = text_of(l->arena, state.name),
                                .wait = text_of(l->arena, state.wait),
                                .call = text_of(l->arena, state.call),
                                .file = text_of(l->arena, state.file)};
  }
  return look->threads ? 0 : -ENOMEM;
}

/* The frames of a thread, innermost first; how many, negative where they cannot be read. */
static int walk(struct looking *l, u64 state, struct python_frame *frames, bool *cut) {
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

static bool same(const struct python_frame *a, const struct python_frame *b, int n) {
  for (int i = 0; i < n; i++)
    if (a[i].code != b[i].code || a[i].tag != b[i].tag || a[i].instruction != b[i].instruction)
      return false;
  return true;
}

static struct stalled_thread *thread_of(struct rank_stall *look, u32 tid) {
  for (u32 i = 0; tid && i < look->n_threads; i++)
    if (look->threads[i].tid == tid)
      return &look->threads[i];
  look->threads[look->n_threads] = (struct stalled_thread){.tid = tid};
  return &look->threads[look->n_threads++];
}

static int read_stack(struct looking *l, const struct python_thread *from) {
  struct stalled_thread *thread = thread_of(l->look, from->tid);
  bool cut;
  int n = walk(l, from->state, l->frames, &thread->cut);
  l->states[thread - l->look->threads] = from->state;
  thread->python = true;
  thread->holds_gil = from->holds_gil;
  thread->moved =
      n < 0 || walk(l, from->state, l->again, &cut) != n || !same(l->frames, l->again, n);
  thread->frames = arena_array(l->arena, (n > 0 ? (u32)n : 0) + 1u, sizeof(*thread->frames));
  if (!thread->frames)
    return -ENOMEM;
  for (int i = 0; i < n; i++) {
    struct call_frame *frame = python_call_frame(l->arena, &l->python, l->pid, &l->frames[i]);
    if (!frame)
      return -ENOMEM;
    thread->frames[thread->n_frames++] = frame;
  }
  return 0;
}

static const char no_answer[] =
    "its memory cannot be read now: one of its threads holds the memory map and waits for a device";

static int read_python(struct looking *l) {
  static struct python_thread threads[THREADS_MOST];
  const struct python_process process = {.pid = l->pid};
  u64 runtime;
  int error = 0;
  l->look->no_python = python_image_find(l->pid, &l->python, &runtime);
  if (l->look->no_python)
    return 0;
  u32 n = python_threads(&l->python, python_read_process, &process, runtime, threads, THREADS_MOST);
  for (u32 i = 0; i < n && !error; i++)
    error = read_stack(l, &threads[i]);
  return error;
}

int attached_look(struct arena *arena, pid_t pid, enum native_which which, struct rank_stall *look,
                  struct native_outcome *looked) {
  static struct looking l;
  static u32 tids[THREADS_MOST];
  *look = rank_stall_of_look();
  *looked = (struct native_outcome){0};
  l = (struct looking){.arena = arena, .pid = pid, .look = look};
  int error = list_threads(&l, tids);
  if (error)
    return error;
  if (!process_answers(pid)) {
    look->no_python = looked->why_none = no_answer;
    return 0;
  }
  error = read_python(&l);
  if (error || which == NATIVE_NONE)
    return error;
  return native_stacks_add(arena, pid, look->no_python ? NULL : &l.python, l.states, which, look,
                           looked);
}
