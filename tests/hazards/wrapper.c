/* SPDX-License-Identifier: MIT
 *
 * An application that wraps the CUDA runtime itself: its own cudaLaunchKernel comes first in the
 * search order and calls the next one.
 */
#include <dlfcn.h>

#include "fake_cudart.h"

__attribute__((visibility("default"))) unsigned long wrapped;

__attribute__((visibility("default"))) cudaError_t cudaLaunchKernel(const void *function, dim3 grid,
                                                                    dim3 block, void **args,
                                                                    size_t shared,
                                                                    cudaStream_t stream) {
  static __typeof__(&cudaLaunchKernel) next;
  if (!next)
    next = (__typeof__(next))dlsym(RTLD_NEXT, "cudaLaunchKernel");
  __atomic_fetch_add(&wrapped, 1, __ATOMIC_RELAXED);
  return next(function, grid, block, args, shared, stream);
}
