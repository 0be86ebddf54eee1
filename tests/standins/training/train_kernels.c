/* SPDX-License-Identifier: MIT
 *
 * The kernels of the training program as nvcc registers and launches them: in CUDA 12 by
 * the address of the host stub, in CUDA 13 by a handle for it.
 */
#include "train.h"

/* Functions that nvcc-compiled code calls; no header declares them for C. */
void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                            int *warp);
cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream);

static char stubs[N_KERNELS];
static const char *names[N_KERNELS] = {"_Z13forward_layerPfS_", "_Z14backward_layerPfS_",
                                       "_Z14optimizer_stepPf", "_Z11preparationPf"};

void register_kernels(const char *preparation) {
  static int fatbin;
  void **handle = __cudaRegisterFatBinary(&fatbin);
  names[PREPARATION] = preparation ? preparation : names[PREPARATION];
  for (int i = 0; i < N_KERNELS; i++)
    __cudaRegisterFunction(handle, &stubs[i], (char *)names[i], names[i], -1, NULL, NULL, NULL,
                           NULL, NULL);
  __cudaRegisterFatBinaryEnd(handle);
}

cudaError_t launch_kernel(enum kernel kernel, cudaStream_t stream) {
  dim3 grid = {132, 1, 1}, block = {256, 1, 1};
  float *argument = NULL;
  void *arguments[] = {&argument, &argument};
#if TRAIN_CUDA_MAJOR == 12
  return cudaLaunchKernel(&stubs[kernel], grid, block, arguments, 0, stream);
#else
  static cudaKernel_t handles[N_KERNELS];
  if (!handles[kernel]) {
    cudaError_t error = __cudaGetKernel(&handles[kernel], &stubs[kernel]);
    if (error != cudaSuccess)
      return error;
  }
  return __cudaLaunchKernel(handles[kernel], grid, block, arguments, 0, stream);
#endif
}
