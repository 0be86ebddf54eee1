/* SPDX-License-Identifier: MIT
 *
 * Memory, copies and fills in the driver API. A device address is a host address.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { ALIGNMENT = 512 };

static void *at(CUdeviceptr pointer) {
  return (void *)(uintptr_t)pointer;
}

static CUresult allocate_async(CUdeviceptr *pointer, size_t bytes, enum cudaMemoryType type) {
  void *memory = NULL;
  if (!pointer || !bytes)
    return CUDA_ERROR_INVALID_VALUE;
  cudaError_t error = sim_allocate(&memory, bytes, type);
  *pointer = (CUdeviceptr)(uintptr_t)memory;
  return (CUresult)error;
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes, enum cudaMemoryType type) {
  cudaError_t error = sim_capture_unsafe();
  return error ? (CUresult)error : allocate_async(pointer, bytes, type);
}

static CUresult release(void *pointer) {
  cudaError_t error = sim_capture_unsafe();
  return (CUresult)(error ? error : sim_release(pointer));
}

ENTRY(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes)) {
  return allocate(pointer, bytes, cudaMemoryTypeDevice);
}

ENTRY(cuMemAllocPitch_v2,
      (CUdeviceptr * pointer, size_t *pitch, size_t width, size_t height, unsigned element)) {
  (void)element;
  *pitch = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return allocate(pointer, *pitch * height, cudaMemoryTypeDevice);
}

ENTRY(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned flags)) {
  (void)flags;
  return allocate(pointer, bytes, cudaMemoryTypeManaged);
}

TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr * pointer, size_t bytes, CUstream stream),
      ((void)stream, allocate_async(pointer, bytes, cudaMemoryTypeDevice)))
TWINS(cuMemAllocFromPoolAsync, _ptsz,
      (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream),
      ((void)pool, (void)stream, allocate_async(pointer, bytes, cudaMemoryTypeDevice)))

ENTRY(cuMemFree_v2, (CUdeviceptr pointer)) {
  return release(at(pointer));
}
TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr pointer, CUstream stream),
      sim_release_async(at(pointer), stream, own))

static CUresult allocate_host(void **pointer, size_t bytes) {
  cudaError_t error = sim_capture_unsafe();
  return (CUresult)(error ? error : sim_allocate(pointer, bytes, cudaMemoryTypeHost));
}

ENTRY(cuMemAllocHost_v2, (void **pointer, size_t bytes)) {
  return allocate_host(pointer, bytes);
}

ENTRY(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags)) {
  (void)flags;
  return allocate_host(pointer, bytes);
}

ENTRY(cuMemFreeHost, (void *pointer)) {
  return release(pointer);
}

ENTRY(cuMemHostRegister_v2, (void *pointer, size_t bytes, unsigned flags)) {
  (void)pointer, (void)bytes, (void)flags;
  return CUDA_SUCCESS;
}

ENTRY(cuMemHostUnregister, (void *pointer)) {
  (void)pointer;
  return CUDA_SUCCESS;
}

ENTRY(cuMemHostGetDevicePointer_v2, (CUdeviceptr * device, void *host, unsigned flags)) {
  (void)flags;
  *device = (CUdeviceptr)(uintptr_t)host;
  return CUDA_SUCCESS;
}

ENTRY(cuMemHostGetFlags, (unsigned *flags, void *pointer)) {
  (void)pointer;
  *flags = 0;
  return CUDA_SUCCESS;
}

ENTRY(cuMemGetInfo_v2, (size_t * available, size_t *total)) {
  sim_memory_info(available, total);
  return CUDA_SUCCESS;
}

ENTRY(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr pointer)) {
  struct sim_memory memory = sim_memory_at(at(pointer));
  if (memory.type == cudaMemoryTypeUnregistered)
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = (CUdeviceptr)(uintptr_t)memory.start;
  if (bytes)
    *bytes = memory.bytes;
  return CUDA_SUCCESS;
}

static CUresult get_attribute(void *data, CUpointer_attribute wanted, CUdeviceptr pointer) {
  struct sim_memory memory = sim_memory_at(at(pointer));
  bool known = memory.type != cudaMemoryTypeUnregistered;
  CUcontext context = NULL;
  if (known && !cuDevicePrimaryCtxRetain(&context, memory.device))
    cuDevicePrimaryCtxRelease(memory.device);
  switch ((int)wanted) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    *(CUcontext *)data = context;
    break;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)data = !known                              ? 0
                        : memory.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST
                                                            : CU_MEMORYTYPE_DEVICE;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *(CUdeviceptr *)data = known ? pointer : 0;
    break;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    *(unsigned *)data = memory.type == cudaMemoryTypeManaged;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)data = memory.device;
    break;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *(void **)data = memory.start;
    break;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *(size_t *)data = memory.bytes;
    break;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    *(unsigned long long *)data = (unsigned long long)(uintptr_t)memory.start;
    break;
  case CU_POINTER_ATTRIBUTE_MAPPED:
    *(unsigned *)data = known;
    break;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    *(void **)data = NULL;
    break;
  default:
    *(unsigned *)data = 0;
  }
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuPointerGetAttribute, (void *data, CUpointer_attribute wanted, CUdeviceptr pointer)) {
  return get_attribute(data, wanted, pointer);
}

/* Unlike the function above, this one succeeds for pointers that are not CUDA's. */
ENTRY(cuPointerGetAttributes,
      (unsigned n, CUpointer_attribute *wanted, void **data, CUdeviceptr pointer)) {
  for (unsigned i = 0; i < n; i++)
    get_attribute(data[i], wanted[i], pointer);
  return CUDA_SUCCESS;
}

ENTRY(cuPointerSetAttribute, (const void *value, CUpointer_attribute wanted, CUdeviceptr pointer)) {
  (void)value, (void)wanted, (void)pointer;
  return CUDA_SUCCESS;
}

/* One pool for each device. Attributes that are set have no effect. */
static CUresult pool_of(CUmemoryPool *pool, CUdevice device) {
  static char pools[SIM_DEVICES];
  *pool = (CUmemoryPool)(void *)&pools[device % SIM_DEVICES];
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device)) {
  return pool_of(pool, device);
}

ENTRY(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device)) {
  return pool_of(pool, device);
}

ENTRY(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool)) {
  (void)device, (void)pool;
  return CUDA_SUCCESS;
}

ENTRY(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties)) {
  return pool_of(pool, properties->location.id);
}

ENTRY(cuMemPoolDestroy, (CUmemoryPool pool)) {
  (void)pool;
  return CUDA_SUCCESS;
}

ENTRY(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute_, void *value)) {
  (void)pool, (void)attribute_, (void)value;
  return CUDA_SUCCESS;
}

ENTRY(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute_, void *value)) {
  (void)pool;
  if (attribute_ < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    *(int *)value = 0;
  else
    *(cuuint64_t *)value = 0;
  return CUDA_SUCCESS;
}

ENTRY(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *access, size_t n)) {
  (void)pool, (void)access, (void)n;
  return CUDA_SUCCESS;
}

ENTRY(cuMemPoolTrimTo, (CUmemoryPool pool, size_t bytes)) {
  (void)pool, (void)bytes;
  return CUDA_SUCCESS;
}

/* `kind` is the direction, as in the runtime API. */
static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, enum cudaMemcpyKind kind,
                     CUstream stream, bool own, bool wait) {
  return (CUresult)sim_copy(at(to), at(from), bytes, kind, stream, own, wait);
}
#define HOST(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

TWINS(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
      copy(to, from, bytes, cudaMemcpyDefault, NULL, own, true))
TWINS(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
      copy(to, from, bytes, cudaMemcpyDefault, stream, own, false))
TWINS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void *from, size_t bytes),
      copy(to, HOST(from), bytes, cudaMemcpyHostToDevice, NULL, own, true))
TWINS(cuMemcpyHtoDAsync_v2, _ptsz,
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
      copy(to, HOST(from), bytes, cudaMemcpyHostToDevice, stream, own, false))
TWINS(cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t bytes),
      copy(HOST(to), from, bytes, cudaMemcpyDeviceToHost, NULL, own, true))
TWINS(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
      copy(HOST(to), from, bytes, cudaMemcpyDeviceToHost, stream, own, false))
TWINS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
      copy(to, from, bytes, cudaMemcpyDeviceToDevice, NULL, own, true))
TWINS(cuMemcpyDtoDAsync_v2, _ptsz,
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
      copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, own, false))
TWINS(cuMemcpyPeer, _ptds,
      (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes),
      ((void)there, (void)here,
       copy(to, from, bytes, (enum cudaMemcpyKind)SIM_PEER, NULL, own, true)))
TWINS(cuMemcpyPeerAsync, _ptsz,
      (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes,
       CUstream stream),
      ((void)there, (void)here,
       copy(to, from, bytes, (enum cudaMemcpyKind)SIM_PEER, stream, own, false)))

static char *corner(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch, size_t x,
                    size_t y) {
  char *start = type == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)host : at(device);
  return start + y * pitch + x;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy_, CUstream stream, bool own, bool wait) {
  bool to_host = copy_->dstMemoryType == CU_MEMORYTYPE_HOST;
  bool from_host = copy_->srcMemoryType == CU_MEMORYTYPE_HOST;
  size_t to_pitch = copy_->dstPitch ? copy_->dstPitch : copy_->WidthInBytes;
  size_t from_pitch = copy_->srcPitch ? copy_->srcPitch : copy_->WidthInBytes;
  return (CUresult)sim_copy_2d(corner(copy_->dstMemoryType, copy_->dstHost, copy_->dstDevice,
                                      to_pitch, copy_->dstXInBytes, copy_->dstY),
                               to_pitch,
                               corner(copy_->srcMemoryType, copy_->srcHost, copy_->srcDevice,
                                      from_pitch, copy_->srcXInBytes, copy_->srcY),
                               from_pitch, copy_->WidthInBytes, copy_->Height,
                               to_host ? from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost
                               : from_host ? cudaMemcpyHostToDevice
                                           : cudaMemcpyDeviceToDevice,
                               stream, own, wait);
}
TWINS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy_), copy_2d(copy_, NULL, own, true))
TWINS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy_), copy_2d(copy_, NULL, own, true))
TWINS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy_, CUstream stream),
      copy_2d(copy_, stream, own, false))

/* Only boxes without gaps between their layers: they are copied as one rectangle of all rows. */
static CUresult copy_3d(const CUDA_MEMCPY3D *box, CUstream stream, bool own, bool wait) {
  if (box->Depth > 1 && (box->srcHeight != box->Height || box->dstHeight != box->Height))
    return CUDA_ERROR_NOT_SUPPORTED;
  CUDA_MEMCPY2D rows = {.srcXInBytes = box->srcXInBytes,
                        .srcY = box->srcY + box->srcZ * box->srcHeight,
                        .srcMemoryType = box->srcMemoryType,
                        .srcHost = box->srcHost,
                        .srcDevice = box->srcDevice,
                        .srcPitch = box->srcPitch,
                        .dstXInBytes = box->dstXInBytes,
                        .dstY = box->dstY + box->dstZ * box->dstHeight,
                        .dstMemoryType = box->dstMemoryType,
                        .dstHost = box->dstHost,
                        .dstDevice = box->dstDevice,
                        .dstPitch = box->dstPitch,
                        .WidthInBytes = box->WidthInBytes,
                        .Height = box->Height * box->Depth};
  return copy_2d(&rows, stream, own, wait);
}
TWINS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *box), copy_3d(box, NULL, own, true))
TWINS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *box, CUstream stream),
      copy_3d(box, stream, own, false))

static CUresult copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes,
                           size_t count, CUstream stream, bool own) {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < count && !result; i++)
    result = copy(to[i], from[i], sizes[i], cudaMemcpyDefault, stream, own, false);
  return result;
}
TWINS(cuMemcpyBatchAsync_v2, _ptsz,
      (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count,
       CUmemcpyAttributes *attributes, size_t *firsts, size_t n_attributes, CUstream stream),
      ((void)attributes, (void)firsts, (void)n_attributes,
       copy_batch(to, from, sizes, count, stream, own)))

static CUresult fill(CUdeviceptr target, unsigned value, size_t unit, size_t count, CUstream stream,
                     bool own) {
  return (CUresult)sim_fill(at(target), value, unit, count, stream, own);
}
TWINS(cuMemsetD8_v2, _ptds, (CUdeviceptr target, unsigned char value, size_t n),
      fill(target, value, 1, n, NULL, own))
TWINS(cuMemsetD16_v2, _ptds, (CUdeviceptr target, unsigned short value, size_t n),
      fill(target, value, 2, n, NULL, own))
TWINS(cuMemsetD32_v2, _ptds, (CUdeviceptr target, unsigned value, size_t n),
      fill(target, value, 4, n, NULL, own))
TWINS(cuMemsetD8Async, _ptsz, (CUdeviceptr target, unsigned char value, size_t n, CUstream stream),
      fill(target, value, 1, n, stream, own))
TWINS(cuMemsetD16Async, _ptsz,
      (CUdeviceptr target, unsigned short value, size_t n, CUstream stream),
      fill(target, value, 2, n, stream, own))
TWINS(cuMemsetD32Async, _ptsz, (CUdeviceptr target, unsigned value, size_t n, CUstream stream),
      fill(target, value, 4, n, stream, own))

static CUresult fill_rows(CUdeviceptr target, size_t pitch, unsigned value, size_t unit,
                          size_t width, size_t height, CUstream stream, bool own) {
  if (pitch == unit * width) /* without gaps between rows it is one fill, as on the GPU */
    return fill(target, value, unit, width * height, stream, own);
  CUresult result = CUDA_SUCCESS;
  for (size_t row = 0; row < height && !result; row++)
    result = fill(target + row * pitch, value, unit, width, stream, own);
  return result;
}
#define FILL_ROWS(blocking, async, element, unit)                                                  \
  TWINS(blocking, _ptds,                                                                           \
        (CUdeviceptr target, size_t pitch, element value, size_t width, size_t height),            \
        fill_rows(target, pitch, value, unit, width, height, NULL, own))                           \
  TWINS(async, _ptsz,                                                                              \
        (CUdeviceptr target, size_t pitch, element value, size_t width, size_t height,             \
         CUstream stream),                                                                         \
        fill_rows(target, pitch, value, unit, width, height, stream, own))
FILL_ROWS(cuMemsetD2D8_v2, cuMemsetD2D8Async, unsigned char, 1)
FILL_ROWS(cuMemsetD2D16_v2, cuMemsetD2D16Async, unsigned short, 2)
FILL_ROWS(cuMemsetD2D32_v2, cuMemsetD2D32Async, unsigned, 4)
