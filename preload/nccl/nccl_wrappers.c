/* SPDX-License-Identifier: MIT */
#include "nccl/nccl_hooks.def"

#include "hooks/wrapper.h"
#include "nccl/nccl_record.h"

#define HOOK(...) TSCOPE_WRAPPER(tscope_nccl_sonames, __VA_ARGS__)
TSCOPE_NCCL_HOOKS(HOOK)
