/* SPDX-License-Identifier: MIT
 *
 * Windows of registered memory, for which a handle is all there is, and the device API, which is
 * refused: there is no kernel here that could use either.
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

/* Their structures are declared in a C++ header of NCCL. */
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
