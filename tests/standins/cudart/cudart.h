/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stand-in CUDA runtime. STANDIN_CUDA_MAJOR (12 or 13) selects the
 * version; the sources are the same.
 */
#pragma once

#include "../gpu/clock.h"
#include "../gpu/engine.h"
#include "../gpu/order.h"
#include "../standin.h"

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#ifdef STANDIN_STATIC /* libcudart_static.a: in the program, not exported */
#define CUDART_API __attribute__((visibility("hidden")))
#else
#define CUDART_API __attribute__((visibility("default")))
#endif

/* Each stream function has two variants: for name, stream 0 is the legacy default stream; for
 * name##suffix, it is the thread's own default stream. The body is an expression that may use
 * `own`.
 */
#define TWINS(name, suffix, parameters, body)                                                      \
  CUDART_API cudaError_t name parameters;                                                          \
  CUDART_API cudaError_t name parameters {                                                         \
    const bool own = false;                                                                        \
    return body;                                                                                   \
  }                                                                                                \
  CUDART_API cudaError_t name##suffix parameters;                                                  \
  CUDART_API cudaError_t name##suffix parameters {                                                 \
    const bool own = true;                                                                         \
    return body;                                                                                   \
  }

/* Remembers an error for cudaGetLastError(), and returns it. */
cudaError_t remember(cudaError_t error);

/* Makes the device's primary context current if the thread has no context, as the real runtime does
 * for a thread that gives the device work. */
void ensure_context(void);
