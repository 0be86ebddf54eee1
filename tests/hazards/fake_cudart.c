/* SPDX-License-Identifier: MIT */
#include "fake_cudart.h"

#include <stdlib.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

FAKE_EXPORT void (*fake_inside_launch)(void);
static unsigned long launches;

FAKE_EXPORT unsigned long fake_launches(void) {
  return __atomic_load_n(&launches, __ATOMIC_RELAXED);
}

/* The error depends on the block size, so that callers can check that results pass through the
 * shim. */
FAKE_EXPORT cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
                                         size_t shared, cudaStream_t stream) {
  (void)function, (void)grid, (void)args, (void)shared, (void)stream;
  __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
  if (fake_inside_launch)
    fake_inside_launch();
  return block.x > 1024 ? cudaErrorInvalidConfiguration : cudaSuccess;
}

/* For programs that do not link this library. */
FAKE_EXPORT int fake_launch_in_blocks_of(const void *function, unsigned threads) {
  return cudaLaunchKernel(function, (dim3){1, 1, 1}, (dim3){threads, 1, 1}, NULL, 0, NULL);
}

FAKE_EXPORT cudaError_t cudaMalloc(void **address, size_t bytes) {
  *address = malloc(bytes);
  return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

FAKE_EXPORT cudaError_t cudaFree(void *address) {
  free(address);
  return cudaSuccess;
}

FAKE_EXPORT void __cudaRegisterFunction(void **binary, const char *function, char *device_function,
                                        const char *name, int limit, uint3 *thread, uint3 *block,
                                        dim3 *block_size, dim3 *grid_size, int *words) {
  (void)binary, (void)function, (void)device_function, (void)name, (void)limit, (void)thread;
  (void)block, (void)block_size, (void)grid_size, (void)words;
}

FAKE_EXPORT cudaError_t cudaDeviceSynchronize(void) {
  return cudaSuccess;
}
