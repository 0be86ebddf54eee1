/* SPDX-License-Identifier: MIT
 *
 * Python's frames are read through the kernel, where a wrong address is an error and no fault. A
 * stack is read twice: where the two differ, the thread runs.
 */
#include "stalls/threads_now.h"

#include <string.h>
#include <unistd.h>

#include "callsites/python_here.h"
#include "inspect/pid_namespace.h"
#include "process/threads_left.h"
#include "process/workers.h"
#include "record/hook.h"
#include "record/process_trace.h"

enum { MAX_THREADS = 512, MAX_PYTHON_THREADS = 256, MAX_PEERS = 128 };

static u32 tids[MAX_THREADS];
static struct python_thread python_list[MAX_PYTHON_THREADS];
static struct stack_walk walk;
static u64 first_keys[MAX_STACK_FRAMES];

static const char *python_why = "";

void threads_now_find_python(struct tscope_thread *thread) {
  (void)thread;
  const char *why = python_here_find();
  if (!why && !known_stacks_init())
    why = "no memory";
  __atomic_store_n(&python_why, why, __ATOMIC_RELEASE);
}

const char *threads_now_python_why(void) {
  return __atomic_load_n(&python_why, __ATOMIC_ACQUIRE);
}

u32 threads_now_count(void) {
  u32 n = tscope_threads_left();
  return n > TSCOPE_OWN_THREADS ? n - TSCOPE_OWN_THREADS : 0;
}

void threads_now_states(void (*each)(const struct thread_state *state, void *more), void *more) {
  u32 n = thread_list(getpid(), tids, MAX_THREADS);
  for (u32 i = 0; i < n && i < MAX_THREADS && !tscope_trace_has_ended(); i++) {
    struct thread_state state;
    if (!tscope_is_worker(tids[i]) && thread_state_read(getpid(), tids[i], &state))
      each(&state, more);
  }
}

/* Reads the thread's frames. False where they cannot be had; `moved`: they are not the same a
 * moment later. */
static bool read_frames(u64 state, bool *moved) {
  const struct python_process self = {.pid = getpid()};
  if (!stack_walk(&walk, python_read_process, &self, state))
    return false;
  u32 n = walk.n;
  memcpy(first_keys, walk.keys, n * sizeof(*first_keys));
  if (!stack_walk(&walk, python_read_process, &self, state))
    return false;
  *moved = walk.n != n || memcmp(first_keys, walk.keys, n * sizeof(*first_keys)) != 0;
  return true;
}

void threads_now_stacks(void (*each)(const struct python_thread *thread, struct stack_walk *walk,
                                     bool moved, void *more),
                        void *more) {
  const struct python_process self = {.pid = getpid()};
  u32 n = python_threads(&python_here, python_read_process, &self, python_here_runtime, python_list,
                         MAX_PYTHON_THREADS);
  for (u32 i = 0; i < n && i < MAX_PYTHON_THREADS && !tscope_trace_has_ended(); i++) {
    bool moved = true;
    bool read = read_frames(python_list[i].state, &moved);
    each(&python_list[i], read ? &walk : NULL, moved, more);
  }
}

void threads_now_peers(void (*each)(u32 pid, const struct thread_state *state, void *more),
                       void *more) {
  pid_t parent = proc_numbers_as_own() ? getppid() : 0;
  u32 threads = parent > 1 ? thread_list(parent, tids, MAX_THREADS) : 0, n = 0;
  static u32 peers[MAX_PEERS];
  for (u32 i = 0; i < threads && i < MAX_THREADS && n < MAX_PEERS; i++)
    n += thread_children(parent, tids[i], peers + n, MAX_PEERS - n);
  for (u32 i = 0; i < n && !tscope_trace_has_ended(); i++) {
    struct thread_state state;
    if (peers[i] != (u32)getpid() && thread_state_read((pid_t)peers[i], peers[i], &state) &&
        (strchr("TtDZX", state.state) || thread_is_frozen(state.wait)))
      each(peers[i], &state, more);
  }
}
