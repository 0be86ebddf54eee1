/* SPDX-License-Identifier: MIT
 *
 * Device memory is host memory. Copies and fills really happen, on their stream, when they end.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cudart.h"

enum { ALIGNMENT = 512, MAPPED = 1 << 20 /* as large as this, memory is a mapping of its own */ };
static const size_t device_bytes = (size_t)80 << 30;

struct allocation {
  const char *start;
  size_t bytes;
  enum cudaMemoryType type;
  int device;
};

static void *allocations;
static size_t in_use;

/* Two ranges compare equal when they touch, so that a look-up finds what a pointer is inside. */
static int compare(const void *left, const void *right) {
  const struct allocation *a = left, *b = right;
  if (a->start + a->bytes <= b->start)
    return -1;
  return b->start + b->bytes <= a->start;
}

static struct allocation *find(const void *pointer) {
  struct allocation wanted = {.start = pointer, .bytes = 1};
  void *found = tfind(&wanted, &allocations, compare);
  return found ? *(struct allocation **)found : NULL;
}

/* Zeros, so that what a program computes from memory that no kernel really wrote is the same in
 * every run. */
static void *memory_new(size_t bytes) {
  if (bytes >= MAPPED) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
  }
  void *memory = aligned_alloc(ALIGNMENT, bytes);
  return memory ? memset(memory, 0, bytes) : NULL;
}

static void memory_free(void *memory, size_t bytes) {
  if (memory && bytes >= MAPPED)
    munmap(memory, bytes);
  else
    free(memory);
}

static cudaError_t allocate(void **pointer, size_t bytes, enum cudaMemoryType type) {
  if (!pointer)
    return remember(cudaErrorInvalidValue);
  *pointer = NULL;
  if (!sim_usable())
    return remember(cudaErrorInitializationError);
  if (!bytes)
    return cudaSuccess;
  size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  cudaError_t error = cudaErrorMemoryAllocation;
  sim_lock();
  bool fits = type != cudaMemoryTypeDevice || rounded <= device_bytes - in_use;
  struct allocation *allocation = malloc(sizeof *allocation);
  void *memory = fits ? memory_new(rounded) : NULL;
  if (allocation && memory) {
    *allocation = (struct allocation){memory, rounded, type, *sim_device()};
    tsearch(allocation, &allocations, compare);
    if (type == cudaMemoryTypeDevice)
      in_use += rounded;
    *pointer = memory;
    error = cudaSuccess;
  } else {
    free(allocation);
    memory_free(memory, rounded);
  }
  sim_unlock();
  return remember(error);
}

/* The lock is held. */
static cudaError_t let_go(void *pointer) {
  struct allocation *allocation = find(pointer);
  if (!allocation || allocation->start != pointer)
    return cudaErrorInvalidValue;
  tdelete(allocation, &allocations, compare);
  if (allocation->type == cudaMemoryTypeDevice)
    in_use -= allocation->bytes;
  memory_free(pointer, allocation->bytes);
  free(allocation);
  return cudaSuccess;
}

static cudaError_t release(void *pointer) {
  if (!pointer)
    return cudaSuccess;
  sim_lock();
  sim_wait_all(-1);
  cudaError_t error = let_go(pointer);
  sim_unlock();
  return remember(error);
}

cudaError_t CUDART_API cudaMalloc(void **pointer, size_t bytes) {
  return allocate(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t CUDART_API cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t CUDART_API cudaMallocHost(void **pointer, size_t bytes) {
  return allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t CUDART_API cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t CUDART_API cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return allocate(pointer, *pitch * height, cudaMemoryTypeDevice);
}

cudaError_t CUDART_API cudaFree(void *pointer) {
  return release(pointer);
}
cudaError_t CUDART_API cudaFreeHost(void *pointer) {
  return release(pointer);
}

TWINS(cudaMallocAsync, _ptsz, (void **pointer, size_t bytes, cudaStream_t stream),
      ((void)stream, (void)own, allocate(pointer, bytes, cudaMemoryTypeDevice)))
TWINS(cudaMallocFromPoolAsync, _ptsz,
      (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
      ((void)pool, (void)stream, (void)own, allocate(pointer, bytes, cudaMemoryTypeDevice)))

static bool finish_free(struct sim_op *op) {
  let_go(op->target);
  return true;
}

static cudaError_t free_async(void *pointer, cudaStream_t stream, bool own) {
  static const struct sim_work work = {.finish = finish_free};
  sim_lock();
  struct allocation *allocation = find(pointer);
  sim_unlock();
  if (!allocation)
    return remember(cudaErrorInvalidValue);
  struct order order = {.kind = SIM_WAIT, .work = &work, .target = pointer};
  return submit(stream, own, &order, false);
}
TWINS(cudaFreeAsync, _ptsz, (void *pointer, cudaStream_t stream), free_async(pointer, stream, own))

static bool finish_copy(struct sim_op *op) {
  memmove(op->target, op->source, op->bytes);
  return true;
}

static bool on_device(const void *pointer) {
  const struct allocation *allocation = find(pointer);
  return allocation && allocation->type != cudaMemoryTypeHost;
}

static enum cudaMemcpyKind direction(const void *target, const void *source,
                                     enum cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDefault)
    return kind;
  sim_lock();
  bool to = on_device(target), from = on_device(source);
  sim_unlock();
  return to     ? from ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
         : from ? cudaMemcpyDeviceToHost
                : cudaMemcpyHostToHost;
}

/* Between device addresses a copy runs at 64 times the speed of the host link. */
static int64_t copy_ns(size_t bytes, unsigned kind) {
  double bytes_per_ns =
      sim_settings.pcie_bytes_per_ns * (kind == cudaMemcpyDeviceToDevice ? 64 : 1);
  return sim_settings.copy_latency_ns + (int64_t)((double)bytes / bytes_per_ns);
}

static cudaError_t copy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
                        cudaStream_t stream, bool own, bool wait) {
  static const struct sim_work work = {.finish = finish_copy};
  if (!bytes)
    return cudaSuccess;
  if (!target || !source)
    return remember(cudaErrorInvalidValue);
  kind = direction(target, source, kind);
  struct order order = {.kind = SIM_COPY,
                        .work = &work,
                        .duration = copy_ns(bytes, kind),
                        .bytes = bytes,
                        .copy_kind = kind,
                        .source = source,
                        .target = target};
  return submit(stream, own, &order, wait);
}

TWINS(cudaMemcpy, _ptds, (void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind),
      copy(target, source, bytes, kind, NULL, own, true))
TWINS(cudaMemcpyAsync, _ptsz,
      (void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
       cudaStream_t stream),
      copy(target, source, bytes, kind, stream, own, false))

cudaError_t CUDART_API cudaMemcpyPeer(void *target, int to, const void *source, int from,
                                      size_t bytes) {
  (void)to, (void)from;
  return copy(target, source, bytes, cudaMemcpyDeviceToDevice, NULL, false, true);
}

cudaError_t CUDART_API cudaMemcpyPeerAsync(void *target, int to, const void *source, int from,
                                           size_t bytes, cudaStream_t stream) {
  (void)to, (void)from;
  return copy(target, source, bytes, cudaMemcpyDeviceToDevice, stream, false, false);
}

struct rectangle {
  size_t target_pitch, source_pitch, width, height;
};

static bool finish_rectangle(struct sim_op *op) {
  const struct rectangle *shape = op->user;
  for (size_t row = 0; row < shape->height; row++)
    memmove((char *)op->target + row * shape->target_pitch,
            (const char *)op->source + row * shape->source_pitch, shape->width);
  return true;
}

static void drop_rectangle(struct sim_op *op) {
  free(op->user);
}

static cudaError_t copy_2d(void *target, size_t target_pitch, const void *source,
                           size_t source_pitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool wait) {
  static const struct sim_work work = {.finish = finish_rectangle, .drop = drop_rectangle};
  if (width > target_pitch || width > source_pitch)
    return remember(cudaErrorInvalidPitchValue);
  struct rectangle *shape = malloc(sizeof *shape);
  if (!shape)
    return remember(cudaErrorMemoryAllocation);
  *shape = (struct rectangle){target_pitch, source_pitch, width, height};
  kind = direction(target, source, kind);
  struct order order = {.kind = SIM_COPY,
                        .work = &work,
                        .duration = copy_ns(width * height, kind),
                        .bytes = width * height,
                        .copy_kind = kind,
                        .source = source,
                        .target = target,
                        .user = shape};
  return submit(stream, own, &order, wait);
}
TWINS(cudaMemcpy2D, _ptds,
      (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
       size_t height, enum cudaMemcpyKind kind),
      copy_2d(target, target_pitch, source, source_pitch, width, height, kind, NULL, own, true))
TWINS(cudaMemcpy2DAsync, _ptsz,
      (void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
       size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
      copy_2d(target, target_pitch, source, source_pitch, width, height, kind, stream, own, false))

static bool finish_fill(struct sim_op *op) {
  memset(op->target, op->value, op->bytes);
  return true;
}

/* A fill from the host returns at once, as with CUDA. */
static cudaError_t fill(void *target, int value, size_t bytes, cudaStream_t stream, bool own) {
  static const struct sim_work work = {.finish = finish_fill};
  if (!bytes)
    return cudaSuccess;
  if (!target)
    return remember(cudaErrorInvalidValue);
  struct order order = {.kind = SIM_FILL,
                        .work = &work,
                        .duration = copy_ns(bytes, cudaMemcpyDeviceToDevice),
                        .bytes = bytes,
                        .value = value,
                        .target = target};
  return submit(stream, own, &order, false);
}
TWINS(cudaMemset, _ptds, (void *target, int value, size_t bytes),
      fill(target, value, bytes, NULL, own))
TWINS(cudaMemsetAsync, _ptsz, (void *target, int value, size_t bytes, cudaStream_t stream),
      fill(target, value, bytes, stream, own))

cudaError_t CUDART_API cudaMemGetInfo(size_t *available, size_t *total) {
  sim_lock();
  *available = device_bytes - in_use;
  *total = device_bytes;
  sim_unlock();
  return cudaSuccess;
}

cudaError_t CUDART_API cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                                const void *pointer) {
  memset(attributes, 0, sizeof *attributes);
  sim_lock();
  const struct allocation *allocation = find(pointer);
  attributes->type = allocation ? allocation->type : cudaMemoryTypeUnregistered;
  attributes->device = allocation ? allocation->device : -2;
  sim_unlock();
  attributes->hostPointer = (void *)pointer;
  if (attributes->type != cudaMemoryTypeUnregistered)
    attributes->devicePointer = (void *)pointer;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
  (void)pointer, (void)bytes, (void)flags;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaHostUnregister(void *pointer) {
  (void)pointer;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  (void)flags;
  *device = host;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes,
                                          size_t offset, enum cudaMemcpyKind kind) {
  void *address = NULL;
  cudaError_t error = cudaGetSymbolAddress(&address, symbol);
  return error ? error : copy((char *)address + offset, source, bytes, kind, NULL, false, true);
}
