/* SPDX-License-Identifier: MIT
 *
 * Driver functions that PyTorch links to, but calls only when it compiles a kernel at run time:
 * they return an error. Each is a weak symbol, so that a real stand-in of the function replaces it.
 */
#include <stddef.h>

#define REFUSED(name)                                                                              \
  __attribute__((weak, visibility("default"))) int name(void);                                     \
  __attribute__((weak, visibility("default"))) int name(void) {                                    \
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */                                                     \
  }

REFUSED(cuLinkAddData_v2)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate_v2)
REFUSED(cuTensorMapEncodeTiled)
