/* SPDX-License-Identifier: MIT
 *
 * What NCCL reports about each communicator while the job stands still: its asynchronous error.
 * NCCL is queried on the ticker, a thread of tscope for which the job does not wait, except in a
 * call that ends this communicator.
 *
 * ncclCommGetAsyncError() reads a few words of the communicator and returns. But if calls do not
 * block, it also completes the rest of a group, and two threads must not call it at once. So a
 * communicator is queried only if its creation was seen, if calls on it block, and if nobody has
 * begun to end it. For the others there is the answer that the job got when it queried NCCL itself.
 */
#include <sys/uio.h>
#include <unistd.h>

#include "nccl/nccl_record.h"
#include "record/stall_now.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

enum {
  TICKS_BETWEEN = 10, /* rounds in a stall that goes on */
  WITHOUT_ERROR = 64, /* most communicators without an error that are written of a stall */
};

struct question {
  struct tscope_comm_state_record answer;
  ncclComm_t handle;
  bool may_ask, known;
};

/* If tscope did not see the end of a communicator, its memory may be gone. */
static bool is_readable(ncclComm_t handle) {
  u64 word;
  struct iovec here = {&word, sizeof(word)}, there = {(void *)handle, sizeof(word)};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof(word);
}

static void look(struct communicator *comm, void *with) {
  struct question *question = with;
  ncclResult_t heard = __atomic_load_n(&comm->heard, __ATOMIC_RELAXED);
  question->handle = comm->handle;
  question->answer.comm = comm->number;
  if (comm->told == question->answer.stall)
    return;
  question->known = heard != ncclSuccess;
  question->answer.result = (i32)heard;
  question->may_ask = !question->known && __atomic_load_n(&comm->ask, __ATOMIC_ACQUIRE);
}

static void ask(struct communicator *comm, void *with) {
  struct question *question = with;
  nccl_asks_state ask_nccl = __atomic_load_n(&comm->ask, __ATOMIC_ACQUIRE);
  ncclResult_t state = ncclSuccess;
  if (comm->number != question->answer.comm || !ask_nccl)
    return;
  question->known =
      ask_nccl(comm->handle, &state) == ncclSuccess && (int)state != TSCOPE_RESULT_IN_PROGRESS;
  question->answer.result = (i32)state;
  if (!question->known) /* calls on it do not block after all, or it does not exist any more */
    __atomic_store_n(&comm->ask, NULL, __ATOMIC_RELEASE);
}

static void was_told(struct communicator *comm, void *with) {
  const struct question *question = with;
  if (comm->number == question->answer.comm)
    comm->told = question->answer.stall;
}

/* True if something was written about the communicator at an index. */
static bool tell(u32 place, u32 stall, bool also_without) {
  struct question question = {.answer = {.stall = stall}};
  u16 how = TSCOPE_COMM_STATE_HEARD;
  if (!communicator_visit(place, look, &question))
    return false;
  if (question.may_ask && is_readable(question.handle)) {
    communicator_visit(place, ask, &question);
    how = TSCOPE_COMM_STATE_ASKED;
  }
  bool error = question.answer.result != ncclSuccess;
  if (!question.known || (!error && !also_without))
    return false;
  question.answer.at = tscope_ticks();
  bool written = tscope_definitions_write(TSCOPE_REC_COMM_STATE, how, &question.answer,
                                          sizeof(question.answer));
  if (written && error)
    communicator_visit(place, was_told, &question);
  return written;
}

void communicators_tell_states(u32 stall, bool first) {
  u32 written = 0;
  for (u32 place = 0, n = communicator_places(); place < n; place++)
    written += tell(place, stall, first && written < WITHOUT_ERROR);
}

void communicators_tick(struct tscope_thread *ticker) {
  static u32 asked, ticks;
  u32 stall = __atomic_load_n(&tscope_stall_now, __ATOMIC_ACQUIRE);
  bool first = stall != asked;
  (void)ticker;
  asked = stall;
  if (stall && (first || ++ticks % TICKS_BETWEEN == 0))
    communicators_tell_states(stall, first);
}
