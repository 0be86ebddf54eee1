/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stand-in CUDA runtime. STANDIN_CUDA_MAJOR (12 or 13) says which
 * runtime is built; the sources are the same.
 */
#ifndef STANDIN_CUDART_H
#define STANDIN_CUDART_H

#include "../gpu/clock.h"
#include "../gpu/engine.h"
#include "../gpu/order.h"
#include "../standin.h"

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#ifdef STANDIN_STATIC /* libcudart_static.a: linked into a program, seen by nobody */
#define CUDART_API __attribute__((visibility("hidden")))
#else
#define CUDART_API __attribute__((visibility("default")))
#endif

/* Stream functions come twice: as name, where stream 0 is the legacy default stream, and as
 * name##suffix, where it is the thread's own. The body is an expression that may use `own`. */
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

/* Remembers an error for cudaGetLastError(), and gives it back. */
cudaError_t remember(cudaError_t error);

/* As with the real runtime, whoever gives the device work has its primary context current then. */
void have_context(void);

#endif
