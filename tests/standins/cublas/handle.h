/* SPDX-License-Identifier: MIT
 *
 * The state of a cuBLAS handle.
 */
#ifndef STANDIN_BLAS_HANDLE_H
#define STANDIN_BLAS_HANDLE_H

#include "blas.h"

struct cublasContext {
  void *stream;
  int math_mode, pointer_mode, atomics_mode, sm_count;
};

#endif
