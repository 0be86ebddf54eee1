/* SPDX-License-Identifier: MIT
 *
 * The communicators of this process: their identity, and the next sequence number on each. A
 * communicator is known by its handle, from when the job gets the handle until the job releases it.
 * Its memory belongs to NCCL and is never read.
 */
#pragma once

#include <nccl.h>

#include "record/hook.h"

extern const char *const tscope_nccl_sonames[];

/* A function of the NCCL to which the hooked call in progress goes on; NULL if there is none. */
#define NCCL_FUNCTION(name, thread) TSCOPE_FUNCTION_OF_COPY(name, tscope_nccl_sonames, thread)

typedef ncclResult_t (*nccl_get_state)(ncclComm_t, ncclResult_t *);

struct communicator {
  u64 identity; /* 0: created before tscope watched, or by a function that tscope does not know */
  u64 parent;
  u64 create_dur;
  u32 rank;
  u32 size;
  i32 device;
  i32 color;
  u32 collectives; /* the next sequence number of each kind */
  u32 transfers;
  u32 splits; /* number of children made from it so far; part of their identity */
  u32 shrinks;
  u32 recorded; /* COMM record written */
  u32 name;     /* string, 0: it has no name */
  const struct tscope_thread
      *namer;         /* the thread that made it and will name it; NULL: no name will come */
  ncclComm_t handle;  /* NULL once it is removed */
  u32 reported_stall; /* the stall in which its error was written, 0: none */
  ncclResult_t
      job_error; /* its asynchronous error as NCCL returned it to the job, or ncclSuccess */
  /* A query may read what follows while its slot is given to another communicator. */
  u32 number; /* in the trace */
  nccl_get_state
      get_state; /* NCCL's own function for this communicator; NULL: it must not be called */
};

/* A communicator that is being created. The handle appears in the job's variable `handle`: at once,
 * at the end of the group, or, if calls do not block, once ncclCommGetAsyncError() on the parent
 * says that it is done. The variable is read only at those moments. */
struct pending_communicator {
  ncclComm_t *handle;
  ncclComm_t parent_handle; /* a non-blocking split waits for its completion */
  u64 identity;
  u64 parent;
  u64 start;
  u32 rank;
  u32 size;
  i32 device;
  i32 color;
  u32 name; /* string */
  const struct tscope_thread *namer;
  bool blocks; /* calls on it block, according to the job */
};

/* A readable name for the communicator that the calling thread is creating: the description, or
 * else the name, of its process group; "" if it has neither, NULL if this thread will call
 * communicators_named() soon. Valid during the creating call. Set by the family of a framework that
 * knows it; NULL if there is none. */
extern const char *(*communicator_label)(void);

/* Names the communicators that this thread made and whose names were to come. They are recorded
 * when the name is `final`, or when they are first used. */
void communicators_named(struct tscope_thread *thread, const char *name, bool final);

/* Identity from the unique ids: the same on every rank that got the same ids in the same order.
 * Never 0. */
u64 communicator_identity(const ncclUniqueId *ids, int n_ids);

/* Identity chosen by this process alone, for communicators that exist in only one process. */
u64 communicator_identity_private(void);

/* Identity of a child. All members create the children of a parent in the same order. 0 if the
 * parent's identity is not known. */
u64 communicator_identity_child(u64 parent, u32 ordinal, i32 color, const char *kind);

/* The communicator of a handle; an unknown one is added with identity 0. NULL if the table is full
 * or the handle is NULL. Writes its COMM record if that is not yet written. */
struct communicator *communicator_get(struct tscope_thread *thread, ncclComm_t handle);

/* The call that creates `pending` returned `result`: adds the communicator, or waits for its
 * handle. */
void communicator_created(struct tscope_thread *thread, const struct pending_communicator *pending,
                          ncclResult_t result);

/* The job has learned that nothing is in progress on `handle` any more. */
void communicator_ready(struct tscope_thread *thread, ncclComm_t handle);

/* The job got an asynchronous error of `handle` from NCCL. False if it got the same one before. */
bool communicator_set_job_error(ncclComm_t handle, ncclResult_t error);

/* NCCL must not be queried about it any more: it is about to end, or calls on it do not block. */
void communicator_stop_queries(ncclComm_t handle);

/* Removes a handle that is about to become invalid. Returns the communicator's number,
 * TSCOPE_UNKNOWN if there was none. */
u32 communicator_remove(struct tscope_thread *thread, ncclComm_t handle);

/* Its number, TSCOPE_UNKNOWN if the handle is not known. */
u32 communicator_number(ncclComm_t handle);

/* Communicators are in slots below this number. */
u32 communicator_slots(void);

/* Calls `visit` with the communicator in a slot. It is not removed meanwhile: the call that ends
 * it waits, and so does every call that adds one. So `visit` only reads and writes its fields.
 * False, without a call, if there is none or its lock is not free at once. */
bool communicator_visit(u32 slot, void (*visit)(struct communicator *, void *), void *with);

/* Gets the state of the communicator `number`, which was in `slot`, from NCCL. Only a call that
 * ends this communicator waits meanwhile, for at most a second. False if NCCL must not be queried
 * about it any more, or does not answer with a state. */
bool communicator_query(u32 slot, u32 number, ncclComm_t handle, ncclResult_t *state);

/* communicator_states.c: writes what NCCL reports about each communicator while the job
 * hangs. In the `first` round of a stall it also writes those without an error. Not on a thread of
 * the job. */
void communicators_write_states(u32 stall, bool first);
/* For each tick of the poller. */
void communicators_tick(struct tscope_thread *poller);
