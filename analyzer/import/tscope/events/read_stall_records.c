/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/read_stall_records.h"

#include <math.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/events/stacks_of_calls.h"

void stall_records_add(struct stall_records *records, const struct tscope_record *record) {
  switch (record->type) {
#define R(TYPE, list, name)                                                                        \
  case TSCOPE_REC_##TYPE:                                                                          \
    VECTOR_PUSH(&records->list, *(const struct tscope_##name##_record *)(const void *)record);     \
    return;
    STALL_RECORDS(R)
#undef R
  }
}

void stall_records_release(struct stall_records *records) {
#define R(TYPE, list, name) free(records->list.at);
  STALL_RECORDS(R)
#undef R
}

/* What all stalls of a process share while they are made. */
struct stall_making {
  const struct stall_records *records;
  const struct definitions *definitions;
  struct arena *arena;
  struct call_frame *frames; /* as definitions.frames, their texts kept once they are used */
  bool *kept;
  u32 pid;
};

static const char *copy_string(struct stall_making *m, u32 string) {
  return definition_string_kept(m->definitions, string, m->arena);
}

static i64 to_ns(const struct stall_making *m, u64 ticks) {
  return tick_map_ns(&m->definitions->ticks, ticks);
}

static const struct call_frame *frame_of(struct stall_making *m, u64 id) {
  const struct definitions *d = m->definitions;
  u32 number = frame_number(d, id);
  if (number == INDEX_NONE)
    return NULL;
  if (!m->kept[number]) {
    const struct frame_definition *frame = &d->frames[number];
    m->kept[number] = true;
    m->frames[number] = (struct call_frame){.file = copy_string(m, frame->file),
                                            .function = copy_string(m, frame->function),
                                            SAME(frame, line, first_line, runs_training)};
  }
  return &m->frames[number];
}

/* Frames that are not announced, as in a trace that was cut, are left out. */
static void fill_stack(struct stall_making *m, const struct tscope_thread_stack_record *record,
                       struct stalled_thread *thread) {
  u32 number = stack_number(m->definitions, record->stack);
  thread->python = true;
  thread->holds_gil = record->header.tag & TSCOPE_STACK_HOLDS_GIL;
  thread->moved = record->header.tag & TSCOPE_STACK_MOVED;
  if (number == INDEX_NONE)
    return;
  const struct stack_definition *stack = &m->definitions->stacks[number];
  thread->cut = stack->cut;
  thread->frames = arena_array(m->arena, stack->n, sizeof(*thread->frames));
  for (u32 i = 0; i < stack->n; i++) {
    const struct call_frame *frame = frame_of(m, m->definitions->stack_frames[stack->first + i]);
    if (frame)
      thread->frames[thread->n_frames++] = frame;
  }
}

static u32 number_of(const struct stall_making *m, u32 tid) {
  const struct thread_definition *thread =
      FIND(m->definitions->threads, m->definitions->n_threads, one, one->tid == tid);
  return thread ? thread->thread : INDEX_NONE;
}

ORDER_BY(by_main, struct stalled_thread, DOWN(main) UP(tid))

static void fill_threads(struct stall_making *m, u32 number, struct rank_stall *stall) {
  const struct stall_records *records = m->records;
  stall->threads = arena_array(m->arena, size_sum(records->states.n, records->stacks.n),
                               sizeof(*stall->threads));
  FOR_EACH(records->states.at, records->states.n, state)
    if (state->stall == number)
      stall->threads[stall->n_threads++] =
          (struct stalled_thread){.tid = state->tid,
                                  .number = number_of(m, state->tid),
                                  .state = (char)state->header.tag,
                                  .waits_for = (u8)(state->header.tag >> 8),
                                  .main = state->tid == m->pid,
                                  .name = copy_string(m, state->name),
                                  .wait = copy_string(m, state->wait),
                                  .call = copy_string(m, state->call),
                                  .file = copy_string(m, state->file)};
  FOR_EACH(records->stacks.at, records->stacks.n, record) {
    if (record->stall != number)
      continue;
    struct stalled_thread *thread = rank_stall_thread(stall, record->tid);
    if (!thread) {
      thread = &stall->threads[stall->n_threads++];
      *thread = (struct stalled_thread){
          .tid = record->tid, .number = number_of(m, record->tid), .main = record->tid == m->pid};
    }
    fill_stack(m, record, thread);
  }
  SORT(stall->threads, stall->n_threads, by_main);
}

static void fill_peers(struct stall_making *m, u32 number, struct rank_stall *stall) {
  const struct stall_records *records = m->records;
  stall->peers = arena_array(m->arena, records->peers.n, sizeof(*stall->peers));
  FOR_EACH(records->peers.at, records->peers.n, peer)
    if (peer->stall == number)
      stall->peers[stall->n_peers++] = (struct stalled_peer){.pid = peer->pid,
                                                             .state = (char)peer->header.tag,
                                                             .wait = copy_string(m, peer->wait),
                                                             .call = copy_string(m, peer->call),
                                                             .file = copy_string(m, peer->file)};
}

static const char *comm_name(struct stall_making *m, u32 number) {
  const struct definitions *d = m->definitions;
  for (u32 i = d->n_comms; i-- > 0;)
    if (d->comms[i].comm == number)
      return comm_label(d->comms[i].name, d->comms[i].identity, d->comms[i].size, m->arena);
  return "a communicator";
}

/* The last word on each. */
static void fill_comms(struct stall_making *m, u32 number, struct rank_stall *stall) {
  const struct stall_records *records = m->records;
  stall->comms = arena_array(m->arena, records->comms.n, sizeof(*stall->comms));
  FOR_EACH(records->comms.at, records->comms.n, state) {
    u32 at = 0;
    if (state->stall != number)
      continue;
    while (at < stall->n_comms && stall->comms[at].comm != state->comm)
      at++;
    stall->n_comms += at == stall->n_comms;
    stall->comms[at] = (struct stalled_comm){.comm = state->comm,
                                             .name = comm_name(m, state->comm),
                                             .result = state->result,
                                             .heard = state->header.tag == TSCOPE_COMM_STATE_HEARD};
  }
}

static struct rank_stall make_stall(struct stall_making *m,
                                    const struct tscope_stall_record *record) {
  struct rank_stall stall = {.what = (u8)record->header.tag,
                             .begin = to_ns(m, record->since),
                             .looked = to_ns(m, record->looked),
                             .end = NS_UNKNOWN,
                             .limit_s = record->limit_ms / 1e3,
                             .step_s = record->step_ms ? record->step_ms / 1e3 : (double)NAN,
                             .all_threads = record->threads,
                             .no_python = copy_string(m, record->python),
                             .folder =
                                 arena_text(m->arena, m->definitions->info[TSCOPE_INFO_DIRECTORY])};
  FOR_EACH(m->records->ends.at, m->records->ends.n, end)
    if (end->stall == record->stall)
      stall.end = to_ns(m, end->at);
  fill_threads(m, record->stall, &stall);
  fill_peers(m, record->stall, &stall);
  fill_comms(m, record->stall, &stall);
  return stall;
}

void stall_records_finish(const struct stall_records *records, u32 pid,
                          struct definitions *definitions, struct arena *arena) {
  struct stall_making m = {
      .records = records, .definitions = definitions, .arena = arena, .pid = pid};
  u32 n = records->stalls.n;
  if (!n)
    return;
  definitions_find_library(definitions);
  definitions->stalls = arena_array(arena, n, sizeof(*definitions->stalls));
  m.frames = arena_array(arena, definitions->n_frames, sizeof(*m.frames));
  m.kept = arena_array(arena, definitions->n_frames, sizeof(*m.kept));
  for (u32 i = 0; i < n; i++)
    definitions->stalls[i] = make_stall(&m, &records->stalls.at[i]);
  definitions->n_stalls = n;
}
