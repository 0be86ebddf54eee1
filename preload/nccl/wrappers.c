/* SPDX-License-Identifier: MIT */
#include "nccl_hooks.def"

#include "nccl_record.h"
#include "wrapper.h"

#define HOOK(...) TSCOPE_WRAPPER(tscope_nccl_sonames, __VA_ARGS__)
TSCOPE_NCCL_HOOKS(HOOK)
