/* SPDX-License-Identifier: MIT
 *
 * Work for the stand-in GPU, whose kernels run for a given time.
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#include "../../standins/standin.h"
#include "gpu/gpu_clock.h"
#include "hooks_trace.h"

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *);

static cudaStream_t stream;

static inline void register_kernel(char *kernel, const char *name) {
  static int fatbin;
  void **module = __cudaRegisterFatBinary(&fatbin);
  __cudaRegisterFunction(module, kernel, (char *)(uintptr_t)name, name, -1, NULL, NULL, NULL, NULL,
                         NULL);
  __cudaRegisterFatBinaryEnd(module);
}

static inline void launch_on(cudaStream_t on, char *kernel, int64_t ns) {
  standin_next_kernel_ns(ns);
  assert_int_equal(cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, on),
                   cudaSuccess);
}

static inline void launch(char *kernel, int64_t ns) {
  launch_on(stream, kernel, ns);
}

static char kernel;

/* With a kernel and a stream. */
static inline int gpu_set_up(void **state) {
  register_kernel(&kernel, "_Z6kernelv");
  return trace_set_up(state) || cudaStreamCreate(&stream) != cudaSuccess;
}

/* Does a part of the poller's work, now and on this thread. */
static inline void poller_part(void (*part)(struct tscope_thread *)) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  assert_non_null(thread);
  part(thread);
  tscope_leave(thread);
}

static inline u32 kernels_seen(void) {
  cudaDeviceSynchronize();
  poller_part(gpu_clock_cupti.poll);
  return count(TSCOPE_REC_GPU_KERNEL);
}
