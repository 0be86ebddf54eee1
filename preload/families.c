/* SPDX-License-Identifier: MIT
 *
 * The table of API families. A family lives in its own folder and defines its struct there; adding
 * one is a slot in families.h and a line here.
 */
#include "record/families.h"

/* Weak, so that a program may link the core with only some of the families. */
extern const struct tscope_family tscope_cuda_family __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_nccl_family __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_gpu_family __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_torch_family __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_nvtx_family __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_stdout_scalars_family
    __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_hooked_symbols_family
    __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_call_sites_family
    __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_stalls_family __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_stack_requests_family
    __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_line_samples_family
    __attribute__((weak, visibility("hidden")));
extern const struct tscope_family tscope_api_family __attribute__((weak, visibility("hidden")));

const struct tscope_family *const tscope_families[TSCOPE_FAMILY_SLOTS] = {
    [TSCOPE_FAMILY_CUDA] = &tscope_cuda_family,
    [TSCOPE_FAMILY_NCCL] = &tscope_nccl_family,
    [TSCOPE_FAMILY_GPU] = &tscope_gpu_family,
    [TSCOPE_FAMILY_TORCH] = &tscope_torch_family,
    [TSCOPE_FAMILY_API] = &tscope_api_family,
    [TSCOPE_FAMILY_NVTX] = &tscope_nvtx_family,
    [TSCOPE_FAMILY_STDOUT_SCALARS] = &tscope_stdout_scalars_family,
    [TSCOPE_FAMILY_HOOKED_SYMBOLS] = &tscope_hooked_symbols_family,
    [TSCOPE_FAMILY_CALL_SITES] = &tscope_call_sites_family,
    [TSCOPE_FAMILY_STALLS] = &tscope_stalls_family,
    [TSCOPE_FAMILY_STACK_REQUESTS] = &tscope_stack_requests_family,
    [TSCOPE_FAMILY_LINE_SAMPLES] = &tscope_line_samples_family,
};
