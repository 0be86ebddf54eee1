/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stand-in driver, libcuda.so.1: the driver API as runtimes, Triton and
 * frameworks use it. Kernels do nothing but take time.
 */
#ifndef STANDIN_DRIVER_H
#define STANDIN_DRIVER_H

#include "../gpu/order.h"

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#define DRIVER_API SIM_API CUresult CUDAAPI

/* A function of the API that some version of cuda.h may not declare, or not under this name. */
#define ENTRY(name, parameters)                                                                    \
  DRIVER_API name parameters;                                                                      \
  DRIVER_API name parameters

/* Stream functions come twice: as name, where stream 0 is the legacy default stream, and as
 * name##suffix, where it is the thread's own. The body is an expression that may use `own`. */
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

/* A function of this name that says so once and refuses, for an API that the stand-in lacks. */
void *driver_missing(const char *name);

/* The context of the calling thread, NULL if none. */
struct CUctx_st *driver_context(void);

#endif
