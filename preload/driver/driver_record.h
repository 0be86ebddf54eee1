/* SPDX-License-Identifier: MIT
 *
 * Recorders for calls of the driver, where those of the runtime (cuda/cuda_record.h) do not fit
 * because what is to be known stands in a struct of the driver's.
 */
#ifndef TSCOPE_DRIVER_RECORD_H
#define TSCOPE_DRIVER_RECORD_H

#include "cuda/cuda_record.h"
#include "cuda/kernel_names.h"
#include "driver_types.h"

/* What a launch of the driver's launches, told apart from host functions by a bit that no address
 * has. */
static inline const void *driver_function(const void *handle) {
  return (const void *)((uintptr_t)handle | KERNEL_OF_DRIVER);
}

enum { driver_launch_config_wakes = TSCOPE_WAKES };
struct driver_launch_config_call {
  u64 start;
  const CUlaunchConfig *config;
  const void *function;
  enum tscope_default_stream default_stream;
};
HOT struct driver_launch_config_call
driver_launch_config_begin(struct tscope_thread *thread, enum tscope_default_stream default_stream,
                           const CUlaunchConfig *config, CUfunction function) {
  gpu_clock_start_once(thread);
  return (struct driver_launch_config_call){tscope_ticks(), config, driver_function(function),
                                            default_stream};
}
HOT void driver_launch_config_end(struct tscope_thread *thread,
                                  const struct driver_launch_config_call *call,
                                  cudaError_t result) {
  if (TSCOPE_UNLIKELY(result != cudaSuccess))
    return;
  const CUlaunchConfig *config = call->config;
  launch_end(
      thread,
      &(struct launch_call){.start = call->start,
                            .function = call->function,
                            .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                            .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                            .stream = config->hStream,
                            .default_stream = call->default_stream},
      result);
}

enum { driver_copy_2d_wakes = TSCOPE_QUIET };
struct driver_copy_2d_call {
  struct stream_call on;
  const CUDA_MEMCPY2D *copy;
  u32 async;
};
static inline struct driver_copy_2d_call
driver_copy_2d_begin(struct tscope_thread *thread, enum tscope_default_stream default_stream,
                     const CUDA_MEMCPY2D *copy, u32 async, CUstream stream) {
  (void)thread;
  return (struct driver_copy_2d_call){{tscope_ticks(), stream, default_stream}, copy, async};
}
static inline void driver_copy_2d_end(struct tscope_thread *thread,
                                      const struct driver_copy_2d_call *call, cudaError_t result) {
  if (result != cudaSuccess)
    return;
  bool to_host = call->copy->dstMemoryType == CU_MEMORYTYPE_HOST;
  bool from_host = call->copy->srcMemoryType == CU_MEMORYTYPE_HOST;
  bool unified = call->copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED ||
                 call->copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED;
  u32 direction = unified     ? TSCOPE_COPY_UNKNOWN
                  : to_host   ? from_host ? TSCOPE_COPY_H2H : TSCOPE_COPY_D2H
                  : from_host ? TSCOPE_COPY_H2D
                              : TSCOPE_COPY_D2D;
  copy_end(thread,
           &(struct copy_call){.on = call->on,
                               .bytes = call->copy->WidthInBytes * call->copy->Height,
                               .kind = direction | call->async},
           result);
}

#endif
