/* SPDX-License-Identifier: MIT
 *
 * The calling thread's last error.
 */
#include "cudart.h"

static __thread cudaError_t last_error;

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady)
    last_error = error;
  return error;
}

cudaError_t CUDART_API cudaGetLastError(void) {
  cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t CUDART_API cudaPeekAtLastError(void) {
  return last_error;
}
