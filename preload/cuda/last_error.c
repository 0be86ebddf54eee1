/* SPDX-License-Identifier: MIT */
#include "cuda/last_error.h"

#include <cuda_runtime_api.h>

#include "streams/cuda_thread.h"

bool last_error_is_clear(void) {
  cudaError_t (*peek)(void) = CUDA_FUNCTION("cudaPeekAtLastError");
  return peek && CUDA_FUNCTION("cudaGetLastError") && peek() == cudaSuccess;
}

void last_error_clear(void) {
  cudaError_t (*get)(void) = CUDA_FUNCTION("cudaGetLastError");
  if (get && !last_error_is_clear())
    get();
}
