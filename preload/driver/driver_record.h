/* SPDX-License-Identifier: MIT
 *
 * Recorders for calls of the driver, for cases where those of the runtime (cuda/cuda_record.h) do
 * not fit, because the facts are in a struct of the driver.
 */
#pragma once

#include "cuda/cuda_record.h"
#include "cuda/kernel_names.h"
#include "driver/driver_types.h"

/* The handle that a launch by the driver launches. A bit that no address has distinguishes it from
 * host functions. */
static inline const void *driver_function(const void *handle) {
  return (const void *)((uintptr_t)handle | KERNEL_OF_DRIVER);
}

enum { driver_launch_config_wakes = TSCOPE_WAKES };
HOT void record_driver_launch_config(struct tscope_thread *thread, u64 start, cudaError_t result,
                                     enum tscope_default_stream default_stream,
                                     const CUlaunchConfig *config, CUfunction function) {
  if (TSCOPE_UNLIKELY(result != cudaSuccess))
    return;
  dim3 grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  dim3 block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  record_launch(thread, start, result, default_stream, driver_function(function), grid, block,
                config->hStream);
}

/* Copies by the driver that are given in a struct: the kind follows from where the memory is. */
static inline u32 driver_direction(CUmemorytype to, CUmemorytype from) {
  bool to_host = to == CU_MEMORYTYPE_HOST, from_host = from == CU_MEMORYTYPE_HOST;
  if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED)
    return TSCOPE_MEMCPY_UNKNOWN;
  return to_host     ? from_host ? TSCOPE_MEMCPY_H2H : TSCOPE_MEMCPY_D2H
         : from_host ? TSCOPE_MEMCPY_H2D
                     : TSCOPE_MEMCPY_D2D;
}

MEMCPY_BY_STRUCT(driver_memcpy_2d, CUDA_MEMCPY2D,
                 driver_direction(copy->dstMemoryType, copy->srcMemoryType),
                 copy->WidthInBytes * copy->Height)
MEMCPY_BY_STRUCT(driver_memcpy_3d, CUDA_MEMCPY3D,
                 driver_direction(copy->dstMemoryType, copy->srcMemoryType),
                 copy->WidthInBytes * copy->Height * copy->Depth)
MEMCPY_BY_STRUCT(driver_memcpy_3d_peer, CUDA_MEMCPY3D_PEER, TSCOPE_MEMCPY_P2P,
                 copy->WidthInBytes * copy->Height * copy->Depth)

/* mapping: ranges of addresses, and physical memory that is mapped there. `address` is the job's
 * variable, or the parameter. */
RECORDER(mapping, QUIET, enum tscope_mapping what, const CUdeviceptr *address, size_t bytes,
         u64 memory) {
  u64 dur = tscope_elapsed(thread, start);
  u64 at = result == cudaSuccess || what != TSCOPE_MAPPING_RESERVE ? *address : 0;
  RING(MAPPING, mapping, start, dur, (u16)what, .result = (u32)result, .address = at,
       .bytes = bytes, .memory = memory);
}
