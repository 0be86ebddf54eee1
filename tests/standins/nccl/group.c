/* SPDX-License-Identifier: MIT
 *
 * Groups: calls between the outermost start and end are launched at the end: one kernel for each
 * communicator and stream, in the order of their first calls.
 */
#include <stdlib.h>

#include "comm.h"

static __thread struct {
  unsigned depth;
  struct call *calls;
  size_t n_calls;
  struct ncclComm **joining;
  size_t n_joining;
  struct pending_split *splits;
  size_t n_splits;
} group;

#define APPEND(array, n, value)                                                                    \
  do {                                                                                             \
    (array) = realloc((array), ((n) + 1) * sizeof(*(array)));                                      \
    if (!(array))                                                                                  \
      abort();                                                                                     \
    (array)[(n)++] = (value);                                                                      \
  } while (0)

static ncclResult_t launch_one(const struct call *call) {
  struct call copy = *call;
  sim_lock();
  ncclResult_t result = kernel_launch(&copy, 1);
  sim_unlock();
  return result;
}

ncclResult_t group_call(const struct call *call) {
  if (!group.depth)
    return launch_one(call);
  APPEND(group.calls, group.n_calls, *call);
  return ncclSuccess;
}

ncclResult_t group_await(struct ncclComm *comm) {
  if (group.depth)
    APPEND(group.joining, group.n_joining, comm);
  else
    comm_await_all(comm);
  return ncclSuccess;
}

ncclResult_t group_split(const struct pending_split *split) {
  if (group.depth) {
    APPEND(group.splits, group.n_splits, *split);
    return ncclSuccess;
  }
  struct ncclComm *joined = NULL;
  ncclResult_t result = split_finish(split, &joined);
  if (joined)
    comm_await_all(joined);
  return result;
}

static ncclResult_t launch_all(struct call *calls, size_t n) {
  ncclResult_t result = ncclSuccess;
  struct call *kernel = malloc((n ? n : 1) * sizeof(*kernel));
  if (!kernel)
    return ncclSystemError;
  sim_lock();
  for (size_t first = 0; first < n; first++) {
    size_t n_kernel = 0;
    struct ncclComm *comm = calls[first].comm;
    cudaStream_t stream = calls[first].stream;
    if (!comm)
      continue; /* it is in an earlier kernel */
    for (size_t i = first; i < n; i++)
      if (calls[i].comm == comm && calls[i].stream == stream) {
        kernel[n_kernel++] = calls[i];
        calls[i].comm = NULL;
      }
    ncclResult_t launched = kernel_launch(kernel, n_kernel);
    if (launched != ncclSuccess)
      result = launched;
  }
  sim_unlock();
  free(kernel);
  return result;
}

/* nccl.h declares these two without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

NCCL_API ncclResult_t ncclGroupStart(void) {
  group.depth++;
  return ncclSuccess;
}
PROFILED(ncclGroupStart);

NCCL_API ncclResult_t ncclGroupEnd(void) {
  if (!group.depth)
    return ncclInvalidUsage;
  if (--group.depth)
    return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < group.n_splits; i++) {
    struct ncclComm *joined = NULL;
    ncclResult_t split = split_finish(&group.splits[i], &joined);
    if (joined)
      APPEND(group.joining, group.n_joining, joined);
    if (split != ncclSuccess)
      result = split;
  }
  for (size_t i = 0; i < group.n_joining; i++)
    comm_await_all(group.joining[i]);
  if (group.n_calls) {
    ncclResult_t launched = launch_all(group.calls, group.n_calls);
    if (launched != ncclSuccess)
      result = launched;
  }
  group.n_splits = group.n_joining = group.n_calls = 0;
  return result;
}
PROFILED(ncclGroupEnd);

NCCL_API ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
  if (!group.depth)
    return ncclInvalidUsage;
  float longest = 0;
  for (size_t i = 0; i < group.n_calls; i++) {
    float us = (float)law_transfer_ns(&group.calls[i]) / 1e3f;
    if (us > longest)
      longest = us;
  }
  if (info)
    info->estimatedTime = longest;
  group.depth--;
  group.n_calls = 0;
  return ncclSuccess;
}
PROFILED(ncclGroupSimulateEnd);
