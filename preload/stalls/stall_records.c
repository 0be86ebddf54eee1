/* SPDX-License-Identifier: MIT */
#include "stalls/stall_records.h"

#include <unistd.h>

#include "record/trace_definitions.h"
#include "stalls/threads_now.h"

static u32 intern_text(const char *value) {
  return *value ? tscope_string(NULL, value) : 0;
}

static void write_state(const struct thread_state *state, void *stall) {
  struct tscope_thread_state_record record = {.stall = *(const u32 *)stall,
                                              .tid = state->tid,
                                              .name = intern_text(state->name),
                                              .wait = intern_text(state->wait),
                                              .call = intern_text(state->call),
                                              .file = intern_text(state->file)};
  u16 tag = (u16)((u8)state->state | state->waits_for << 8);
  tscope_definitions_write(TSCOPE_REC_THREAD_STATE, tag, &record, sizeof(record));
}

static void write_stack(const struct python_thread *thread, struct stack_walk *walk, bool moved,
                        void *stall) {
  const struct python_process self = {.pid = getpid()};
  struct tscope_thread_stack_record record = {.stall = *(const u32 *)stall, .tid = thread->tid};
  u16 tag = (u16)((thread->holds_gil ? TSCOPE_STACK_HOLDS_GIL : 0) |
                  (moved && (!walk || walk->n) ? TSCOPE_STACK_MOVED : 0));
  if (walk && walk->n)
    record.stack = stack_in_trace(walk, &self);
  tscope_definitions_write(TSCOPE_REC_THREAD_STACK, tag, &record, sizeof(record));
}

static void write_peer(u32 pid, const struct thread_state *state, void *stall) {
  struct tscope_peer_state_record record = {.stall = *(const u32 *)stall,
                                            .pid = pid,
                                            .wait = intern_text(state->wait),
                                            .call = intern_text(state->call),
                                            .file = intern_text(state->file)};
  tscope_definitions_write(TSCOPE_REC_PEER_STATE, (u8)state->state, &record, sizeof(record));
}

void stall_write_peers(u32 stall) {
  threads_now_peers(write_peer, &stall);
}

void stall_write(struct tscope_stall_record *stall, enum tscope_stall what, bool whole) {
  stall->threads = whole ? threads_now_count() : 0;
  const char *why = threads_now_python_why();
  stall->python = why ? intern_text(why) : 0;
  tscope_definitions_write(TSCOPE_REC_STALL, (u16)what, stall, sizeof(*stall));
  if (!whole)
    return;
  threads_now_states(write_state, &stall->stall);
  if (!why)
    threads_now_stacks(write_stack, &stall->stall);
  stall_write_peers(stall->stall);
}

void stall_write_end(u32 stall, u64 ticks) {
  struct tscope_stall_end_record record = {.at = ticks, .stall = stall};
  tscope_definitions_write(TSCOPE_REC_STALL_END, 0, &record, sizeof(record));
}
