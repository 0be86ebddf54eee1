/* SPDX-License-Identifier: MIT
 *
 * The collectives and messages, reductions, versions and error texts.
 */
#include <stdlib.h>

#include "comm.h"

static bool redop_exists(const struct ncclComm *comm, ncclRedOp_t redop) {
  int own = (int)redop - (int)ncclNumOps;
  return redop < ncclNumOps || (own < MAX_SCALES && comm->scale_used[own]);
}

__thread bool configured_copies;

static ncclResult_t issue(struct call call) {
  call.copies = configured_copies;
  const struct ncclComm *comm = call.comm;
  if (!comm || !dtype_bytes(call.dtype) || !redop_exists(comm, call.redop) || call.peer < 0 ||
      call.peer >= comm->nranks)
    return ncclInvalidArgument;
  if (call.count && !call.source && !call.target)
    return ncclInvalidArgument;
  return group_call(&call);
}

NCCL_API ncclResult_t ncclAllReduce(const void *source, void *target, size_t count,
                                    ncclDataType_t dtype, ncclRedOp_t redop, ncclComm_t comm,
                                    cudaStream_t stream) {
  return issue((struct call){CALL_ALLREDUCE, comm, stream, source, target, count, dtype, redop, 0});
}
PROFILED(ncclAllReduce);

NCCL_API ncclResult_t ncclBroadcast(const void *source, void *target, size_t count,
                                    ncclDataType_t dtype, int root, ncclComm_t comm,
                                    cudaStream_t stream) {
  return issue(
      (struct call){CALL_BROADCAST, comm, stream, source, target, count, dtype, ncclSum, root});
}
PROFILED(ncclBroadcast);

/* Calls the public symbol, as the real library does. */
NCCL_API ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t dtype, int root,
                                ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, dtype, root, comm, stream);
}
PROFILED(ncclBcast);

NCCL_API ncclResult_t ncclReduce(const void *source, void *target, size_t count,
                                 ncclDataType_t dtype, ncclRedOp_t redop, int root, ncclComm_t comm,
                                 cudaStream_t stream) {
  return issue((struct call){CALL_REDUCE, comm, stream, source, target, count, dtype, redop, root});
}
PROFILED(ncclReduce);

NCCL_API ncclResult_t ncclAllGather(const void *source, void *target, size_t count,
                                    ncclDataType_t dtype, ncclComm_t comm, cudaStream_t stream) {
  return issue(
      (struct call){CALL_ALLGATHER, comm, stream, source, target, count, dtype, ncclSum, 0});
}
PROFILED(ncclAllGather);

NCCL_API ncclResult_t ncclReduceScatter(const void *source, void *target, size_t count,
                                        ncclDataType_t dtype, ncclRedOp_t redop, ncclComm_t comm,
                                        cudaStream_t stream) {
  return issue(
      (struct call){CALL_REDUCESCATTER, comm, stream, source, target, count, dtype, redop, 0});
}
PROFILED(ncclReduceScatter);

NCCL_API ncclResult_t ncclAlltoAll(const void *source, void *target, size_t count,
                                   ncclDataType_t dtype, ncclComm_t comm, cudaStream_t stream) {
  return issue(
      (struct call){CALL_ALLTOALL, comm, stream, source, target, count, dtype, ncclSum, 0});
}
PROFILED(ncclAlltoAll);

NCCL_API ncclResult_t ncclGather(const void *source, void *target, size_t count,
                                 ncclDataType_t dtype, int root, ncclComm_t comm,
                                 cudaStream_t stream) {
  return issue(
      (struct call){CALL_GATHER, comm, stream, source, target, count, dtype, ncclSum, root});
}
PROFILED(ncclGather);

NCCL_API ncclResult_t ncclScatter(const void *source, void *target, size_t count,
                                  ncclDataType_t dtype, int root, ncclComm_t comm,
                                  cudaStream_t stream) {
  return issue(
      (struct call){CALL_SCATTER, comm, stream, source, target, count, dtype, ncclSum, root});
}
PROFILED(ncclScatter);

NCCL_API ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t dtype, int peer,
                               ncclComm_t comm, cudaStream_t stream) {
  return issue((struct call){CALL_SEND, comm, stream, source, NULL, count, dtype, ncclSum, peer});
}
PROFILED(ncclSend);

NCCL_API ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t dtype, int peer,
                               ncclComm_t comm, cudaStream_t stream) {
  return issue((struct call){CALL_RECV, comm, stream, NULL, target, count, dtype, ncclSum, peer});
}
PROFILED(ncclRecv);

static double scalar_value(const void *scalar, ncclDataType_t dtype) {
  switch (dtype) {
  case ncclFloat32:
    return *(const float *)scalar;
  case ncclFloat64:
    return *(const double *)scalar;
  case ncclInt32:
    return *(const int32_t *)scalar;
  case ncclInt64:
    return (double)*(const int64_t *)scalar;
  default:
    return 0;
  }
}

/* For the 4- and 8-byte types. Reads the scalar at once and ignores `residence`. */
NCCL_API ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *redop, void *scalar,
                                               ncclDataType_t dtype,
                                               ncclScalarResidence_t residence, ncclComm_t comm) {
  (void)residence;
  if (!redop || !scalar || !comm || dtype_bytes(dtype) < 4)
    return ncclInvalidArgument;
  for (int i = 0; i < MAX_SCALES; i++)
    if (!comm->scale_used[i]) {
      comm->scale_used[i] = true;
      comm->scales[i] = scalar_value(scalar, dtype);
      *redop = (ncclRedOp_t)(ncclNumOps + i);
      return ncclSuccess;
    }
  return ncclInvalidUsage;
}
PROFILED(ncclRedOpCreatePreMulSum);

NCCL_API ncclResult_t ncclRedOpDestroy(ncclRedOp_t redop, ncclComm_t comm) {
  if (!comm || redop < ncclNumOps || !redop_exists(comm, redop))
    return ncclInvalidArgument;
  comm->scale_used[redop - ncclNumOps] = false;
  return ncclSuccess;
}
PROFILED(ncclRedOpDestroy);

NCCL_API ncclResult_t ncclGetVersion(int *version) {
  if (!version)
    return ncclInvalidArgument;
  *version = 22809;
  return ncclSuccess;
}
PROFILED(ncclGetVersion);

NCCL_API const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return (unsigned)result < sizeof(texts) / sizeof(*texts) ? texts[result] : "unknown result code";
}
PROFILED(ncclGetErrorString);

NCCL_API const char *ncclGetLastError(ncclComm_t comm) {
  return comm ? ncclGetErrorString(comm->error) : "";
}
PROFILED(ncclGetLastError);

NCCL_API ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
  if (!memory)
    return ncclInvalidArgument;
  *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *memory ? ncclSuccess : ncclSystemError;
}
PROFILED(ncclMemAlloc);

NCCL_API ncclResult_t ncclMemFree(void *memory) {
  free(memory);
  return ncclSuccess;
}
PROFILED(ncclMemFree);

NCCL_API ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes,
                                       void **handle) {
  (void)bytes;
  if (!comm || !handle)
    return ncclInvalidArgument;
  *handle = buffer;
  return ncclSuccess;
}
PROFILED(ncclCommRegister);

NCCL_API ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  (void)handle;
  return comm ? ncclSuccess : ncclInvalidArgument;
}
PROFILED(ncclCommDeregister);
