/* SPDX-License-Identifier: MIT
 *
 * Virtual memory management: physical memory is a memfd, a reserved address range is inaccessible
 * memory, and cuMemMap() maps the memfd into it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

enum { GRANULARITY = 2 << 20 };

struct physical {
  int file;
  size_t bytes;
  unsigned references;
  CUmemAllocationProp properties;
};

ENTRY(cuMemGetAllocationGranularity, (size_t * bytes, const CUmemAllocationProp *properties,
                                      CUmemAllocationGranularity_flags flags)) {
  (void)properties, (void)flags;
  *bytes = GRANULARITY;
  return CUDA_SUCCESS;
}

static CUresult physical_new(CUmemGenericAllocationHandle *handle, int file, size_t bytes,
                             const CUmemAllocationProp *properties) {
  struct physical *physical = file < 0 ? NULL : calloc(1, sizeof(*physical));
  if (!physical)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *physical = (struct physical){file, bytes, 1, {0}};
  if (properties)
    physical->properties = *properties;
  *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
  return CUDA_SUCCESS;
}

ENTRY(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t bytes,
                    const CUmemAllocationProp *properties, unsigned long long flags)) {
  (void)flags;
  if (!bytes || bytes % GRANULARITY)
    return CUDA_ERROR_INVALID_VALUE;
  int file = memfd_create("stand-in GPU memory", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)bytes)) {
    close(file);
    file = -1;
  }
  return physical_new(handle, file, bytes, properties);
}

ENTRY(cuMemRelease, (CUmemGenericAllocationHandle handle)) {
  struct physical *physical = (struct physical *)(uintptr_t)handle;
  if (!physical)
    return CUDA_ERROR_INVALID_VALUE;
  if (!--physical->references) {
    close(physical->file);
    free(physical);
  }
  return CUDA_SUCCESS;
}

ENTRY(cuMemAddressReserve, (CUdeviceptr * pointer, size_t bytes, size_t alignment,
                            CUdeviceptr wanted, unsigned long long flags)) {
  (void)wanted, (void)flags;
  if (alignment < GRANULARITY)
    alignment = GRANULARITY;
  char *range =
      mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  uintptr_t start = ((uintptr_t)range + alignment - 1) / alignment * alignment;
  munmap(range, start - (uintptr_t)range);
  munmap((void *)(start + bytes), (uintptr_t)range + alignment - start);
  *pointer = start;
  return CUDA_SUCCESS;
}

ENTRY(cuMemAddressFree, (CUdeviceptr pointer, size_t bytes)) {
  return munmap((void *)(uintptr_t)pointer, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

ENTRY(cuMemMap, (CUdeviceptr pointer, size_t bytes, size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long flags)) {
  const struct physical *physical = (const struct physical *)(uintptr_t)handle;
  void *at = (void *)(uintptr_t)pointer;
  (void)flags;
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file,
           (off_t)offset) == MAP_FAILED)
    return CUDA_ERROR_INVALID_VALUE;
  return (CUresult)sim_adopt(at, bytes, cudaMemoryTypeDevice);
}

ENTRY(cuMemUnmap, (CUdeviceptr pointer, size_t bytes)) {
  char *at = (char *)(uintptr_t)pointer, *end = at + bytes;
  for (struct sim_memory memory; at < end; at += memory.bytes) {
    memory = sim_memory_at(at);
    if (memory.start != at || sim_disown(at))
      return CUDA_ERROR_INVALID_VALUE;
  }
  at = (char *)(uintptr_t)pointer;
  mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}

ENTRY(cuMemSetAccess,
      (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t n)) {
  (void)pointer, (void)bytes, (void)access, (void)n;
  return CUDA_SUCCESS;
}

ENTRY(cuMemGetAccess,
      (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer)) {
  (void)location, (void)pointer;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

ENTRY(cuMemExportToShareableHandle, (void *shareable, CUmemGenericAllocationHandle handle,
                                     CUmemAllocationHandleType type, unsigned long long flags)) {
  const struct physical *physical = (const struct physical *)(uintptr_t)handle;
  (void)flags;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  *(int *)shareable = fcntl(physical->file, F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}

ENTRY(cuMemImportFromShareableHandle,
      (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type)) {
  int file = (int)(intptr_t)shareable;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  off_t bytes = lseek(file, 0, SEEK_END);
  return physical_new(handle, fcntl(file, F_DUPFD_CLOEXEC, 0), (size_t)bytes, NULL);
}

ENTRY(cuMemGetAllocationPropertiesFromHandle,
      (CUmemAllocationProp * properties, CUmemGenericAllocationHandle handle)) {
  *properties = ((const struct physical *)(uintptr_t)handle)->properties;
  return CUDA_SUCCESS;
}
