/* SPDX-License-Identifier: MIT
 *
 * Making and ending communicators.
 */
#include <stdio.h>

#include "cuda/gpu_facts.h"
#include "nccl/nccl_record.h"
#include "record/families.h"

static void record_version(struct tscope_thread *thread) {
  static bool reported;
  if (__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED))
    return;
  ncclResult_t (*get_version)(int *) = NCCL_FUNCTION("ncclGetVersion", thread);
  int code;
  if (!get_version || get_version(&code) != ncclSuccess)
    return;
  char text[32]; /* 2.8 and before count in thousands, later ones in ten thousands */
  int major = code < 10000 ? code / 1000 : code / 10000;
  snprintf(text, sizeof(text), "%d.%d.%d", major, code / 100 % (code < 10000 ? 10 : 100),
           code % 100);
  tscope_info(thread, TSCOPE_INFO_NCCL, text, NULL);
}

/* The name of the process group that creates a communicator at this moment, if there is one. */
static void set_name(struct tscope_thread *thread, struct pending_communicator *pending) {
  const char *(*label_now)(void) = __atomic_load_n(&communicator_label, __ATOMIC_RELAXED);
  const char *label = label_now ? label_now() : "";
  if (!label)
    pending->namer = thread;
  else if (label[0])
    pending->name = tscope_string(thread, label);
}

/* The creating call returned. Outside a group the communicator now exists; inside a group its
 * handle appears when the group ends. */
static void finish_creation(struct tscope_thread *thread, struct pending_communicator *pending,
                            ncclResult_t result) {
  TSCOPE_KEEP_ERRNO;
  set_name(thread, pending);
  struct nccl_thread *nccl = nccl_thread(thread);
  if (!nccl_accepted(result))
    tscope_failed_call(thread, TSCOPE_FAILED_NCCL, "making a communicator", (i32)result);
  if (!nccl->depth)
    communicator_created(thread, pending, result);
  else if (nccl_accepted(result) && nccl->n_pending < MAX_PENDING_COMMS)
    nccl->pending[nccl->n_pending++] = *pending;
  else if (nccl_accepted(result))
    tscope_count_lost(TSCOPE_LOSS_GROUPS, 1);
  record_version(thread);
  if (result == ncclSuccess && !nccl->depth) /* by now there is a context, whoever created it */
    gpu_facts_record_once(thread);
}

/* Whether a communicator's calls block. Its configuration is read only after NCCL accepted it:
 * before that it may contain anything. */
static bool is_blocking(const ncclConfig_t *config, ncclResult_t result) {
  return nccl_accepted(result) && (!config || config->blocking != 0);
}

void record_comm_init(struct tscope_thread *thread, u64 start, ncclResult_t result,
                      ncclComm_t *comm, int nranks, int rank, const ncclUniqueId *ids, int n_ids,
                      const ncclConfig_t *config) {
  struct pending_communicator pending = {.handle = comm,
                                         .identity = communicator_identity(ids, n_ids),
                                         .start = start,
                                         .rank = (u32)rank,
                                         .size = (u32)nranks,
                                         .device = -1,
                                         .color = -1,
                                         .blocks = is_blocking(config, result)};
  finish_creation(thread, &pending, result);
}

void record_comm_init_all(struct tscope_thread *thread, u64 start, ncclResult_t result,
                          ncclComm_t *comms, int n, const int *devices) {
  struct pending_communicator pending = {.identity = communicator_identity_private(),
                                         .start = start,
                                         .size = (u32)n,
                                         .color = -1,
                                         .blocks = true};
  for (int i = 0; comms && i < n; i++) {
    pending.handle = &comms[i];
    pending.rank = (u32)i;
    pending.device = devices ? devices[i] : i;
    finish_creation(thread, &pending, result);
  }
}

static struct pending_communicator pending_child(struct tscope_thread *thread, ncclComm_t parent,
                                                 ncclComm_t *child, i32 color, bool split) {
  struct pending_communicator pending = {.handle = child,
                                         .parent_handle = parent,
                                         .start = tscope_ticks(),
                                         .rank = TSCOPE_UNKNOWN_RANK,
                                         .device = -1,
                                         .color = color};
  struct communicator *comm = communicator_get(thread, parent);
  if (comm) {
    u32 *ordinal = split ? &comm->splits : &comm->shrinks;
    pending.parent = comm->identity;
    pending.blocks = __atomic_load_n(&comm->get_state, __ATOMIC_RELAXED) != NULL;
    pending.identity = communicator_identity_child(comm->identity,
                                                   __atomic_fetch_add(ordinal, 1, __ATOMIC_RELAXED),
                                                   color, split ? "split" : "shrink");
  }
  return pending;
}

struct child_call comm_split_begin(struct tscope_thread *thread, ncclComm_t parent, int color,
                                   ncclComm_t *child, const ncclConfig_t *config) {
  return (struct child_call){pending_child(thread, parent, child, color, true), config};
}

struct child_call comm_shrink_begin(struct tscope_thread *thread, ncclComm_t parent,
                                    ncclComm_t *child, const ncclConfig_t *config) {
  return (struct child_call){pending_child(thread, parent, child, -1, false), config};
}

void comm_shrink_end(struct tscope_thread *thread, struct child_call *call, ncclResult_t result) {
  call->pending.blocks &= is_blocking(call->config, result);
  finish_creation(thread, &call->pending, result);
}

void comm_split_end(struct tscope_thread *thread, struct child_call *call, ncclResult_t result) {
  if (call->pending.color != NCCL_SPLIT_NOCOLOR) /* else this rank is in no child */
    comm_shrink_end(thread, call, result);
}

struct pending_communicator comm_grow_begin(struct tscope_thread *thread, ncclComm_t from,
                                            int nranks, int rank, ncclComm_t *grown) {
  struct communicator *parent = communicator_get(thread, from);
  return (struct pending_communicator){.handle = grown,
                                       .parent_handle = from,
                                       .parent = parent ? parent->identity : 0,
                                       .start = tscope_ticks(),
                                       .rank = rank >= 0 ? (u32)rank : TSCOPE_UNKNOWN_RANK,
                                       .size = (u32)nranks,
                                       .device = -1,
                                       .color = -1};
}

void comm_grow_end(struct tscope_thread *thread, struct pending_communicator *pending,
                   ncclResult_t result) {
  finish_creation(thread, pending, result);
}

void record_comm_ready(struct tscope_thread *thread, u64 start, ncclResult_t result,
                       ncclComm_t comm, const ncclResult_t *state) {
  (void)start;
  if (result == ncclSuccess && state && (int)*state == TSCOPE_RESULT_IN_PROGRESS)
    communicator_stop_queries(comm);
  if (result == ncclSuccess && state && !nccl_accepted(*state) &&
      communicator_set_job_error(comm, *state))
    tscope_failed_call(thread, TSCOPE_FAILED_NCCL, "a communicator, asked for its state",
                       (i32)*state);
  if (result != ncclSuccess || !state || *state != ncclSuccess)
    return;
  communicator_ready(thread, comm);
  if (TSCOPE_UNLIKELY(nccl_thread(thread)->n_deferred))
    nccl_end_deferred(nccl_thread(thread), communicator_number(comm), true);
}

struct comm_end_call comm_end_begin(struct tscope_thread *thread, enum tscope_comm_end how,
                                    ncclComm_t comm) {
  communicator_stop_queries(comm);
  /* A handle that is destroyed may be given to another communicator before the call returns. */
  bool stays = how == TSCOPE_COMM_END_FINALIZE || how == TSCOPE_COMM_END_REVOKE;
  u32 number = stays ? communicator_number(comm) : communicator_remove(thread, comm);
  if (TSCOPE_UNLIKELY(nccl_thread(thread)->n_deferred))
    nccl_end_deferred(nccl_thread(thread), number, false);
  return (struct comm_end_call){.start = tscope_ticks(), .number = number, .how = (u16)how};
}

void comm_end_end(struct tscope_thread *thread, struct comm_end_call *call, ncclResult_t result) {
  if (call->number == TSCOPE_UNKNOWN)
    return;
  TSCOPE_KEEP_ERRNO;
  struct tscope_comm_end_record record = {.comm = call->number, .result = (u32)result};
  tscope_retain(thread, call->start, TSCOPE_REC_COMM_END, call->how, &record, sizeof(record));
}

const struct tscope_family tscope_nccl_family = {.thread_bytes = sizeof(struct nccl_thread),
                                                 .tick = communicators_tick};
