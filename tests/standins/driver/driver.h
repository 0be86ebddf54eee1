/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stand-in driver, libcuda.so.1: the driver API as runtimes, Triton and
 * frameworks use it. Kernels only take time.
 */
#pragma once

#include "../gpu/order.h"

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#define DRIVER_API SIM_API CUresult CUDAAPI

/* Defines a function of the API with its own declaration: some versions of cuda.h have none, or
 * under another name. */
#define ENTRY(name, parameters)                                                                    \
  DRIVER_API name parameters;                                                                      \
  DRIVER_API name parameters

/* Each stream function has two variants: for name, stream 0 is the legacy default stream; for
 * name##suffix, it is the thread's own default stream. The body is an expression that may use
 * `own`.
 */
#define TWINS(name, suffix, parameters, body)                                                      \
  ENTRY(name, parameters) {                                                                        \
    const bool own = false;                                                                        \
    (void)own;                                                                                     \
    return (CUresult)(body);                                                                       \
  }                                                                                                \
  ENTRY(name##suffix, parameters) {                                                                \
    const bool own = true;                                                                         \
    (void)own;                                                                                     \
    return (CUresult)(body);                                                                       \
  }

/* Older cuda.h have neither. */
struct CUgreenCtx_st;
struct CUdevResourceDesc_st;

/* A function that returns CUDA_ERROR_NOT_SUPPORTED, for an API function that the stand-in lacks. */
void *driver_missing(const char *name);

/* The context of the calling thread, NULL if none. */
struct CUctx_st *driver_context(void);

/* The same if it is a green one, else NULL. */
void *driver_green_context(void);

struct CUctx_st *driver_primary_context(CUdevice device);
