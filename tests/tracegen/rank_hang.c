/* SPDX-License-Identifier: MIT */
#include "rank_hang.h"

#define OUTER_FRAMES 12u
#define FRAME_HASH 0x1000u
#define STACK_HASH 0x2000u
#define PENDING (~0ull)

static const struct trace_place main_retained = {0, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS};
static const struct trace_place worker_retained = {2, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS};

static void frame(struct trace_writer *writer, u64 at, u64 hash, const char *file, u32 line) {
  u32 name = trace_string(writer, file), function = trace_string(writer, "run");
  struct tscope_frame_record *record =
      trace_add(writer, main_retained, at, TSCOPE_REC_FRAME, 0, sizeof(*record));
  record->frame = hash;
  record->file = name;
  record->function = function;
  record->line = line;
  record->first_line = 1;
}

/* A stack whose innermost frame differs between ranks; all ranks have the same outer frames. */
static void stack(struct trace_writer *writer, u64 at, const char *file, u32 line) {
  frame(writer, at, FRAME_HASH, file, line);
  for (u32 i = 1; i <= OUTER_FRAMES; i++)
    frame(writer, at, FRAME_HASH + i, "trainer.py", 100 * i);
  struct tscope_stack_record *record =
      trace_add(writer, main_retained, at, TSCOPE_REC_STACK, 0,
                sizeof(*record) + (1 + OUTER_FRAMES) * sizeof(u64));
  record->stack = STACK_HASH;
  record->frames = 1 + OUTER_FRAMES;
  u64 *frames = (u64 *)(record + 1);
  for (u32 i = 0; i <= OUTER_FRAMES; i++)
    frames[i] = FRAME_HASH + i;
}

static void waiting_collective(struct trace_writer *writer, const struct rank_hang *hang) {
  struct tscope_collective_record *call =
      trace_add(writer, main_retained, hang->since, TSCOPE_REC_COLLECTIVE, TSCOPE_OP_ALLREDUCE,
                sizeof(*call));
  call->dur = 1000;
  call->count = 1;
  call->bytes = 4;
  call->comm = hang->comm;
  call->seq = hang->seq;
  call->peer = -1;
  call->stream = TSCOPE_NO_STREAM;
  call->dtype = TSCOPE_DTYPE_F32;
  call->redop = TSCOPE_REDOP_SUM;
  struct tscope_comm_wait_record *wait =
      trace_add(writer, main_retained, hang->since + 2000, TSCOPE_REC_COMM_WAIT, 0, sizeof(*wait));
  wait->dur = PENDING;
  wait->comm = hang->comm;
  wait->seq = hang->seq;
  struct tscope_collective_run_record *run =
      trace_add(writer, worker_retained, hang->since + 2000, TSCOPE_REC_COLLECTIVE_RUN,
                TSCOPE_NO_STREAM, sizeof(*run));
  run->dur = PENDING;
  run->comm = hang->comm;
  run->seq = hang->seq;
  run->name = hang->name;
}

static void stall(struct trace_writer *writer, const struct rank_hang *hang) {
  u32 name = trace_string(writer, "python");
  u32 wait = trace_string(writer, hang->culprit ? "folio_wait_bit_common" : "futex_do_wait");
  u32 call = trace_string(writer, hang->culprit ? "write" : "futex");
  u32 file = hang->culprit ? trace_string(writer, "/checkpoints/step-20.pt") : 0;
  struct tscope_stall_record *record =
      trace_add(writer, main_retained, hang->looked, TSCOPE_REC_STALL, TSCOPE_STALL_NOTHING_MOVED,
                sizeof(*record));
  record->since = hang->since_ticks;
  record->looked = hang->looked_ticks;
  record->stall = 1;
  record->threads = 1;
  record->limit_ms = TRACEGEN_STALL_MS;
  struct tscope_thread_state_record *state =
      trace_add(writer, main_retained, hang->looked + 1, TSCOPE_REC_THREAD_STATE,
                hang->culprit ? 'D' : 'S', sizeof(*state));
  state->stall = 1;
  state->tid = 1000;
  state->name = name;
  state->wait = wait;
  state->call = call;
  state->file = file;
  struct tscope_thread_stack_record *where = trace_add(writer, main_retained, hang->looked + 2,
                                                       TSCOPE_REC_THREAD_STACK, 0, sizeof(*where));
  where->stack = STACK_HASH;
  where->stall = 1;
  where->tid = 1000;
}

void rank_hang_write(struct trace_writer *writer, const struct rank_hang *hang) {
  if (hang->culprit) {
    stack(writer, hang->since, RANK_HANG_CULPRIT);
  } else {
    waiting_collective(writer, hang);
    stack(writer, hang->since + 3000, RANK_HANG_WAITS);
  }
  stall(writer, hang);
}
