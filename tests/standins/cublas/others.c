/* SPDX-License-Identifier: MIT
 *
 * The functions of cuBLAS that PyTorch calls besides GEMMs: they succeed and do nothing. They
 * declare no parameters, because the ABI allows a callee to ignore its arguments.
 */
#include "blas.h"

#define STUB(name)                                                                                 \
  BLAS_API int name(void) {                                                                        \
    return BLAS_SUCCESS;                                                                           \
  }
#define OF_EACH_TYPE(suffix)                                                                       \
  STUB(cublasS##suffix)                                                                            \
  STUB(cublasD##suffix)                                                                            \
  STUB(cublasC##suffix)                                                                            \
  STUB(cublasZ##suffix)

OF_EACH_TYPE(gemv_v2)
OF_EACH_TYPE(axpy_v2)
OF_EACH_TYPE(copy_v2)
OF_EACH_TYPE(scal_v2)
OF_EACH_TYPE(trsm_v2)
OF_EACH_TYPE(trsmBatched)
OF_EACH_TYPE(getrfBatched)
OF_EACH_TYPE(getrsBatched)
OF_EACH_TYPE(geqrfBatched)
OF_EACH_TYPE(gelsBatched)
STUB(cublasSdot_v2)
STUB(cublasDdot_v2)
STUB(cublasDotEx)
STUB(cublasCdotu_v2)
STUB(cublasCdotc_v2)
STUB(cublasZdotu_v2)
STUB(cublasZdotc_v2)
