/* SPDX-License-Identifier: MIT
 *
 * Device memory is host memory. A copy or fill changes the bytes when it ends on its stream.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "order.h"

enum { ALIGNMENT = 512, MAPPED = 1 << 20 /* from this size on, memory has its own mapping */ };
static const size_t device_bytes = (size_t)80 << 30;

struct allocation {
  const char *start;
  size_t bytes;
  enum cudaMemoryType type;
  int device;
  bool adopted; /* the caller's memory, which the caller frees */
};

static void *allocations;
static size_t in_use;

/* Two ranges compare equal if they overlap, so that a look-up finds the allocation around a
 * pointer.
 */
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

static void add_allocation(struct allocation *allocation) {
  tsearch(allocation, &allocations, compare);
  if (allocation->type == cudaMemoryTypeDevice)
    in_use += allocation->bytes;
}

/* Memory of zeros: no kernel really writes to it, and a program must compute the same from it in
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

cudaError_t sim_allocate(void **pointer, size_t bytes, enum cudaMemoryType type) {
  if (!pointer)
    return cudaErrorInvalidValue;
  *pointer = NULL;
  if (!sim_usable())
    return cudaErrorInitializationError;
  if (!bytes)
    return cudaSuccess;
  size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  cudaError_t error = cudaErrorMemoryAllocation;
  sim_lock();
  bool fits = type != cudaMemoryTypeDevice || rounded <= device_bytes - in_use;
  struct allocation *allocation = malloc(sizeof(*allocation));
  void *memory = fits ? memory_new(rounded) : NULL;
  if (allocation && memory) {
    *allocation = (struct allocation){memory, rounded, type, *sim_device(), false};
    add_allocation(allocation);
    *pointer = memory;
    error = cudaSuccess;
  } else {
    free(allocation);
    memory_free(memory, rounded);
  }
  sim_unlock();
  return error;
}

cudaError_t sim_adopt(void *pointer, size_t bytes, enum cudaMemoryType type) {
  struct allocation *allocation = malloc(sizeof(*allocation));
  if (!allocation)
    return cudaErrorMemoryAllocation;
  *allocation = (struct allocation){pointer, bytes, type, *sim_device(), true};
  sim_lock();
  add_allocation(allocation);
  sim_unlock();
  return cudaSuccess;
}

/* The caller holds the lock. */
static cudaError_t free_allocation(void *pointer) {
  struct allocation *allocation = find(pointer);
  if (!allocation || allocation->start != pointer)
    return cudaErrorInvalidValue;
  tdelete(allocation, &allocations, compare);
  if (allocation->type == cudaMemoryTypeDevice)
    in_use -= allocation->bytes;
  if (!allocation->adopted)
    memory_free(pointer, allocation->bytes);
  free(allocation);
  return cudaSuccess;
}

cudaError_t sim_release(void *pointer) {
  if (!pointer)
    return cudaSuccess;
  sim_lock();
  sim_wait_all(-1);
  cudaError_t error = free_allocation(pointer);
  sim_unlock();
  return error;
}

cudaError_t sim_disown(void *pointer) {
  return sim_release(pointer);
}

static bool finish_free(struct sim_op *op) {
  free_allocation(op->target);
  return true;
}

cudaError_t sim_release_async(void *pointer, cudaStream_t stream, bool own) {
  static const struct sim_work work = {.finish = finish_free};
  if (sim_memory_at(pointer).type == cudaMemoryTypeUnregistered)
    return cudaErrorInvalidValue;
  struct order order = {.kind = SIM_WAIT, .work = &work, .target = pointer};
  return sim_submit(stream, own, &order, false);
}

struct sim_memory sim_memory_at(const void *pointer) {
  struct sim_memory memory = {.type = cudaMemoryTypeUnregistered, .device = -2};
  sim_lock();
  const struct allocation *found = find(pointer);
  if (found)
    memory = (struct sim_memory){(void *)found->start, found->bytes, found->type, found->device};
  sim_unlock();
  return memory;
}

void sim_memory_info(size_t *available, size_t *total) {
  sim_lock();
  *available = device_bytes - in_use;
  *total = device_bytes;
  sim_unlock();
}

static bool on_device(const void *pointer) {
  enum cudaMemoryType type = sim_memory_at(pointer).type;
  return type == cudaMemoryTypeDevice || type == cudaMemoryTypeManaged;
}

static enum cudaMemcpyKind direction(const void *target, const void *source,
                                     enum cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDefault)
    return kind;
  bool to = on_device(target), from = on_device(source);
  return to     ? from ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
         : from ? cudaMemcpyDeviceToHost
                : cudaMemcpyHostToHost;
}

/* A copy between device addresses is 64 times as fast as one over the host link. */
static int64_t copy_ns(size_t bytes, unsigned kind) {
  double bytes_per_ns =
      sim_settings.pcie_bytes_per_ns * (kind == cudaMemcpyDeviceToDevice ? 64 : 1);
  return sim_settings.copy_latency_ns + (int64_t)((double)bytes / bytes_per_ns);
}

static bool finish_copy(struct sim_op *op) {
  memmove(op->target, op->source, op->bytes);
  return true;
}

cudaError_t sim_copy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
                     cudaStream_t stream, bool own, bool wait) {
  static const struct sim_work work = {.finish = finish_copy};
  if (!bytes)
    return cudaSuccess;
  if (!target || !source)
    return cudaErrorInvalidValue;
  bool peer = (unsigned)kind == SIM_PEER;
  kind = direction(target, source, peer ? cudaMemcpyDeviceToDevice : kind);
  struct order order = {.kind = SIM_COPY,
                        .work = &work,
                        .duration = copy_ns(bytes, kind),
                        .bytes = bytes,
                        .copy_kind = peer ? (unsigned)SIM_PEER : kind,
                        .source = source,
                        .target = target};
  return sim_submit(stream, own, &order, wait);
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

static void *copy_rectangle(const void *shape) {
  struct rectangle *copy = malloc(sizeof(*copy));
  return copy ? memcpy(copy, shape, sizeof(*copy)) : NULL;
}

cudaError_t sim_copy_2d(void *target, size_t target_pitch, const void *source, size_t source_pitch,
                        size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream,
                        bool own, bool wait) {
  static const struct sim_work work = {.finish = finish_rectangle, .drop = drop_rectangle};
  if (width > target_pitch || width > source_pitch)
    return cudaErrorInvalidPitchValue;
  struct rectangle *shape = malloc(sizeof(*shape));
  if (!shape)
    return cudaErrorMemoryAllocation;
  *shape = (struct rectangle){target_pitch, source_pitch, width, height};
  kind = direction(target, source, kind);
  struct order order = {.kind = SIM_COPY,
                        .work = &work,
                        .duration = copy_ns(width * height, kind),
                        .bytes = width * height,
                        .copy_kind = kind,
                        .source = source,
                        .target = target,
                        .user = shape,
                        .copy_user = copy_rectangle};
  return sim_submit(stream, own, &order, wait);
}

static bool finish_fill(struct sim_op *op) {
  memset(op->target, op->value, op->bytes);
  return true;
}

static bool finish_fill_16(struct sim_op *op) {
  for (size_t i = 0; i < op->bytes / 2; i++)
    ((uint16_t *)op->target)[i] = (uint16_t)op->value;
  return true;
}

static bool finish_fill_32(struct sim_op *op) {
  for (size_t i = 0; i < op->bytes / 4; i++)
    ((uint32_t *)op->target)[i] = (uint32_t)op->value;
  return true;
}

/* Does not wait for the fill, as with CUDA. */
cudaError_t sim_fill(void *target, unsigned value, size_t unit, size_t count, cudaStream_t stream,
                     bool own) {
  static const struct sim_work work[] = {[1] = {.finish = finish_fill},
                                         [2] = {.finish = finish_fill_16},
                                         [4] = {.finish = finish_fill_32}};
  if (!count)
    return cudaSuccess;
  if (!target)
    return cudaErrorInvalidValue;
  struct order order = {.kind = SIM_FILL,
                        .work = &work[unit],
                        .duration = copy_ns(unit * count, cudaMemcpyDeviceToDevice),
                        .bytes = unit * count,
                        .value = (int)value,
                        .target = target};
  return sim_submit(stream, own, &order, false);
}
