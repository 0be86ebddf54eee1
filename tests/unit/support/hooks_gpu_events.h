/* SPDX-License-Identifier: MIT
 *
 * A job whose GPU times come from pairs of events on the stand-in GPU: a communicator and memory.
 */
#pragma once

#include <nccl.h>

#include "gpu/event_clock.h"
#include "hooks_gpu.h"

static ncclComm_t comm;
static void *memory;

static inline int events_set_up(void **state) {
  ncclUniqueId id;
  register_kernel(&kernel, "_Z6kernelv");
  return setenv("TSCOPE_GPU", "events", 1) || trace_set_up(state) ||
         cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
         cudaMalloc(&memory, 1 << 20) != cudaSuccess || ncclGetUniqueId(&id) != ncclSuccess ||
         ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess;
}

static inline int events_tear_down(void **state) {
  ncclCommDestroy(comm);
  return trace_tear_down(state);
}

static inline void deliver(void) {
  cudaDeviceSynchronize();
  poller_part(gpu_clock_events.poll);
}

static inline u32 runs(void) {
  deliver();
  return count(TSCOPE_REC_COLLECTIVE_RUN);
}
