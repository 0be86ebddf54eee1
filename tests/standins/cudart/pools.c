/* SPDX-License-Identifier: MIT
 *
 * Memory pools, as far as queries go: each device has its default pool, which keeps nothing.
 * Handles for other processes are refused, so that frameworks use another method.
 */
#include <string.h>

#include "cudart.h"

static char pools[SIM_DEVICES];

static cudaError_t default_pool(cudaMemPool_t *pool, int device) {
  if (!pool || device < 0 || device >= SIM_DEVICES)
    return remember(cudaErrorInvalidValue);
  *pool = (cudaMemPool_t)(void *)&pools[device];
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  return default_pool(pool, device);
}

CUDART_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
  return default_pool(pool, device);
}

/* The attributes up to this one are ints, those after it 64-bit counts. */
static size_t attribute_bytes(enum cudaMemPoolAttr attribute) {
  return attribute <= cudaMemPoolReuseAllowInternalDependencies ? sizeof(int) : sizeof(uint64_t);
}

CUDART_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                               void *value) {
  (void)pool;
  memset(value, 0, attribute_bytes(attribute));
  return cudaSuccess;
}

CUDART_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                               void *value) {
  (void)pool, (void)attribute, (void)value;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                            const struct cudaMemAccessDesc *wanted, size_t n) {
  (void)pool, (void)wanted, (void)n;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  (void)pool, (void)keep;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
  (void)handle, (void)pointer;
  return remember(cudaErrorNotSupported);
}

CUDART_API cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle,
                                            unsigned flags) {
  (void)pointer, (void)handle, (void)flags;
  return remember(cudaErrorNotSupported);
}

CUDART_API cudaError_t cudaIpcCloseMemHandle(void *pointer) {
  (void)pointer;
  return remember(cudaErrorNotSupported);
}

CUDART_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
  (void)handle, (void)event;
  return remember(cudaErrorNotSupported);
}

CUDART_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle) {
  (void)event, (void)handle;
  return remember(cudaErrorNotSupported);
}
