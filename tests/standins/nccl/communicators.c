/* SPDX-License-Identifier: MIT
 *
 * Communicators: create, split, shrink, abort, destroy. The identity of a communicator is the name
 * of its segment. It is a hash of the unique id, or of the parent's identity and the split or
 * shrink.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "comm.h"

static uint64_t hash(uint64_t seed, const void *bytes, size_t n) {
  const unsigned char *at = bytes;
  uint64_t value = seed ^ 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++)
    value = (value ^ at[i]) * 0x100000001b3u;
  return value;
}

static void make_identity(char identity[33], const void *bytes, size_t n) {
  snprintf(identity, 33, "%016llx%016llx", (unsigned long long)hash(0, bytes, n),
           (unsigned long long)hash(0x9e3779b97f4a7c15u, bytes, n));
}

NCCL_API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (!id)
    return ncclInvalidArgument;
  memset(id, 0, sizeof(*id));
  return getrandom(id->internal, 32, 0) == 32 ? ncclSuccess : ncclSystemError;
}
PROFILED(ncclGetUniqueId);

/* NCCL_CTA_POLICY: a number, or 0x and a number. */
static bool wants_copies(const ncclConfig_t *config) {
  const char *text = getenv("NCCL_CTA_POLICY");
  int policy = text ? (int)strtol(text, NULL, 0) : config ? config->CTAPolicy : 0;
  return policy & NCCL_CTA_POLICY_ZERO;
}

static ncclResult_t join(ncclComm_t *comm, int nranks, const ncclUniqueId *ids, int n, int rank,
                         const ncclConfig_t *config) {
  char identity[33];
  if (!comm || n < 1)
    return ncclInvalidArgument;
  make_identity(identity, ids, (size_t)n * sizeof(*ids));
  ncclResult_t result = comm_join(comm, identity, nranks, rank);
  if (result == ncclSuccess)
    (*comm)->copies = wants_copies(config);
  return result == ncclSuccess ? group_await(*comm) : result;
}

NCCL_API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
  return join(comm, nranks, &id, 1, rank, NULL);
}
PROFILED(ncclCommInitRank);

NCCL_API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                             int rank, ncclConfig_t *config) {
  return join(comm, nranks, &id, 1, rank, config);
}
PROFILED(ncclCommInitRankConfig);

NCCL_API ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int n,
                                               ncclUniqueId *ids, ncclConfig_t *config) {
  return join(comm, nranks, ids, n, rank, config);
}
PROFILED(ncclCommInitRankScalable);

NCCL_API ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices) {
  ncclUniqueId id;
  ncclResult_t result = comms && n > 0 ? ncclGetUniqueId(&id) : ncclInvalidArgument;
  int before = *sim_device();
  char identity[33];
  if (result == ncclSuccess)
    make_identity(identity, &id, sizeof(id));
  for (int rank = 0; rank < n && result == ncclSuccess; rank++) {
    *sim_device() = devices ? devices[rank] : rank;
    result = comm_join(&comms[rank], identity, n, rank);
  }
  *sim_device() = before;
  return result;
}
PROFILED(ncclCommInitAll);

static ncclResult_t derive(struct ncclComm *parent, const char *how, uint64_t round, int group,
                           int nranks, int rank, ncclComm_t *into) {
  char text[96], identity[33];
  snprintf(text, sizeof(text), "%s %s %llu %d", parent->identity, how, (unsigned long long)round,
           group);
  make_identity(identity, text, strlen(text));
  return comm_join(into, identity, nranks, rank);
}

/* The new communicator has the ranks of one color, ordered by key, then by rank in the parent. */
ncclResult_t split_finish(const struct pending_split *split, struct ncclComm **joined) {
  struct ncclComm *parent = split->parent;
  struct segment *segment = parent->segment;
  uint32_t done, wanted = (uint32_t)(split->round * (uint64_t)parent->nranks);
  while ((int32_t)((done = atomic_load(&segment->split)) - wanted) < 0)
    futex_wait(&segment->split, done);
  const struct split *all = segment->splits[split->round % 2], *own = &all[parent->rank];
  int size = 0, rank = 0;
  for (int other = 0; other < parent->nranks; other++) {
    if (all[other].color != own->color)
      continue;
    size++;
    rank += all[other].key < own->key || (all[other].key == own->key && other < parent->rank);
  }
  if (own->color == NCCL_SPLIT_NOCOLOR) {
    *split->into = NULL;
    return ncclSuccess;
  }
  ncclResult_t result = derive(parent, "split", split->round, own->color, size, rank, split->into);
  if (result == ncclSuccess)
    *joined = *split->into;
  return result;
}

NCCL_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *into,
                                    ncclConfig_t *config) {
  (void)config;
  if (!comm || !into || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
    return ncclInvalidArgument;
  struct pending_split split = {comm, into, ++comm->splits};
  comm->segment->splits[split.round % 2][comm->rank] =
      (struct split){.round = split.round, .color = color, .key = key};
  atomic_fetch_add(&comm->segment->split, 1);
  futex_wake(&comm->segment->split);
  return group_split(&split);
}
PROFILED(ncclCommSplit);

NCCL_API ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int n, ncclComm_t *into,
                                     ncclConfig_t *config, int flags) {
  (void)config, (void)flags;
  bool is_excluded[MAX_RANKS] = {false};
  if (!comm || !into || n < 1 || n >= comm->nranks)
    return ncclInvalidArgument;
  for (int i = 0; i < n; i++) {
    if (excluded[i] < 0 || excluded[i] >= comm->nranks || excluded[i] == comm->rank)
      return ncclInvalidArgument;
    is_excluded[excluded[i]] = true;
  }
  int size = 0, rank = 0;
  for (int other = 0; other < comm->nranks; other++) {
    size += !is_excluded[other];
    rank += !is_excluded[other] && other < comm->rank;
  }
  int group = (int)(hash(0, is_excluded, sizeof(is_excluded)) & 0x7fffffff);
  ncclResult_t result = derive(comm, "shrink", ++comm->shrinks, group, size, rank, into);
  return result == ncclSuccess ? group_await(*into) : result;
}
PROFILED(ncclCommShrink);

static void wait_for_last(struct ncclComm *comm) {
  if (comm->last && !comm->last->done)
    sim_wait(comm->last);
}

NCCL_API ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (!comm)
    return ncclInvalidArgument;
  sim_lock();
  wait_for_last(comm);
  sim_unlock();
  return ncclSuccess;
}
PROFILED(ncclCommFinalize);

/* Ends this rank's part in a communicator. `aborted`: its kernels end now. Those of the other ranks
 * do not end until they abort too; ncclCommGetAsyncError() tells them. */
static ncclResult_t end_comm(struct ncclComm *comm, bool aborted) {
  if (!comm)
    return ncclSuccess;
  sim_lock();
  if (aborted) {
    comm->aborted = true;
    atomic_store(&comm->segment->aborted, 1);
  }
  wait_for_last(comm);
  sim_op_release(comm->last);
  comm->last = NULL;
  comm_release(comm);
  sim_unlock();
  return ncclSuccess;
}

NCCL_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return end_comm(comm, false);
}
PROFILED(ncclCommDestroy);

NCCL_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end_comm(comm, true);
}
PROFILED(ncclCommAbort);

NCCL_API ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  (void)flags;
  if (!comm)
    return ncclInvalidArgument;
  sim_lock();
  comm->aborted = true;
  atomic_store(&comm->segment->aborted, 1);
  sim_unlock();
  return ncclSuccess;
}
PROFILED(ncclCommRevoke);

NCCL_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (!comm || !error)
    return ncclInvalidArgument;
  *error = comm->error;
  if (*error == ncclSuccess && !comm->aborted && atomic_load(&comm->segment->aborted))
    *error = ncclRemoteError;
  return ncclSuccess;
}
PROFILED(ncclCommGetAsyncError);

NCCL_API ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  if (!comm || !count)
    return ncclInvalidArgument;
  *count = comm->nranks;
  return ncclSuccess;
}
PROFILED(ncclCommCount);

NCCL_API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  if (!comm || !rank)
    return ncclInvalidArgument;
  *rank = comm->rank;
  return ncclSuccess;
}
PROFILED(ncclCommUserRank);

NCCL_API ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  if (!comm || !device)
    return ncclInvalidArgument;
  *device = comm->device;
  return ncclSuccess;
}
PROFILED(ncclCommCuDevice);
