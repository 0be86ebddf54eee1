/* SPDX-License-Identifier: MIT
 *
 * Windows of registered memory, which are only a handle, and the device API, which returns an
 * error: no kernel here could use them.
 */
#include <stdlib.h>

#include "comm.h"

NCCL_API ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes,
                                             ncclWindow_t *window, int flags) {
  (void)memory, (void)bytes, (void)flags;
  if (!comm || !window)
    return ncclInvalidArgument;
  *window = malloc(1);
  return *window ? ncclSuccess : ncclSystemError;
}
PROFILED(ncclCommWindowRegister);

NCCL_API ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  free(window);
  return comm ? ncclSuccess : ncclInvalidArgument;
}
PROFILED(ncclCommWindowDeregister);

/* The structures of these functions are declared in a C++ header of NCCL. */
NCCL_API ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *wanted, void *device_comm);
NCCL_API ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *wanted, void *device_comm) {
  (void)comm, (void)wanted, (void)device_comm;
  return ncclInvalidUsage;
}

NCCL_API ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *device_comm);
NCCL_API ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *device_comm) {
  (void)comm, (void)device_comm;
  return ncclInvalidUsage;
}

/* PyTorch is linked with these, and calls them only where windows can be used from kernels. */
#define REFUSED(name)                                                                              \
  NCCL_API ncclResult_t name(void);                                                                \
  NCCL_API ncclResult_t name(void) {                                                               \
    return ncclInvalidUsage;                                                                       \
  }
REFUSED(ncclCommGetUniqueId)
REFUSED(ncclCommMemStats)
REFUSED(ncclCommResume)
REFUSED(ncclCommSuspend)
REFUSED(ncclGetLsaMultimemDevicePointer)
REFUSED(ncclGetPeerDevicePointer)
REFUSED(ncclWinGetUserPtr)
