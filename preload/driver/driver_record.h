/* SPDX-License-Identifier: MIT
 *
 * Recorders for calls of the driver, where those of the runtime (cuda/cuda_record.h) do not fit
 * because what is to be known stands in a struct of the driver's.
 */
#ifndef TSCOPE_DRIVER_RECORD_H
#define TSCOPE_DRIVER_RECORD_H

#include "cuda/cuda_record.h"
#include "cuda/kernel_names.h"
#include "driver/driver_types.h"

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

/* Copies of the driver's that are said in a struct: by where memory is. */
static inline u32 driver_direction(CUmemorytype to, CUmemorytype from) {
  bool to_host = to == CU_MEMORYTYPE_HOST, from_host = from == CU_MEMORYTYPE_HOST;
  if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED)
    return TSCOPE_COPY_UNKNOWN;
  return to_host     ? from_host ? TSCOPE_COPY_H2H : TSCOPE_COPY_D2H
         : from_host ? TSCOPE_COPY_H2D
                     : TSCOPE_COPY_D2D;
}

COPY_BY_STRUCT(driver_copy_2d, CUDA_MEMCPY2D,
               driver_direction(copy->dstMemoryType, copy->srcMemoryType),
               copy->WidthInBytes * copy->Height)
COPY_BY_STRUCT(driver_copy_3d, CUDA_MEMCPY3D,
               driver_direction(copy->dstMemoryType, copy->srcMemoryType),
               copy->WidthInBytes * copy->Height * copy->Depth)
COPY_BY_STRUCT(driver_copy_3d_peer, CUDA_MEMCPY3D_PEER, TSCOPE_COPY_P2P,
               copy->WidthInBytes * copy->Height * copy->Depth)

/* mapping: ranges of addresses, and physical memory that is mapped there. */
enum { mapping_wakes = TSCOPE_QUIET };
struct mapping_call {
  u64 start;
  const CUdeviceptr *address; /* the job's variable, or the parameter */
  u64 bytes, memory;
  u16 what;
};
static inline struct mapping_call mapping_begin(struct tscope_thread *thread,
                                                enum tscope_mapping what,
                                                const CUdeviceptr *address, size_t bytes,
                                                u64 memory) {
  (void)thread;
  return (struct mapping_call){tscope_ticks(), address, bytes, memory, (u16)what};
}
static inline void mapping_end(struct tscope_thread *thread, const struct mapping_call *call,
                               cudaError_t result) {
  u64 dur = elapsed(thread, call->start);
  u64 address = result == cudaSuccess || call->what != TSCOPE_MAPPING_RESERVE ? *call->address : 0;
  DETAIL(MAPPING, mapping, call->start, dur, call->what, .result = (u32)result, .address = address,
         .bytes = call->bytes, .memory = call->memory);
}

#endif
