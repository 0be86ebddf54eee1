/* SPDX-License-Identifier: MIT
 *
 * Driver functions whose addresses PyTorch takes when it starts, and that it does not call unless a
 * kernel is compiled at run time: they refuse. Each is weak; a stand-in of the function wins.
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
