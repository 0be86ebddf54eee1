/* SPDX-License-Identifier: MIT */
#include "cuda/cuda_hooks.def"

#include "cuda/cuda_record.h"
#include "hooks/wrapper.h"

#define HOOK(...) TSCOPE_WRAPPER(tscope_cuda_sonames, __VA_ARGS__)
TSCOPE_CUDA_RECORDED(HOOK)
