/* SPDX-License-Identifier: MIT
 *
 * Collectives with a configuration of the call (NCCL 2.31 and later). They do what those without
 * one do. The headers with which this is built may be older: of the configuration only its head is
 * known, which is the same in all versions.
 */
#include "comm.h"

struct config_head {
  size_t bytes;
  unsigned magic, version;
};

enum { MAGIC = 0xcafebeef };

static bool is_whole(const void *config) {
  const struct config_head *head = config;
  return !config || (head->magic == (unsigned)MAGIC && head->bytes >= sizeof(*head));
}

/* The plain one by its profiling name: nobody who hooks it sees a second call. */
#define CONFIGURED(name, parameters, arguments)                                                    \
  NCCL_API ncclResult_t name##Config parameters;                                                   \
  NCCL_API ncclResult_t name##Config parameters {                                                  \
    return is_whole(config) ? p##name arguments : ncclInvalidArgument;                             \
  }                                                                                                \
  PROFILED(name##Config)

CONFIGURED(ncclAllReduce,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, ncclRedOp_t redop,
            ncclComm_t comm, cudaStream_t stream, const void *config),
           (source, target, count, dtype, redop, comm, stream));
CONFIGURED(ncclBroadcast,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, int root,
            ncclComm_t comm, cudaStream_t stream, const void *config),
           (source, target, count, dtype, root, comm, stream));
CONFIGURED(ncclReduce,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, ncclRedOp_t redop,
            int root, ncclComm_t comm, cudaStream_t stream, const void *config),
           (source, target, count, dtype, redop, root, comm, stream));
CONFIGURED(ncclAllGather,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, ncclComm_t comm,
            cudaStream_t stream, const void *config),
           (source, target, count, dtype, comm, stream));
CONFIGURED(ncclReduceScatter,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, ncclRedOp_t redop,
            ncclComm_t comm, cudaStream_t stream, const void *config),
           (source, target, count, dtype, redop, comm, stream));
CONFIGURED(ncclAlltoAll,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, ncclComm_t comm,
            cudaStream_t stream, const void *config),
           (source, target, count, dtype, comm, stream));
CONFIGURED(ncclGather,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, int root,
            ncclComm_t comm, cudaStream_t stream, const void *config),
           (source, target, count, dtype, root, comm, stream));
CONFIGURED(ncclScatter,
           (const void *source, void *target, size_t count, ncclDataType_t dtype, int root,
            ncclComm_t comm, cudaStream_t stream, const void *config),
           (source, target, count, dtype, root, comm, stream));
