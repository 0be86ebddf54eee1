/* SPDX-License-Identifier: MIT */
#include "fake_nccl.h"

#include <stdlib.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

struct ncclComm {
  const char *copy;
  int ranks, rank;
};

static const char this_copy[] = FAKE_NCCL_COPY;
static unsigned long foreign_calls, all_reduces;

unsigned long fake_nccl_foreign_calls(void);
FAKE_EXPORT unsigned long fake_nccl_foreign_calls(void) {
  return foreign_calls;
}

FAKE_EXPORT unsigned long fake_nccl_all_reduces(void) {
  return all_reduces;
}

static ncclResult_t check(ncclComm_t comm) {
  if (comm && comm->copy == this_copy)
    return ncclSuccess;
  foreign_calls++;
  return ncclInvalidArgument;
}

FAKE_EXPORT ncclResult_t ncclGetVersion(int *version) {
  *version = 22809;
  return ncclSuccess;
}

FAKE_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  (void)id;
  *comm = malloc(sizeof(**comm));
  **comm = (struct ncclComm){this_copy, ranks, rank};
  return ncclSuccess;
}

FAKE_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ncclResult_t result = check(comm);
  if (!result)
    free(comm);
  return result;
}

FAKE_EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm->ranks;
  return check(comm);
}

FAKE_EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return check(comm);
}

FAKE_EXPORT ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  *device = 0;
  return check(comm);
}

FAKE_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  *error = ncclSuccess;
  return check(comm);
}

FAKE_EXPORT ncclResult_t ncclAllReduce(const void *source, void *target, size_t count,
                                       ncclDataType_t dtype, ncclRedOp_t redop, ncclComm_t comm,
                                       cudaStream_t stream) {
  (void)source, (void)target, (void)count, (void)dtype, (void)redop, (void)stream;
  all_reduces++;
  return check(comm);
}
FAKE_EXPORT extern __typeof(ncclAllReduce) pncclAllReduce __attribute__((alias("ncclAllReduce")));

FAKE_EXPORT ncclResult_t ncclBroadcast(const void *source, void *target, size_t count,
                                       ncclDataType_t dtype, int root, ncclComm_t comm,
                                       cudaStream_t stream) {
  (void)source, (void)target, (void)count, (void)dtype, (void)root, (void)stream;
  return check(comm);
}

/* Calls the exported name, which a preloaded library may replace, as the real NCCL does. */
FAKE_EXPORT ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t dtype, int root,
                                   ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, dtype, root, comm, stream);
}
