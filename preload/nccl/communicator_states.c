/* SPDX-License-Identifier: MIT
 *
 * What NCCL says of each communicator while the job stands still: its asynchronous error. NCCL is
 * asked on the ticker, a thread of ours that the job never waits for.
 *
 * ncclCommGetAsyncError() reads a few words of the communicator and returns; but where calls do not
 * block it also finishes what a group has left, and must not be called by two threads at once. So
 * only communicators are asked whose making was seen, on which calls block, and that nobody has
 * begun to end. Of the others there is what the job has heard when it asked itself.
 */
#include <sys/uio.h>
#include <unistd.h>

#include "nccl/nccl_record.h"
#include "record/stall_now.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

enum {
  TICKS_BETWEEN = 10, /* rounds in a stall that goes on */
  WITHOUT_ERROR = 64, /* communicators of a stall that are written though NCCL says nothing */
};

struct question {
  struct tscope_comm_state_record answer;
  ncclComm_t handle;
  bool may_ask, known;
};

/* A communicator that ended in a way tscope did not see may have left no memory behind. */
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
  if (!question->known) /* calls on it do not block after all, or it is none any more */
    __atomic_store_n(&comm->ask, NULL, __ATOMIC_RELEASE);
}

static void was_told(struct communicator *comm, void *with) {
  const struct question *question = with;
  if (comm->number == question->answer.comm)
    comm->told = question->answer.stall;
}

/* True when something was written of the communicator at a place. */
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
