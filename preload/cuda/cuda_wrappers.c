/* SPDX-License-Identifier: MIT */
#include "cuda/cuda_hooks.def"

#include "cuda/cuda_record.h"
#include "hooks/wrapper.h"

const char *const tscope_cuda_sonames[] = {"libcudart.so.13", "libcudart.so.12",
                                           "libcudart.so.11.0", NULL};
const char *const tscope_driver_sonames[] = {"libcuda.so.1", NULL};

#define HOOK(...) TSCOPE_WRAPPER(tscope_cuda_sonames, __VA_ARGS__)
TSCOPE_CUDA_RECORDED(HOOK)

const struct tscope_family tscope_cuda_family = {.name = "cuda",
                                                 .thread_bytes = sizeof(struct cuda_thread)};
