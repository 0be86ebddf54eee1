/* SPDX-License-Identifier: MIT
 *
 * A CUDA runtime of a few calls that do next to nothing, so that a hazard is about the shim alone.
 */
#ifndef FAKE_CUDART_H
#define FAKE_CUDART_H

#include <cuda_runtime_api.h>

/* Runs inside every launch, between the shim's entry and exit; NULL for nothing. */
extern void (*fake_inside_launch)(void);

/* Launches that really arrived here, from this process. */
unsigned long fake_launches(void);

#endif
