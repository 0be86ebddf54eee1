/* SPDX-License-Identifier: MIT
 *
 * Calls that cost nothing, so that benchmarks measure only the hook.
 */
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) cudaError_t cudaLaunchKernel(const void *function, dim3 grid,
                                                                    dim3 block, void **args,
                                                                    size_t shared,
                                                                    cudaStream_t stream) {
  (void)function, (void)grid, (void)block, (void)args, (void)shared, (void)stream;
  return cudaSuccess;
}
/* The same function with a name that has no hook. */
__attribute__((visibility("default"))) extern __typeof(cudaLaunchKernel) stub_launch
    __attribute__((alias("cudaLaunchKernel")));

/* Asked again and again while work is not done, as by NCCL's watchdog. */
__attribute__((visibility("default"))) cudaError_t cudaEventQuery(cudaEvent_t event) {
  (void)event;
  return cudaErrorNotReady;
}

/* For sampling.py: a thread that waits for a GPU trains. */
__attribute__((visibility("default"))) cudaError_t cudaDeviceSynchronize(void) {
  return cudaSuccess;
}
