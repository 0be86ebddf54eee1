/* SPDX-License-Identifier: MIT
 *
 * Collectives with a configuration of the call (NCCL 2.31 and later). They do what those without
 * one do, by copy engines if the configuration says so and they can. The headers with which this is
 * built may be older; of the configuration what 2.31 has is known.
 */
#include "comm.h"

struct config {
  size_t bytes;
  unsigned magic, version;
  void *extensions;
  int least_ctas, most_ctas, nvls_ctas, cluster;
  const char *algorithm;
  int forced, cta_policy;
  uint64_t tag;
};

enum { MAGIC = 0xcafebeef };

static bool is_whole(const void *config) {
  const struct config *of = config;
  return !config || (of->magic == (unsigned)MAGIC && of->bytes >= sizeof(*of));
}

static ncclResult_t begin(const void *config) {
  const struct config *of = config;
  if (!is_whole(config))
    return ncclInvalidArgument;
  configured_copies = of && of->cta_policy & NCCL_CTA_POLICY_ZERO;
  return ncclSuccess;
}

static ncclResult_t end(ncclResult_t result) {
  configured_copies = false;
  return result;
}

/* The plain one by its profiling name: nobody who hooks it sees a second call. */
#define CONFIGURED(name, parameters, arguments)                                                    \
  NCCL_API ncclResult_t name##Config parameters;                                                   \
  NCCL_API ncclResult_t name##Config parameters {                                                  \
    return begin(config) ? ncclInvalidArgument : end(p##name arguments);                           \
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
