/* SPDX-License-Identifier: MIT
 *
 * Just enough of a GPU for PyTorch's caching allocator to work on a machine without one. It is
 * preloaded before the runtime of the wheel, and also replaces the driver. One device with 1 GiB;
 * its memory consists only of addresses.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdint.h>

#define DEVICE_BYTES (1ull << 30)
#define EXPORT __attribute__((visibility("default")))

/* Each allocation has its own 64 GiB of addresses. */
#define ADDRESS_BITS 36
#define ALLOCATIONS 1024u

static size_t taken, sizes[ALLOCATIONS];
static uintptr_t next_address = 0x700000000000;

static size_t *size_of(uintptr_t address) {
  return &sizes[(address >> ADDRESS_BITS) % ALLOCATIONS];
}

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

EXPORT cudaError_t cudaGetLastError(void) {
  return cudaSuccess;
}

EXPORT cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  *available = DEVICE_BYTES - taken;
  *total = DEVICE_BYTES;
  return cudaSuccess;
}

EXPORT cudaError_t cudaMalloc(void **address, size_t bytes) {
  if (bytes > DEVICE_BYTES - taken)
    return cudaErrorMemoryAllocation;
  *address = (void *)next_address;
  *size_of(next_address) = bytes;
  next_address += 1ull << ADDRESS_BITS;
  taken += bytes;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFree(void *address) {
  if (address)
    taken -= *size_of((uintptr_t)address);
  return cudaSuccess;
}

EXPORT cudaError_t cudaPeekAtLastError(void) {
  return cudaSuccess;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  *version = 13000;
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
  *properties = (struct cudaDeviceProp){.totalGlobalMem = DEVICE_BYTES, .major = 9};
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                         enum cudaStreamCaptureStatus *status) {
  (void)stream;
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

/* As CUDA 13 names it; the headers of CUDA 12 give the name to another. What else it would tell
 * about a capture nobody reads if there is none. */
cudaError_t capture_info(cudaStream_t stream,
                         enum cudaStreamCaptureStatus *status) __asm__("cudaStreamGetCaptureInfo");
EXPORT cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  return cudaStreamIsCapturing(stream, status);
}

/* PyTorch 2.15 asks the runtime for the driver's functions. There are those below. */
EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                                    unsigned version, unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *found) {
  (void)version, (void)flags;
  *function = dlsym(RTLD_DEFAULT, name);
  if (found)
    *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSynchronize(void) {
  return cudaSuccess;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  (void)device;
  *flags = 0;
  *active = 1;
  return 0;
}
