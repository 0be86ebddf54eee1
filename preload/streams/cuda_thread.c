/* SPDX-License-Identifier: MIT */
#include "streams/cuda_thread.h"

#include <string.h>

u32 cuda_generation, cuda_kernels_generation;

void cuda_stream_handle_ends(void) {
  __atomic_add_fetch(&cuda_generation, 1, __ATOMIC_RELEASE);
}

void cuda_kernel_handle_ends(void) {
  __atomic_add_fetch(&cuda_kernels_generation, 1, __ATOMIC_RELEASE);
  __atomic_add_fetch(&cuda_generation, 1, __ATOMIC_RELEASE);
}

void cuda_thread_forget_stale(struct cuda_thread *cuda) {
  u32 generation = __atomic_load_n(&cuda_generation, __ATOMIC_ACQUIRE);
  u32 of_kernels = __atomic_load_n(&cuda_kernels_generation, __ATOMIC_ACQUIRE);
  if (cuda->generation == generation)
    return;
  memset(cuda->streams, 0, sizeof(cuda->streams));
  if (cuda->kernels_generation != of_kernels)
    memset(cuda->shapes, 0, sizeof(cuda->shapes));
  cuda->generation = generation;
  cuda->kernels_generation = of_kernels;
}

const char *const tscope_cuda_sonames[] = {"libcudart.so.13", "libcudart.so.12",
                                           "libcudart.so.11.0", NULL};
const char *const tscope_driver_sonames[] = {"libcuda.so.1", NULL};

const struct tscope_family tscope_cuda_family = {.thread_bytes = sizeof(struct cuda_thread)};
