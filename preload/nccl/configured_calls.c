/* SPDX-License-Identifier: MIT
 *
 * Collectives with a configuration of the call (NCCL 2.31 and later).
 */
#include "nccl/nccl_record.h"

/* The first members of ncclCollConfig_t; later versions only append. */
struct call_config {
  size_t bytes;
  unsigned magic, version;
  const void *extensions;
  int least_ctas, most_ctas, nvls_ctas, cluster;
  const char *algorithm; /* NULL: any */
  int forced, cta_policy;
  u64 user_tag;
};

enum { MAGIC = 0xcafebeef, UNDEFINED = (-2147483647 - 1) };

struct configured_call configured_begin(struct tscope_thread *thread, const void *config,
                                        enum tscope_op op, const void *buffer, size_t count,
                                        ncclDataType_t datatype, int redop, int peer,
                                        ncclComm_t comm, cudaStream_t stream) {
  return (struct configured_call){
      .collective =
          collective_begin(thread, op, buffer, count, datatype, redop, peer, comm, stream),
      .config = config};
}

void configured_end(struct tscope_thread *thread, struct configured_call *call,
                    ncclResult_t result) {
  const struct call_config *config = nccl_accepted(result) ? call->config : NULL;
  const struct tscope_collective_record *made = collective_record(&call->collective);
  if (config && made && config->magic == (unsigned)MAGIC && config->bytes >= sizeof(*config)) {
    struct tscope_collective_config_record record = {
        .user_tag = config->user_tag,
        .comm = made->comm,
        .seq = made->seq,
        .algorithm =
            config->algorithm && *config->algorithm ? tscope_string(thread, config->algorithm) : 0,
        .cta_policy = config->cta_policy == UNDEFINED ? TSCOPE_UNKNOWN : (u32)config->cta_policy};
    if (record.user_tag || record.algorithm || record.cta_policy != TSCOPE_UNKNOWN)
      tscope_retain(thread, call->collective.span.start, TSCOPE_REC_COLLECTIVE_CONFIG,
                    made->header.tag, &record, sizeof(record));
  }
  collective_end(thread, &call->collective, result);
}
