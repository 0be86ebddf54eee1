/* SPDX-License-Identifier: MIT
 *
 * What NCCL reports about each communicator while the job hangs: its asynchronous error.
 * NCCL is queried on the poller, a thread of tscope for which the job does not wait, except, and
 * not for long, in a call that ends this communicator.
 *
 * ncclCommGetAsyncError() reads a few words of the communicator and returns. But if calls do not
 * block, it also completes the rest of a group, and two threads must not call it at once. So a
 * communicator is queried only if its creation was seen, if calls on it block, and if nobody has
 * begun to end it. For the others there is the answer that the job got when it queried NCCL itself.
 */
#include <unistd.h>

#include "inspect/memory_read.h"
#include "nccl/nccl_record.h"
#include "record/families.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"

/* Most communicators without an error that are written of a stall. */
enum { MAX_WITHOUT_ERROR = 64 };

struct state_query {
  struct tscope_comm_state_record answer;
  ncclComm_t handle;
  bool may_query, known;
};

/* If tscope did not see the end of a communicator, its memory may be freed. */
static bool is_readable(ncclComm_t handle) {
  u64 word;
  return tscope_read_memory(getpid(), (u64)(uintptr_t)handle, &word, sizeof(word)) == 0;
}

static void read_known_error(struct communicator *comm, void *with) {
  struct state_query *state_query = with;
  ncclResult_t job_error = __atomic_load_n(&comm->job_error, __ATOMIC_RELAXED);
  state_query->handle = comm->handle;
  state_query->answer.comm = comm->number;
  if (comm->reported_stall == state_query->answer.stall)
    return;
  state_query->known = job_error != ncclSuccess;
  state_query->answer.result = (i32)job_error;
  state_query->may_query =
      !state_query->known && __atomic_load_n(&comm->get_state, __ATOMIC_ACQUIRE);
}

static void mark_reported(struct communicator *comm, void *with) {
  const struct state_query *state_query = with;
  if (comm->number == state_query->answer.comm)
    comm->reported_stall = state_query->answer.stall;
}

/* True if something was written about the communicator in the slot. */
static bool write_state(u32 slot, u32 stall, bool include_without_error) {
  struct state_query state_query = {.answer = {.stall = stall}};
  u16 how = TSCOPE_COMM_STATE_HEARD;
  if (!communicator_visit(slot, read_known_error, &state_query))
    return false;
  if (state_query.may_query && is_readable(state_query.handle)) {
    ncclResult_t state = ncclSuccess;
    state_query.known =
        communicator_query(slot, state_query.answer.comm, state_query.handle, &state);
    state_query.answer.result = (i32)state;
    how = TSCOPE_COMM_STATE_ASKED;
  }
  bool error = state_query.answer.result != ncclSuccess;
  if (!state_query.known || (!error && !include_without_error))
    return false;
  state_query.answer.at = tscope_ticks();
  bool written = tscope_definitions_write(TSCOPE_REC_COMM_STATE, how, &state_query.answer,
                                          sizeof(state_query.answer));
  if (written && error)
    communicator_visit(slot, mark_reported, &state_query);
  return written;
}

void communicators_write_states(u32 stall, bool first) {
  u32 written = 0;
  for (u32 slot = 0, n = communicator_slots(); slot < n; slot++)
    written += write_state(slot, stall, first && written < MAX_WITHOUT_ERROR);
}

void communicators_tick(struct tscope_thread *poller) {
  static u32 last_stall, ticks;
  u32 stall = __atomic_load_n(&tscope_stall_now, __ATOMIC_ACQUIRE);
  bool first = stall != last_stall;
  (void)poller;
  last_stall = stall;
  if (stall && (first || ++ticks % TSCOPE_TICKS_PER_S == 0))
    communicators_write_states(stall, first);
}
