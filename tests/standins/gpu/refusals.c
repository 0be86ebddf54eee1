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

REFUSED(cuCtxSetCurrent)
REFUSED(cuDeviceGetAttribute)
REFUSED(cuDevicePrimaryCtxRetain)
REFUSED(cuFuncGetAttribute)
REFUSED(cuFuncSetAttribute)
REFUSED(cuFuncSetCacheConfig)
REFUSED(cuGetErrorString)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLaunchKernel)
REFUSED(cuLinkAddData_v2)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate_v2)
REFUSED(cuModuleGetFunction)
REFUSED(cuModuleLoad)
REFUSED(cuModuleLoadData)
REFUSED(cuModuleLoadDataEx)
REFUSED(cuModuleUnload)
REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSED(cuPointerGetAttribute)
REFUSED(cuTensorMapEncodeTiled)

/* Every device's context is there from the start. */
__attribute__((weak, visibility("default"))) int
cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
__attribute__((weak, visibility("default"))) int
cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  (void)device;
  *flags = 0;
  *active = 1;
  return 0;
}
