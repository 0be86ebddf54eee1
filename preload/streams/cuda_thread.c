/* SPDX-License-Identifier: MIT */
#include "streams/cuda_thread.h"

const char *const tscope_cuda_sonames[] = {"libcudart.so.13", "libcudart.so.12",
                                           "libcudart.so.11.0", NULL};
const char *const tscope_driver_sonames[] = {"libcuda.so.1", NULL};

const struct tscope_family tscope_cuda_family = {.name = "cuda",
                                                 .thread_bytes = sizeof(struct cuda_thread)};
