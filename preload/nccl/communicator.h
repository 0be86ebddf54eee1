/* SPDX-License-Identifier: MIT
 *
 * The communicators of this process: who they are, and what number comes next on each. A
 * communicator is known by its handle from the moment the job gets it until it gives it back; its
 * memory is NCCL's and is never read.
 */
#ifndef TSCOPE_COMMUNICATOR_H
#define TSCOPE_COMMUNICATOR_H

#include <nccl.h>

#include "record/hook.h"

extern const char *const tscope_nccl_sonames[];

typedef ncclResult_t (*nccl_asks_state)(ncclComm_t, ncclResult_t *);

struct communicator {
  u64 identity; /* 0: made before tscope watched, or by a function it does not know */
  u64 parent;
  u64 create_dur;
  u32 number; /* in the trace */
  u32 rank;
  u32 size;
  i32 device;
  i32 color;
  u32 collectives; /* the next sequence number of each kind */
  u32 transfers;
  u32 splits; /* children made from it so far, which is part of their identity */
  u32 shrinks;
  u32 announced;       /* COMM record written */
  u32 name;            /* string, 0: it has no name */
  ncclComm_t handle;   /* NULL once it is forgotten */
  u32 told;            /* stall in which its error was written, 0: none */
  ncclResult_t heard;  /* its asynchronous error as the job heard it from NCCL, or ncclSuccess */
  nccl_asks_state ask; /* NCCL's own function for this one; NULL: it must not be asked */
};

/* A communicator that is being made. The handle appears at `handle`, which is the job's variable:
 * at once, at the end of the group, or, where calls do not block, once ncclCommGetAsyncError() on
 * the parent says that it is done. It is only read at those moments. */
struct pending_communicator {
  ncclComm_t *handle;
  ncclComm_t parent_handle; /* whose completion a non-blocking split waits for */
  u64 identity;
  u64 parent;
  u64 start;
  u32 rank;
  u32 size;
  i32 device;
  i32 color;
  u32 name;    /* string */
  bool blocks; /* calls on it block, as far as the job says */
};

/* What people call the communicator that the calling thread is making: the description, or else the
 * name, of its process group. "" if it has neither; valid during the call that makes it. Set by a
 * framework that knows; NULL where there is none. */
extern const char *(*communicator_label)(void);

/* Identity from the unique ids, the same on every rank that was given the same ids in the same
 * order. Never 0. */
u64 communicator_identity(const ncclUniqueId *ids, int n_ids);

/* Identity that this process alone makes up, for communicators that live in one process. */
u64 communicator_identity_private(void);

/* Identity of a child. All members make the children of a parent in the same order. 0 when the
 * parent's is not known. */
u64 communicator_identity_child(u64 parent, u32 ordinal, i32 color, const char *kind);

/* The communicator behind a handle; an unknown one is entered with identity 0. NULL when the table
 * is full or the handle is NULL. Its COMM record is written if it is not yet. */
struct communicator *communicator_get(struct tscope_thread *thread, ncclComm_t handle);

/* The call that makes `pending` returned `result`: enters it, or waits for its handle. */
void communicator_made(struct tscope_thread *thread, const struct pending_communicator *pending,
                       ncclResult_t result);

/* The job has learned that nothing is in progress on `handle` any more. */
void communicator_ready(struct tscope_thread *thread, ncclComm_t handle);

/* The job has heard an asynchronous error of `handle`. False if it had heard the same before. */
bool communicator_heard(ncclComm_t handle, ncclResult_t error);

/* NCCL is not to be asked of it any more: it is about to end, or calls on it do not block. */
void communicator_ask_no_more(ncclComm_t handle);

/* Forgets a handle that is about to be invalid. Returns the communicator's number, TSCOPE_UNKNOWN
 * if there was none. */
u32 communicator_forget(struct tscope_thread *thread, ncclComm_t handle);

/* Its number, TSCOPE_UNKNOWN if the handle is not known. */
u32 communicator_number(ncclComm_t handle);

/* Communicators live at places below this number. */
u32 communicator_places(void);

/* Calls `look` with the communicator at a place, which is not forgotten meanwhile: the call that
 * ends it waits. False, without a call, where there is none or its lock is not free at once.
 */
bool communicator_visit(u32 place, void (*look)(struct communicator *, void *), void *with);

/* communicator_states.c: writes what NCCL says of each while the job stands still; on the `first`
 * look at a stall also where it says no error. Not on a thread of the job's. */
void communicators_tell_states(u32 stall, bool first);
/* For each tick of the ticker. */
void communicators_tick(struct tscope_thread *ticker);

#endif
