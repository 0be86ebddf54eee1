/* SPDX-License-Identifier: MIT */
#include "cuda/graphs/captured_kernels.h"

#include <string.h>

#include "cuda/launch_shapes.h"

__thread struct captured_kernels captured_kernels __attribute__((tls_model("initial-exec")));

void captured_kernels_add(struct tscope_thread *thread, const void *function, dim3 grid,
                          dim3 block) {
  if (!captured_kernels.watched)
    return;
  TSCOPE_KEEP_ERRNO;
  u32 n = captured_kernels.n++;
  cuda_thread_forget_stale(cuda_thread(thread));
  if (n < CAPTURED_KERNELS)
    captured_kernels.shapes[n] =
        shape_number(thread, shape_key(function, grid, block), function, grid, block);
}

u32 captured_kernels_get(u32 shapes[CAPTURED_KERNELS], u32 *in_all) {
  u32 n = MIN(captured_kernels.n, CAPTURED_KERNELS);
  *in_all = captured_kernels.n;
  memcpy(shapes, captured_kernels.shapes, n * sizeof(*shapes));
  return n;
}
