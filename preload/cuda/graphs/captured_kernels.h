/* SPDX-License-Identifier: MIT
 *
 * Which kernels a library's call put into a graph: the kernels of a captured GEMM, so that they are
 * recognised when the graph runs. Kept per thread, while it watches. If nothing is captured, this
 * costs two stores.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "record/hook.h"

enum { CAPTURED_KERNELS = 6 }; /* that are remembered; a GEMM has one to three */

struct captured_kernels {
  bool watched; /* a call is in progress whose kernels are of interest */
  u32 n;        /* all of them */
  u32 shapes[CAPTURED_KERNELS];
};
extern __thread struct captured_kernels captured_kernels __attribute__((tls_model("initial-exec")));

/* A call of a library begins, and its end. */
static inline void captured_kernels_watch(void) {
  captured_kernels.watched = true;
  captured_kernels.n = 0;
}
static inline void captured_kernels_unwatch(void) {
  captured_kernels.watched = false;
}

/* A launch was captured. */
TSCOPE_NOINLINE void captured_kernels_add(struct tscope_thread *thread, const void *function,
                                          dim3 grid, dim3 block);

/* The kernels of the last call that was watched: their SHAPE numbers in `shapes`, their total
 * number in `in_all`. Returns how many are in `shapes`. */
u32 captured_kernels_get(u32 shapes[CAPTURED_KERNELS], u32 *in_all);
