/* SPDX-License-Identifier: MIT
 *
 * Where a process stands still, as its own watchdog recorded it, in the report's words.
 */
#include <errno.h>

#include "analyses/stalls/stall_words.h"
#include "base/checked_memory.h"
#include "live/live_records.h"
#include "live/live_view.h"

enum { FRAMES_KEPT = 1 << 15, STACKS_KEPT = 1 << 12, STACK_FRAMES_KEPT = 1 << 16 };

static void read_frame(struct live_process *process, const struct tscope_frame_record *frame) {
  if (process->frames.n < FRAMES_KEPT)
    process->short_of_memory |= !VECTOR_PUSH(&process->frames, *frame);
}

static void read_stack(struct live_process *process, const struct tscope_stack_record *stack) {
  u32 room = (u32)((8u * stack->header.words - sizeof(*stack)) / sizeof(u64));
  u32 n = stack->frames < room ? stack->frames : room;
  const u64 *frames = (const void *)(stack + 1);
  struct live_stack kept = {stack->stack, process->stack_frames.n, n, stack->cut != 0};
  if (process->stacks.n >= STACKS_KEPT || process->stack_frames.n + n > STACK_FRAMES_KEPT)
    return;
  process->short_of_memory |= !VECTOR_PUSH(&process->stacks, kept);
  for (u32 i = 0; i < n; i++)
    process->short_of_memory |= !VECTOR_PUSH(&process->stack_frames, frames[i]);
}

static struct live_stalled *thread_of(struct live_stall *stall, u32 tid) {
  for (u32 i = 0; tid && i < stall->n_threads; i++)
    if (stall->threads[i].state.tid == tid)
      return &stall->threads[i];
  if (stall->n_threads == LIVE_STALLED)
    return NULL;
  struct live_stalled *thread = &stall->threads[stall->n_threads++];
  *thread = (struct live_stalled){.state = {.tid = tid}};
  return thread;
}

/* Only errors: that there is none need not be on a page. */
static void add_comm_error(struct live_stall *stall, const struct tscope_comm_state_record *state) {
  if (state->stall == stall->record.stall && state->result && stall->n_comms < LIVE_COMM_STATES)
    stall->comms[stall->n_comms++] = *state;
}

void live_read_stall(struct live_process *process, const struct live_record *record) {
  const void *raw = record->record;
  struct live_stall *stall = &process->stall;
  struct live_stalled *thread;
  switch (record->record->type) {
  case TSCOPE_REC_FRAME:
    read_frame(process, raw);
    break;
  case TSCOPE_REC_STACK:
    read_stack(process, raw);
    break;
  case TSCOPE_REC_STALL:
    *stall = (struct live_stall){.record = *(const struct tscope_stall_record *)raw, .on = true};
    break;
  case TSCOPE_REC_STALL_END:
    if (((const struct tscope_stall_end_record *)raw)->stall == stall->record.stall)
      stall->on = false;
    break;
  case TSCOPE_REC_THREAD_STATE:
    thread = thread_of(stall, ((const struct tscope_thread_state_record *)raw)->tid);
    if (thread)
      thread->state = *(const struct tscope_thread_state_record *)raw;
    break;
  case TSCOPE_REC_THREAD_STACK:
    thread = thread_of(stall, ((const struct tscope_thread_stack_record *)raw)->tid);
    if (thread) {
      thread->stack = *(const struct tscope_thread_stack_record *)raw;
      thread->python = true;
    }
    break;
  case TSCOPE_REC_COMM_STATE:
    add_comm_error(stall, raw);
    break;
  default:
    break;
  }
}

static const struct call_frame *frame_of(const struct live_process *process, u64 id,
                                         struct arena *arena) {
  for (u32 i = 0; i < process->frames.n; i++) {
    const struct tscope_frame_record *known = &process->frames.at[i];
    if (known->frame != id)
      continue;
    struct call_frame *frame = arena_alloc(arena, sizeof(*frame));
    if (frame)
      *frame = (struct call_frame){.file = live_string(process, known->file),
                                   .function = live_string(process, known->function),
                                   .line = known->line,
                                   .first_line = known->first_line};
    return frame;
  }
  return NULL;
}

/* Frames that are not announced are left out. */
static void put_frames(const struct live_process *process, u64 id, struct stalled_thread *thread,
                       struct arena *arena) {
  for (u32 i = 0; i < process->stacks.n; i++) {
    const struct live_stack *stack = &process->stacks.at[i];
    if (stack->id != id)
      continue;
    thread->cut = stack->cut;
    thread->frames = arena_array(arena, size_sum(stack->n, 1), sizeof(*thread->frames));
    for (u32 f = 0; f < stack->n && thread->frames; f++) {
      const struct call_frame *frame =
          frame_of(process, process->stack_frames.at[stack->first + f], arena);
      if (frame)
        thread->frames[thread->n_frames++] = frame;
    }
    return;
  }
}

static void put_thread(const struct live_process *process, const struct live_stalled *known,
                       struct stalled_thread *thread, struct arena *arena) {
  *thread = (struct stalled_thread){
      .tid = known->state.tid,
      .state = (char)known->state.header.tag,
      .name = live_string(process, known->state.name),
      .wait = live_string(process, known->state.wait),
      .call = live_string(process, known->state.call),
      .file = live_string(process, known->state.file),
      .main = known->state.tid == process->trace.file.header.pid,
      .python = known->python,
      .holds_gil = known->stack.header.tag & TSCOPE_STACK_HOLDS_GIL,
      .moved = known->stack.header.tag & TSCOPE_STACK_MOVED,
  };
  if (known->python && known->stack.stack)
    put_frames(process, known->stack.stack, thread, arena);
}

static const char *comm_name(struct live_view *view, const struct live_process *process,
                             u32 number) {
  for (u32 i = process->comms.n; i-- > 0;)
    if (process->comms.at[i].number == number)
      return live_group_name(view, process, &process->comms.at[i]);
  return "a communicator";
}

/* What NCCL reports, for the words of the stall; the first error represents the rank. */
static void put_comms(struct live_view *view, struct live_rank *rank, struct rank_stall *stall) {
  const struct live_stall *known = &rank->process->stall;
  stall->comms = arena_array(&view->arena, size_sum(known->n_comms, 1), sizeof(*stall->comms));
  for (u32 i = 0; i < known->n_comms && stall->comms; i++) {
    const struct tscope_comm_state_record *state = &known->comms[i];
    stall->comms[stall->n_comms++] =
        (struct stalled_comm){.comm = state->comm,
                              .name = comm_name(view, rank->process, state->comm),
                              .result = state->result,
                              .heard = state->header.tag == TSCOPE_COMM_STATE_HEARD};
  }
  rank->nccl_error = stall->n_comms ? nccl_error_text(stall->comms[0].result) : NULL;
}

void live_describe_stall(struct live_view *view, struct live_rank *rank) {
  const struct live_process *process = rank->process;
  const struct live_stall *known = &process->stall;
  struct arena *arena = &view->arena;
  struct rank_stall *stall = known->on ? arena_alloc(arena, sizeof(*stall)) : NULL;
  if (!stall)
    return;
  *stall = (struct rank_stall){
      .what = (u8)known->record.header.tag,
      .begin = live_ticks_ns(process, known->record.since),
      .looked = live_ticks_ns(process, known->record.looked),
      .end = NS_UNKNOWN,
      .limit_s = known->record.limit_ms / 1e3,
      .all_threads = known->record.threads,
      .no_python = live_string(process, known->record.python),
      .threads = arena_array(arena, size_sum(known->n_threads, 1), sizeof(*stall->threads))};
  for (u32 i = 0; i < known->n_threads && stall->threads; i++)
    put_thread(process, &known->threads[i], &stall->threads[stall->n_threads++], arena);
  put_comms(view, rank, stall);
  struct stalled_rank described = {0};
  bool in_collective = rank->in_call || rank->in_wait_s >= 0;
  if (!stall_describe(arena, stall, in_collective ? rank->op : NULL, &described))
    return;
  rank->stalled_in = described.words;
  rank->stall = stall;
  rank->stalled_s = live_seconds_between(stall->begin, rank->seen_ns);
}

int live_merge_stalls(struct live_view *view) {
  u64 threads = 0;
  u32 n = 0;
  for (u32 i = 0; i < view->n_ranks; i++) {
    threads += view->ranks[i].stall ? view->ranks[i].stall->n_threads : 0;
    view->n_stalled += view->ranks[i].stall != NULL;
  }
  if (!view->n_stalled)
    return 0;
  struct tree_stack *stacks = arena_array(&view->arena, size_sum(threads, 1), sizeof(*stacks));
  if (!stacks)
    return -ENOMEM;
  for (u32 i = 0; i < view->n_ranks; i++)
    if (view->ranks[i].stall)
      n += stall_stacks(view->ranks[i].stall, view->ranks[i].rank, stacks + n);
  return stack_tree_make(&view->arena, stacks, n, &view->stalls);
}
