/* SPDX-License-Identifier: MIT
 *
 * A CUDA runtime of a few calls that do next to nothing, so that a hazard is about the shim alone.
 */
#ifndef FAKE_CUDART_H
#define FAKE_CUDART_H

#include <cuda_runtime_api.h>

/* Runs inside every launch, between the shim's entry and exit; NULL for nothing. */
extern void (*fake_inside_launch)(void);

/* What nvcc's code calls when a library with kernels is loaded; the runtime's header does not say.
 */
void __cudaRegisterFunction(void **binary, const char *function, char *device_function,
                            const char *name, int limit, uint3 *thread, uint3 *block,
                            dim3 *block_size, dim3 *grid_size, int *words);

/* Launches that really arrived here, from this process. */
unsigned long fake_launches(void);

#endif
