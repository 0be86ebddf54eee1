/* SPDX-License-Identifier: MIT
 *
 * Memory, copies and fills in the runtime API.
 */
#include <string.h>

#include "cudart.h"

enum { ALIGNMENT = 512 };

static cudaError_t allocate(void **pointer, size_t bytes, enum cudaMemoryType type) {
  ensure_context();
  cudaError_t error = sim_capture_unsafe();
  return remember(error ? error : sim_allocate(pointer, bytes, type));
}

static cudaError_t allocate_async(void **pointer, size_t bytes) {
  ensure_context();
  return remember(sim_allocate(pointer, bytes, cudaMemoryTypeDevice));
}

static cudaError_t release(void *pointer) {
  cudaError_t error = sim_capture_unsafe();
  return remember(error ? error : sim_release(pointer));
}

cudaError_t CUDART_API cudaMalloc(void **pointer, size_t bytes) {
  return allocate(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t CUDART_API cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t CUDART_API cudaMallocHost(void **pointer, size_t bytes) {
  return allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t CUDART_API cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t CUDART_API cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return allocate(pointer, *pitch * height, cudaMemoryTypeDevice);
}

cudaError_t CUDART_API cudaFree(void *pointer) {
  return release(pointer);
}
cudaError_t CUDART_API cudaFreeHost(void *pointer) {
  return release(pointer);
}

TWINS(cudaMallocAsync, _ptsz, (void **pointer, size_t bytes, cudaStream_t stream),
      ((void)stream, (void)own, allocate_async(pointer, bytes)))
TWINS(cudaMallocFromPoolAsync, _ptsz,
      (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
      ((void)pool, (void)stream, (void)own, allocate_async(pointer, bytes)))

TWINS(cudaFreeAsync, _ptsz, (void *pointer, cudaStream_t stream),
      remember(sim_release_async(pointer, stream, own)))

static cudaError_t copy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
                        cudaStream_t stream, bool own, bool wait) {
  ensure_context();
  return remember(sim_copy(target, source, bytes, kind, stream, own, wait));
}

TWINS(cudaMemcpy, _ptds, (void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind),
      copy(target, source, bytes, kind, NULL, own, true))
TWINS(cudaMemcpyAsync, _ptsz,
      (void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
       cudaStream_t stream),
      copy(target, source, bytes, kind, stream, own, false))

cudaError_t CUDART_API cudaMemcpyPeer(void *target, int to, const void *source, int from,
                                      size_t bytes) {
  (void)to, (void)from;
  return copy(target, source, bytes, (enum cudaMemcpyKind)SIM_PEER, NULL, false, true);
}

cudaError_t CUDART_API cudaMemcpyPeerAsync(void *target, int to, const void *source, int from,
                                           size_t bytes, cudaStream_t stream) {
  (void)to, (void)from;
  return copy(target, source, bytes, (enum cudaMemcpyKind)SIM_PEER, stream, false, false);
}

static cudaError_t copy_2d(void *target, size_t target_pitch, const void *source,
                           size_t source_pitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool wait) {
  return remember(sim_copy_2d(target, target_pitch, source, source_pitch, width, height, kind,
                              stream, own, wait));
}
TWINS(cudaMemcpy2D, _ptds,
      (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
       size_t height, enum cudaMemcpyKind kind),
      copy_2d(target, target_pitch, source, source_pitch, width, height, kind, NULL, own, true))
TWINS(cudaMemcpy2DAsync, _ptsz,
      (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
       size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
      copy_2d(target, target_pitch, source, source_pitch, width, height, kind, stream, own, false))

static cudaError_t fill(void *target, int value, size_t bytes, cudaStream_t stream, bool own) {
  return remember(sim_fill(target, (unsigned)value, 1, bytes, stream, own));
}
TWINS(cudaMemset, _ptds, (void *target, int value, size_t bytes),
      fill(target, value, bytes, NULL, own))
TWINS(cudaMemsetAsync, _ptsz, (void *target, int value, size_t bytes, cudaStream_t stream),
      fill(target, value, bytes, stream, own))

cudaError_t CUDART_API cudaMemGetInfo(size_t *available, size_t *total) {
  sim_memory_info(available, total);
  return cudaSuccess;
}

cudaError_t CUDART_API cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                                const void *pointer) {
  memset(attributes, 0, sizeof(*attributes));
  struct sim_memory memory = sim_memory_at(pointer);
  attributes->type = memory.type;
  attributes->device = memory.device;
  attributes->hostPointer = (void *)pointer;
  if (attributes->type != cudaMemoryTypeUnregistered)
    attributes->devicePointer = (void *)pointer;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
  (void)pointer, (void)bytes, (void)flags;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaHostUnregister(void *pointer) {
  (void)pointer;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  (void)flags;
  *device = host;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes,
                                          size_t offset, enum cudaMemcpyKind kind) {
  void *address = NULL;
  cudaError_t error = cudaGetSymbolAddress(&address, symbol);
  return error ? error : copy((char *)address + offset, source, bytes, kind, NULL, false, true);
}
