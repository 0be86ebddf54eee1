/* SPDX-License-Identifier: MIT
 *
 * A CUDA runtime of a few functions that do almost nothing, so that a hazard tests only the shim.
 */
#pragma once

#include <cuda_runtime_api.h>

/* Called inside every launch, between the shim's entry and exit, if not NULL. */
extern void (*fake_inside_launch)(void);

/* Called by nvcc's code when a library with kernels is loaded; the runtime's headers do not declare
 * it. */
void __cudaRegisterFunction(void **binary, const char *function, char *device_function,
                            const char *name, int limit, uint3 *thread, uint3 *block,
                            dim3 *block_size, dim3 *grid_size, int *words);

int fake_launch_in_blocks_of(const void *function, unsigned threads);

/* The number of launches in this process that reached this library. */
unsigned long fake_launches(void);
