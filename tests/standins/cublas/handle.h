/* SPDX-License-Identifier: MIT
 *
 * The state of a cuBLAS handle.
 */
#pragma once

#include "blas.h"

struct cublasContext {
  void *stream;
  int math_mode, pointer_mode, atomics_mode, sm_count;
};
