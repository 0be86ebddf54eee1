/* SPDX-License-Identifier: MIT
 *
 * Devices, versions and error texts.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

#include "cudart.h"

CUDART_API cudaError_t cudaGetDeviceCount(int *count) {
  *count = SIM_DEVICES;
  return cudaSuccess;
}

static void set_context(void) {
  CUcontext context;
  if (cuDevicePrimaryCtxRetain(&context, *sim_device()) == CUDA_SUCCESS)
    cuCtxSetCurrent(context);
}

void ensure_context(void) {
  CUcontext current = NULL;
  if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current)
    set_context();
}

CUDART_API cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= SIM_DEVICES)
    return remember(cudaErrorInvalidDevice);
  *sim_device() = device;
  set_context();
  return cudaSuccess;
}

CUDART_API cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  (void)device_flags, (void)flags;
  return remember(device < 0 || device >= SIM_DEVICES ? cudaErrorInvalidDevice : cudaSuccess);
}

CUDART_API cudaError_t cudaGetDevice(int *device) {
  *device = *sim_device();
  return cudaSuccess;
}

CUDART_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
  (void)flags;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceReset(void) {
  cudaError_t error = cudaDeviceSynchronize();
  sim_events_end();
  return error;
}

CUDART_API cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = STANDIN_CUDA_MAJOR * 1000 + (STANDIN_CUDA_MAJOR == 12 ? 80 : 0);
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDriverGetVersion(int *version) {
  *version = 13000;
  return cudaSuccess;
}

#if STANDIN_CUDA_MAJOR == CUDART_VERSION / 1000
static void fill_more_properties(struct cudaDeviceProp *properties, int device) {
  properties->major = 9;
  properties->memPitch = INT32_MAX;
  properties->totalConstMem = 64 << 10;
  properties->textureAlignment = 512;
  properties->multiProcessorCount = 132;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->regsPerMultiprocessor = 65536;
  properties->l2CacheSize = 50 << 20;
  properties->memoryBusWidth = 5120;
  properties->asyncEngineCount = 3;
  properties->pciBusID = 0x10 + device;
  properties->canMapHostMemory = properties->concurrentKernels = 1;
  properties->unifiedAddressing = properties->managedMemory = 1;
  properties->streamPrioritiesSupported = properties->cooperativeLaunch = 1;
  properties->memoryPoolsSupported = 1;
  for (int i = 0; i < 3; i++) {
    properties->maxThreadsDim[i] = i < 2 ? 1024 : 64;
    properties->maxGridSize[i] = i ? 65535 : INT32_MAX;
  }
}
#endif

/* If the headers are of another CUDA version than this library, only the members that have the same
 * offset in CUDA 11 to 13 are filled in. */
static cudaError_t get_properties(struct cudaDeviceProp *properties, int device) {
  if (device < 0 || device >= SIM_DEVICES)
    return remember(cudaErrorInvalidDevice);
  memset(properties, 0, sizeof(*properties));
  snprintf(properties->name, sizeof(properties->name), "%s", sim_gpu_name());
  snprintf(properties->uuid.bytes, sizeof(properties->uuid.bytes), "standin-%d", device);
  properties->totalGlobalMem = (size_t)80 << 30;
  properties->sharedMemPerBlock = 48 << 10;
  properties->regsPerBlock = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
#if STANDIN_CUDA_MAJOR == CUDART_VERSION / 1000
  fill_more_properties(properties, device);
#endif
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *into, int device) {
  return get_properties(into, device);
}

CUDART_API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *into, int device);
CUDART_API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *into, int device) {
  return get_properties(into, device);
}

CUDART_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                              int device) {
  if (device < 0 || device >= SIM_DEVICES)
    return remember(cudaErrorInvalidDevice);
  switch (attribute) {
  case cudaDevAttrComputeCapabilityMajor:
    *value = 9;
    break;
  case cudaDevAttrMultiProcessorCount:
    *value = 132;
    break;
  case cudaDevAttrMaxThreadsPerBlock:
    *value = 1024;
    break;
  case cudaDevAttrWarpSize:
    *value = 32;
    break;
  case cudaDevAttrClockRate:
    *value = 1980000;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = 48 << 10;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = 227 << 10;
    break;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    *value = 2048;
    break;
  case cudaDevAttrMaxBlocksPerMultiprocessor:
    *value = 32;
    break;
  case cudaDevAttrMaxGridDimX:
    *value = INT32_MAX;
    break;
  case cudaDevAttrMaxGridDimY:
  case cudaDevAttrMaxGridDimZ:
    *value = 65535;
    break;
  default:
    *value = 0;
  }
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device) {
  if (device < 0 || device >= SIM_DEVICES)
    return remember(cudaErrorInvalidDevice);
  snprintf(text, (size_t)bytes, "0000:%02x:00.0", 0x10 + device);
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  (void)peer, (void)flags;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

static const struct {
  cudaError_t error;
  const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorSharedObjectInitFailed, "cudaErrorSharedObjectInitFailed",
     "shared object initialization failed"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
};

CUDART_API const char *cudaGetErrorString(cudaError_t error) {
  for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
    if (errors[i].error == error)
      return errors[i].text;
  return "unrecognized error code";
}

CUDART_API const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
    if (errors[i].error == error)
      return errors[i].name;
  return "cudaErrorUnknown";
}

CUDART_API cudaError_t cudaProfilerStart(void);
CUDART_API cudaError_t cudaProfilerStart(void) {
  return cudaSuccess;
}

CUDART_API cudaError_t cudaProfilerStop(void);
CUDART_API cudaError_t cudaProfilerStop(void) {
  return cudaSuccess;
}

static CUresult not_supported(void) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

/* For a function that the stand-in driver lacks, returns one that fails. */
static cudaError_t driver_entry(const char *symbol, void **function,
                                enum cudaDriverEntryPointQueryResult *status) {
  if (!symbol || !function)
    return remember(cudaErrorInvalidValue);
  *function = dlsym(RTLD_DEFAULT, symbol);
  if (!*function)
    *function = (void *)not_supported;
  if (status)
    *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function,
                                               unsigned long long flags,
                                               enum cudaDriverEntryPointQueryResult *status);
CUDART_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function,
                                               unsigned long long flags,
                                               enum cudaDriverEntryPointQueryResult *status) {
  (void)flags;
  return driver_entry(symbol, function, status);
}

CUDART_API cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status) {
  (void)version, (void)flags;
  return driver_entry(symbol, function, status);
}
