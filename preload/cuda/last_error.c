/* SPDX-License-Identifier: MIT */
#include "cuda/last_error.h"

#include <cuda_runtime_api.h>

#include "streams/cuda_thread.h"

static struct tscope_symbol peek = {.name = "cudaPeekAtLastError", .sonames = tscope_cuda_sonames};
static struct tscope_symbol get = {.name = "cudaGetLastError", .sonames = tscope_cuda_sonames};

bool last_error_is_clear(void) {
  cudaError_t (*peek_error)(void) = tscope_resolve(&peek, NULL);
  return peek_error && tscope_resolve(&get, NULL) && peek_error() == cudaSuccess;
}

void last_error_clear(void) {
  cudaError_t (*get_error)(void) = tscope_resolve(&get, NULL);
  if (get_error && !last_error_is_clear())
    get_error();
}
