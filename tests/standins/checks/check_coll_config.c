/* SPDX-License-Identifier: MIT
 *
 * The collectives with a configuration of the call, on two GPUs of one process, as a program that
 * was built with NCCL's headers of 2.31 or later calls them. check_coll_config_calls.py compares
 * the trace.
 */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 31, 0)
int main(void) {
  puts("skipped: no headers of NCCL 2.31 or later; scripts/setup test brings them");
  return 77;
}
#else

enum { GPUS = 2, ROOM = 256 };

static int failed;

#define MUST(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                      \
      failed = 1;                                                                                  \
    }                                                                                              \
  } while (0)

#define ON_BOTH(call)                                                                              \
  do {                                                                                             \
    MUST(ncclGroupStart() == ncclSuccess);                                                         \
    for (int i = 0; i < GPUS; i++)                                                                 \
      MUST((call) == ncclSuccess);                                                                 \
    MUST(ncclGroupEnd() == ncclSuccess);                                                           \
  } while (0)

static void call_each(ncclComm_t *comms, cudaStream_t *streams, float (*from)[ROOM],
                      float (*to)[ROOM]) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER, empty;
  config.algSelection = "ring";
  config.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY;
  config.userProfilerTag = 7;
  ON_BOTH(
      ncclAllReduceConfig(from[i], to[i], 100, ncclFloat, ncclSum, comms[i], streams[i], &config));
  ON_BOTH(ncclBroadcastConfig(from[i], to[i], 7, ncclFloat, 1, comms[i], streams[i], &config));
  ON_BOTH(
      ncclReduceConfig(from[i], to[i], 11, ncclFloat, ncclMax, 1, comms[i], streams[i], &config));
  ON_BOTH(ncclAllGatherConfig(from[i], to[i], 5, ncclFloat, comms[i], streams[i], &config));
  ON_BOTH(ncclReduceScatterConfig(from[i], to[i], 6, ncclFloat, ncclSum, comms[i], streams[i],
                                  &config));
  ON_BOTH(ncclAlltoAllConfig(from[i], to[i], 4, ncclFloat, comms[i], streams[i], &config));
  ON_BOTH(ncclGatherConfig(from[i], to[i], 8, ncclFloat, 0, comms[i], streams[i], &config));
  ON_BOTH(ncclScatterConfig(from[i], to[i], 9, ncclFloat, 1, comms[i], streams[i], NULL));
  for (int i = 0; i < GPUS; i++)
    MUST(cudaStreamSynchronize(streams[i]) == cudaSuccess);
  MUST(to[0][99] == 3 && to[1][99] == 3);
  memset(&empty, 0, sizeof(empty));
  MUST(ncclAllReduceConfig(from[0], to[0], 1, ncclFloat, ncclSum, comms[0], streams[0], &empty) ==
       ncclInvalidArgument);
}

int main(void) {
  static float from[GPUS][ROOM], to[GPUS][ROOM];
  ncclComm_t comms[GPUS];
  cudaStream_t streams[GPUS];
  MUST(ncclCommInitAll(comms, GPUS, NULL) == ncclSuccess);
  for (int i = 0; i < GPUS; i++) {
    MUST(cudaSetDevice(i) == cudaSuccess && cudaStreamCreate(&streams[i]) == cudaSuccess);
    for (int k = 0; k < ROOM; k++)
      from[i][k] = (float)(i + 1);
  }
  call_each(comms, streams, from, to);
  for (int i = 0; i < GPUS; i++)
    MUST(ncclCommDestroy(comms[i]) == ncclSuccess);
  return failed;
}
#endif
