/* SPDX-License-Identifier: MIT
 *
 * First what the kernel reports about each thread, which needs none of the process's memory; then
 * Python's frames, read through the kernel, where a wrong address is an error and no fault. A stack
 * is read twice: where the two differ, the thread runs.
 */
#include "stalls/stall_records.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "callsites/known_stacks.h"
#include "callsites/python_here.h"
#include "inspect/python_threads.h"
#include "inspect/thread_state.h"
#include "record/process_trace.h"
#include "record/trace_definitions.h"

enum { MAX_THREADS = 512, MAX_PYTHON_THREADS = 256, MAX_PEERS = 128 };

const char *stall_python_why = "";
u32 stall_ticker_tid;

static u32 tids[MAX_THREADS];
static struct python_thread python_list[MAX_PYTHON_THREADS];
static struct stack_walk walk;
static u64 first_keys[MAX_STACK_FRAMES];

bool stall_process_is_ending(void) {
  return !tscope_is_live() ||
         __atomic_load_n(&tscope_trace.header->end_ticks, __ATOMIC_RELAXED) != 0;
}

static bool is_own_thread(u32 tid) {
  return tid == (u32)syscall(SYS_gettid) ||
         tid == __atomic_load_n(&stall_ticker_tid, __ATOMIC_RELAXED);
}

static u32 intern_text(const char *value) {
  return *value ? tscope_string(NULL, value) : 0;
}

static void write_state(u32 stall, u32 tid) {
  struct thread_state state;
  if (is_own_thread(tid) || !thread_state_read(getpid(), tid, &state))
    return;
  struct tscope_thread_state_record record = {.stall = stall,
                                              .tid = tid,
                                              .name = intern_text(state.name),
                                              .wait = intern_text(state.wait),
                                              .call = intern_text(state.call),
                                              .file = intern_text(state.file)};
  tscope_definitions_write(TSCOPE_REC_THREAD_STATE, (u8)state.state, &record, sizeof(record));
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

static void write_stack(u32 stall, const struct python_thread *thread) {
  const struct python_process self = {.pid = getpid()};
  bool moved = false;
  struct tscope_thread_stack_record record = {.stall = stall, .tid = thread->tid};
  u16 tag = thread->holds_gil ? TSCOPE_STACK_HOLDS_GIL : 0;
  if (!read_frames(thread->state, &moved)) {
    tag |= TSCOPE_STACK_MOVED;
  } else if (walk.n) {
    u64 hash = stack_hash(&walk);
    tag |= moved ? TSCOPE_STACK_MOVED : 0;
    record.stack = stack_is_known(hash) || stack_define(&walk, hash, &self) ? hash : 0;
  }
  tscope_definitions_write(TSCOPE_REC_THREAD_STACK, tag, &record, sizeof(record));
}

static void write_stacks(u32 stall) {
  const struct python_process self = {.pid = getpid()};
  u32 n = python_threads(&python_here, python_read_process, &self, python_here_runtime, python_list,
                         MAX_PYTHON_THREADS);
  for (u32 i = 0; i < n && !stall_process_is_ending(); i++)
    write_stack(stall, &python_list[i]);
}

static bool is_frozen(const struct thread_state *state) {
  return strstr(state->wait, "freezer") || strstr(state->wait, "refrigerator");
}

/* Of a process that has the same parent, as ranks of one launcher have: what it cannot record
 * itself, because it is stopped, ended, or does not come back from the kernel. */
static void write_peer(u32 stall, u32 pid) {
  struct thread_state state;
  if (pid == (u32)getpid() || !thread_state_read((pid_t)pid, pid, &state) ||
      !(strchr("TtDZX", state.state) || is_frozen(&state)))
    return;
  struct tscope_peer_state_record record = {.stall = stall,
                                            .pid = pid,
                                            .wait = intern_text(state.wait),
                                            .call = intern_text(state.call),
                                            .file = intern_text(state.file)};
  tscope_definitions_write(TSCOPE_REC_PEER_STATE, (u8)state.state, &record, sizeof(record));
}

void stall_write_peers(u32 stall) {
  pid_t parent = getppid();
  u32 threads = parent > 1 ? thread_list(parent, tids, MAX_THREADS) : 0, n = 0;
  static u32 peers[MAX_PEERS];
  for (u32 i = 0; i < threads && i < MAX_THREADS && n < MAX_PEERS; i++)
    n += thread_children(parent, tids[i], peers + n, MAX_PEERS - n);
  for (u32 i = 0; i < n && !stall_process_is_ending(); i++)
    write_peer(stall, peers[i]);
}

void stall_write(struct tscope_stall_record *stall, enum tscope_stall what, bool whole) {
  u32 n = whole ? thread_list(getpid(), tids, MAX_THREADS) : 0;
  bool ticker = __atomic_load_n(&stall_ticker_tid, __ATOMIC_RELAXED) != 0;
  stall->threads = n > 1u + ticker ? n - 1 - ticker : 0;
  stall->python = stall_python_why ? intern_text(stall_python_why) : 0;
  tscope_definitions_write(TSCOPE_REC_STALL, (u16)what, stall, sizeof(*stall));
  for (u32 i = 0; i < n && i < MAX_THREADS && !stall_process_is_ending(); i++)
    write_state(stall->stall, tids[i]);
  if (whole && !stall_python_why)
    write_stacks(stall->stall);
  if (whole)
    stall_write_peers(stall->stall);
}

void stall_write_end(u32 stall, u64 ticks) {
  struct tscope_stall_end_record record = {.at = ticks, .stall = stall};
  tscope_definitions_write(TSCOPE_REC_STALL_END, 0, &record, sizeof(record));
}
