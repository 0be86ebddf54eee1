/* SPDX-License-Identifier: MIT
 *
 * Wrappers written by hand: calls that record nothing but teach tscope what a handle means. They
 * run in dormant processes too, so they only fill tables.
 */
#include "cuda_hooks.def"
#include "kernel_names.h"
#include "streams.h"
#include "wrapper.h"

/* Declares the wrapper, its real function's type, and how to find that. */
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  typedef type(*real_##name_) params;                                                              \
  static struct tscope_symbol symbol_##name_ = {.name = #name_, .sonames = tscope_cuda_sonames};
TSCOPE_CUDA_SPECIALS(HOOK)
#undef HOOK

#define REAL(name_) ((real_##name_)tscope_resolve(&symbol_##name_, __builtin_return_address(0)))

TSCOPE_EXPORT void tscope_hook___cudaRegisterFunction(void **fatCubinHandle, const char *hostFun,
                                                      char *deviceFun, const char *deviceName,
                                                      int thread_limit, uint3 *tid, uint3 *bid,
                                                      dim3 *bDim, dim3 *gDim, int *wSize) {
  real___cudaRegisterFunction real = REAL(__cudaRegisterFunction);
  if (!real)
    return;
  kernel_name_register(hostFun, deviceName);
  real(fatCubinHandle, hostFun, deviceFun, deviceName, thread_limit, tid, bid, bDim, gDim, wSize);
}

TSCOPE_EXPORT cudaError_t tscope_hook___cudaGetKernel(cudaKernel_t *kernel, const void *hostFun) {
  real___cudaGetKernel real = REAL(__cudaGetKernel);
  if (!real)
    return cudaErrorSharedObjectInitFailed;
  cudaError_t result = real(kernel, hostFun);
  if (result == cudaSuccess && kernel)
    kernel_name_alias(*kernel, hostFun);
  return result;
}

TSCOPE_EXPORT cudaError_t tscope_hook_cudaGetKernel(cudaKernel_t *kernelPtr,
                                                    const void *entryFuncAddr) {
  real_cudaGetKernel real = REAL(cudaGetKernel);
  if (!real)
    return cudaErrorSharedObjectInitFailed;
  cudaError_t result = real(kernelPtr, entryFuncAddr);
  if (result == cudaSuccess && kernelPtr)
    kernel_name_alias(*kernelPtr, entryFuncAddr);
  return result;
}

TSCOPE_EXPORT cudaError_t tscope_hook_cudaStreamDestroy(cudaStream_t stream) {
  real_cudaStreamDestroy real = REAL(cudaStreamDestroy);
  if (!real)
    return cudaErrorSharedObjectInitFailed;
  stream_forget(stream); /* first: another thread may be given the handle before this returns */
  return real(stream);
}

TSCOPE_EXPORT cudaError_t tscope_hook_cudaSetDevice(int device) {
  real_cudaSetDevice real = REAL(cudaSetDevice);
  if (!real)
    return cudaErrorSharedObjectInitFailed;
  cudaError_t result = real(device);
  if (result == cudaSuccess)
    cuda_chosen_device = device;
  return result;
}
