/* SPDX-License-Identifier: MIT
 *
 * The few functions of the driver API that a profiler may look up by name. Work is not launched
 * this way here.
 */
#include <stdio.h>

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "engine.h"

CUresult CUDAAPI cuInit(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count) {
  *count = SIM_DEVICES;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= SIM_DEVICES)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int bytes, CUdevice device) {
  (void)device;
  snprintf(name, (size_t)bytes, "tscope stand-in GPU");
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  (void)device;
  *bytes = (size_t)80 << 30;
  return CUDA_SUCCESS;
}

/* One context for all; its address is its handle. */
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
  static char only;
  *context = (CUcontext)(void *)&only;
  return CUDA_SUCCESS;
}
