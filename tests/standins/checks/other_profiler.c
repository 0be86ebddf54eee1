/* SPDX-License-Identifier: MIT
 *
 * A profiler plugin that is not tscope's: prints that NCCL loaded it, and subscribes to no events.
 */
#include <stdio.h>

#include "nccl/profiler_abi.h"

static int init(void **context, u64 comm_hash, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, void *log) {
  (void)comm_hash, (void)comm_name, (void)nodes, (void)ranks, (void)rank, (void)log;
  *context = NULL;
  *mask = 0;
  puts("the other profiler");
  return 0;
}

extern const struct profiler_plugin_v5 ncclProfiler_v5;
__attribute__((visibility("default")))
const struct profiler_plugin_v5 ncclProfiler_v5 = {.name = "other", .init = init};
