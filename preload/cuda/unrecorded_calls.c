/* SPDX-License-Identifier: MIT
 *
 * Wrappers written by hand, for calls that record nothing, but from which tscope learns what a
 * handle means. They run in dormant processes too, so they only fill tables.
 */
#include "cuda/cuda_hooks.def"
#include "cuda/kernel_names.h"
#include "gpu/event_pairs.h"
#include "hooks/wrapper.h"
#include "streams/stream_numbers.h"

/* Both functions; each calls its function below: special_<name>(real, arguments...). */
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  typedef type(*real_##name_) params;                                                              \
  TSCOPE_SYMBOLS_OF(name_, tscope_cuda_sonames)                                                    \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_HIDDEN type tscope_via_dlsym_##name_ params;
TSCOPE_CUDA_SPECIALS(HOOK)
#undef HOOK

static void special___cudaRegisterFunction(real___cudaRegisterFunction real, void **fatCubinHandle,
                                           const char *hostFun, char *deviceFun,
                                           const char *deviceName, int thread_limit, uint3 *tid,
                                           uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize) {
  kernel_name_register(hostFun, deviceName);
  real(fatCubinHandle, hostFun, deviceFun, deviceName, thread_limit, tid, bid, bDim, gDim, wSize);
}

static cudaError_t special___cudaGetKernel(real___cudaGetKernel real, cudaKernel_t *kernel,
                                           const void *hostFun) {
  cudaError_t result = real(kernel, hostFun);
  if (result == cudaSuccess && kernel)
    kernel_name_alias(*kernel, hostFun);
  return result;
}

static cudaError_t special_cudaGetKernel(real_cudaGetKernel real, cudaKernel_t *kernelPtr,
                                         const void *entryFuncAddr) {
  return special___cudaGetKernel(real, kernelPtr, entryFuncAddr);
}

static cudaError_t special_cudaStreamDestroy(real_cudaStreamDestroy real, cudaStream_t stream) {
  event_pairs_stream_destroy(
      stream); /* first: another thread may be given the handle before this returns */
  return real(stream);
}

/* Events are destroyed with their context; tscope must not query its own after that. */
static cudaError_t special_cudaDeviceReset(real_cudaDeviceReset real) {
  event_pairs_context_destroy(NULL);
  return real();
}

static cudaError_t special_cudaSetDevice(real_cudaSetDevice real, int device) {
  cudaError_t result = real(device);
  if (result == cudaSuccess)
    cuda_chosen_device = device;
  return result;
}

#define BODY(via_, name_, type, params, args, failure)                                             \
  TSCOPE_FORWARD(TSCOPE_REAL(name_, via_), type, params, failure,                                  \
                 return special_##name_(real TSCOPE_MORE args);)
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  TSCOPE_EXPORT type tscope_hook_##name_ params BODY(TSCOPE_VIA_LINKER, name_, type, params, args, \
                                                     failure)                                      \
  type tscope_via_dlsym_##name_ params BODY(TSCOPE_VIA_DLSYM, name_, type, params, args, failure)
TSCOPE_CUDA_SPECIALS(HOOK)
