/* SPDX-License-Identifier: MIT
 *
 * What is recorded about each kind of CUDA runtime call: the recorders that cuda_hooks.def names.
 * They run after the real call, on the job's thread, and take the arguments that the line of the
 * table gives; see hooks/wrapper.h. A call that failed did nothing on the GPU and is not recorded.
 * There are two exceptions: failed allocations, which matter, and the first failures of any call,
 * which may be the reason why the run ends.
 */
#pragma once

#include "callsites/call_sites.h"
#include "cuda/gpu_facts.h"
#include "cuda/graphs/captured_kernels.h"
#include "cuda/graphs/graph_record.h"
#include "cuda/launch_shapes.h"
#include "cuda/out_of_memory.h"
#include "cuda/ring_record.h"
#include "gpu/gpu_clock.h"
#include "streams/stream_numbers.h"

/* Notes a call that failed. "Not ready" is not a failure. */
static inline void record_failure(struct tscope_thread *thread, const char *what,
                                  cudaError_t result) {
  if (TSCOPE_UNLIKELY(result != cudaSuccess && result != cudaErrorNotReady))
    tscope_failed_call(thread, TSCOPE_FAILED_CUDA, what, (i32)result);
}

/* Launches are the most frequent calls: their recorders leave nothing to the compiler. */
#define HOT __attribute__((always_inline)) static inline

/* launch: every kernel launch that says grid, block and stream. `function` may be a host function
 * or a kernel handle. */
enum { launch_wakes = TSCOPE_WAKES };
HOT void record_launch(struct tscope_thread *thread, u64 start, cudaError_t result,
                       enum tscope_default_stream default_stream, const void *function, dim3 grid,
                       dim3 block, cudaStream_t stream) {
  u64 dur = tscope_elapsed(thread, start);
  if (TSCOPE_UNLIKELY(result != cudaSuccess)) {
    record_failure(thread, "a kernel launch", result);
    return;
  }
  if (graph_captured(default_stream, stream, GRAPH_KERNEL)) {
    captured_kernels_add(thread, function, grid, block);
    return;
  }
  u64 key = shape_key(function, grid, block); /* before the call: it needs all registers */
  u16 index = stream_index(thread, default_stream, stream); /* forgets what is stale */
  u32 shape = shape_number(thread, key, function, grid, block);
  call_site(thread, &thread->ring, start, CALL_SITE_SAMPLED);
  RING(LAUNCH, launch, start, dur, index, .shape = shape);
}

/* launch_config: the same, given in a struct that is only read after the real function accepted
 * it. */
enum { launch_config_wakes = TSCOPE_WAKES };
HOT void record_launch_config(struct tscope_thread *thread, u64 start, cudaError_t result,
                              enum tscope_default_stream default_stream,
                              const cudaLaunchConfig_t *config, const void *function) {
  if (TSCOPE_LIKELY(result == cudaSuccess))
    record_launch(thread, start, result, default_stream, function, config->gridDim,
                  config->blockDim, config->stream);
  else
    record_failure(thread, "a kernel launch", result);
}

/* alloc_device, alloc_async, alloc_host: memory obtained; `where` now holds its address. */
RECORDER(alloc_host, QUIET, enum tscope_memory memory, void *const *where, u64 bytes) {
  u64 dur = tscope_elapsed(thread, start);
  u64 address = result == cudaSuccess ? (u64)(uintptr_t)*where : 0;
  call_site(thread, &thread->ring, start, CALL_SITE_ALWAYS);
  RING(ALLOC, alloc, start, dur, (u16)memory, .result = (u32)result, .address = address,
       .bytes = bytes);
  if (TSCOPE_UNLIKELY(result == cudaErrorMemoryAllocation))
    out_of_memory(thread, start, memory, bytes);
}
RECORDER(alloc_device, WAKES, enum tscope_memory memory, void *const *where, u64 bytes) {
  record_alloc_host(thread, start, result, memory, where, bytes);
  if (result == cudaSuccess)
    gpu_facts_record_once(thread);
}
STREAM_RECORDER(alloc_async, WAKES, void *const *where, u64 bytes, cudaStream_t stream) {
  (void)default_stream, (void)stream;
  record_alloc_device(thread, start, result, TSCOPE_MEMORY_DEVICE_ASYNC, where, bytes);
}

/* alloc_pitch: as many rows, as long as the call says. */
RECORDER(alloc_pitch, WAKES, void *const *where, const size_t *pitch, size_t rows) {
  u64 bytes = result == cudaSuccess ? (u64)*pitch * rows : 0;
  record_alloc_device(thread, start, result, TSCOPE_MEMORY_DEVICE, where, bytes);
}

/* alloc_array: the size of its elements; how the device lays them out is not known. */
RECORDER(alloc_array, WAKES, cudaArray_t *where, const struct cudaChannelFormatDesc *format,
         u64 width, u64 height, u64 depth) {
  u64 elements = width * (height ? height : 1) * (depth ? depth : 1);
  u64 size = 1;
  if (result == cudaSuccess)
    size = (u64)(format->x + format->y + format->z + format->w) / 8;
  record_alloc_device(thread, start, result, TSCOPE_MEMORY_ARRAY, (void *const *)where,
                      elements * size);
}

/* release, release_async: memory freed. Freeing NULL is a usual way to initialise CUDA. */
RECORDER(release, QUIET, enum tscope_memory memory, const void *address) {
  u64 dur = tscope_elapsed(thread, start);
  if (address)
    RING(FREE, free, start, dur, (u16)memory, .result = (u32)result,
         .address = (u64)(uintptr_t)address);
}
STREAM_RECORDER(release_async, QUIET, const void *address, cudaStream_t stream) {
  (void)default_stream, (void)stream;
  record_release(thread, start, result, TSCOPE_MEMORY_DEVICE_ASYNC, address);
}

/* memcpy, memcpy_peer, memset: bytes moved or set; `async` is TSCOPE_MEMCPY_ASYNC or 0. */
static inline u32 memcpy_direction(enum cudaMemcpyKind kind) {
  static const u8 directions[] = {[cudaMemcpyHostToHost] = TSCOPE_MEMCPY_H2H,
                                  [cudaMemcpyHostToDevice] = TSCOPE_MEMCPY_H2D,
                                  [cudaMemcpyDeviceToHost] = TSCOPE_MEMCPY_D2H,
                                  [cudaMemcpyDeviceToDevice] = TSCOPE_MEMCPY_D2D};
  return (unsigned)kind < sizeof(directions) ? directions[kind] : TSCOPE_MEMCPY_UNKNOWN;
}
/* `kind` as MEMCPY records have it. */
static inline void record_any_memcpy(struct tscope_thread *thread, u64 start, cudaError_t result,
                                     enum tscope_default_stream default_stream, u32 kind, u64 bytes,
                                     cudaStream_t stream) {
  u64 dur = tscope_elapsed(thread, start);
  record_failure(thread, "a copy", result);
  if (result != cudaSuccess || graph_captured(default_stream, stream, GRAPH_MEMCPY))
    return;
  u16 index = stream_index(thread, default_stream, stream);
  if (!(kind & TSCOPE_MEMCPY_ASYNC))
    call_site(thread, &thread->ring, start, CALL_SITE_ALWAYS);
  RING(MEMCPY, memcpy, start, dur, index, .kind = kind, .bytes = bytes);
}
STREAM_RECORDER(memcpy, QUIET, enum cudaMemcpyKind kind, size_t bytes, u32 async,
                cudaStream_t stream) {
  record_any_memcpy(thread, start, result, default_stream, memcpy_direction(kind) | async, bytes,
                    stream);
}
STREAM_RECORDER(memcpy_peer, QUIET, size_t bytes, u32 async, cudaStream_t stream) {
  record_any_memcpy(thread, start, result, default_stream, TSCOPE_MEMCPY_P2P | async, bytes,
                    stream);
}
STREAM_RECORDER(memset, QUIET, size_t bytes, u32 async, cudaStream_t stream) {
  u64 dur = tscope_elapsed(thread, start);
  if (result != cudaSuccess || graph_captured(default_stream, stream, GRAPH_MEMSET))
    return;
  u16 index = stream_index(thread, default_stream, stream);
  RING(MEMSET, memset, start, dur, index, .kind = async, .bytes = bytes);
}

/* memcpy_3d, memcpy_3d_peer: given in a struct that is only read after the real function accepted
 * it. If an array takes part, the width is in elements of the array, so the number of bytes is not
 * known. */
static inline u64 memcpy_3d_bytes(struct cudaExtent extent, bool has_array) {
  return has_array ? 0 : (u64)extent.width * extent.height * extent.depth;
}

/* The recorder of a copy that is given in a struct; `copy` points at it. */
#define MEMCPY_BY_STRUCT(recorder, parameters, direction, bytes_)                                  \
  STREAM_RECORDER(recorder, QUIET, const parameters *copy, u32 async, cudaStream_t stream) {       \
    if (result == cudaSuccess)                                                                     \
      record_any_memcpy(thread, start, result, default_stream, (direction) | async, (bytes_),      \
                        stream);                                                                   \
  }
MEMCPY_BY_STRUCT(memcpy_3d, struct cudaMemcpy3DParms, memcpy_direction(copy->kind),
                 memcpy_3d_bytes(copy->extent, copy->srcArray || copy->dstArray))
MEMCPY_BY_STRUCT(memcpy_3d_peer, struct cudaMemcpy3DPeerParms, TSCOPE_MEMCPY_P2P,
                 memcpy_3d_bytes(copy->extent, copy->srcArray || copy->dstArray))

/* memcpy_batch, memcpy_3d_batch: many copies in one call, whose directions may differ: one record
 * of all. The sizes are only read after the real function accepted them. */
static inline u64 batch_bytes(cudaError_t result, const size_t *sizes, size_t copies) {
  u64 bytes = 0;
  for (size_t i = 0; result == cudaSuccess && i < copies; i++)
    bytes += sizes[i];
  return bytes;
}
STREAM_RECORDER(memcpy_batch, QUIET, const size_t *sizes, size_t copies, cudaStream_t stream) {
  record_any_memcpy(thread, start, result, default_stream,
                    TSCOPE_MEMCPY_UNKNOWN | TSCOPE_MEMCPY_ASYNC, batch_bytes(result, sizes, copies),
                    stream);
}
/* The structs of the runtime and of the driver are the same. Headers before CUDA 12.8 do not have
 * them: then the number of bytes is not known. */
static inline u64 memcpy_3d_batch_bytes(const void *copies, size_t n) {
  u64 bytes = 0;
#if CUDART_VERSION >= 12080
  const struct cudaMemcpy3DBatchOp *copy = copies;
  for (size_t i = 0; i < n; i++)
    bytes += memcpy_3d_bytes(copy[i].extent, copy[i].src.type == cudaMemcpyOperandTypeArray ||
                                                 copy[i].dst.type == cudaMemcpyOperandTypeArray);
#else
  (void)copies, (void)n;
#endif
  return bytes;
}
STREAM_RECORDER(memcpy_3d_batch, QUIET, const void *copies, size_t n, cudaStream_t stream) {
  record_any_memcpy(thread, start, result, default_stream,
                    TSCOPE_MEMCPY_UNKNOWN | TSCOPE_MEMCPY_ASYNC,
                    result == cudaSuccess ? memcpy_3d_batch_bytes(copies, n) : 0, stream);
}

/* prefetch, prefetch_batch: managed memory is to be moved somewhere; what is already there is not
 * moved. */
STREAM_RECORDER(prefetch, QUIET, size_t bytes, cudaStream_t stream) {
  record_any_memcpy(thread, start, result, default_stream,
                    TSCOPE_MEMCPY_PREFETCH | TSCOPE_MEMCPY_ASYNC, bytes, stream);
}
STREAM_RECORDER(prefetch_batch, QUIET, const size_t *sizes, size_t ranges, cudaStream_t stream) {
  record_prefetch(thread, start, result, default_stream, batch_bytes(result, sizes, ranges),
                  stream);
}

/* host_function: the stream's work waits while a host function runs. */
STREAM_RECORDER(host_function, QUIET, const void *function, cudaStream_t stream) {
  u64 dur = tscope_elapsed(thread, start);
  if (result != cudaSuccess || graph_captured(default_stream, stream, GRAPH_MARK))
    return;
  u16 index = stream_index(thread, default_stream, stream);
  RING(HOST_FUNCTION, host_function, start, dur, index, .function = (u64)(uintptr_t)function);
}

/* sync_device, sync_stream, sync_event: the host waited for the GPU. Recorded even if the wait
 * ended with an error, because the time has passed. */
static inline u32 event_bits(cudaEvent_t event) {
  return (u32)((uintptr_t)event >> 4);
}
RECORDER(sync_device, QUIET) {
  u64 dur = tscope_elapsed(thread, start);
  record_failure(thread, "waiting for the device", result);
  call_site(thread, &thread->ring, start, CALL_SITE_ALWAYS);
  RING(SYNC, sync, start, dur, TSCOPE_SYNC_DEVICE, .object = 0);
}
STREAM_RECORDER(sync_stream, QUIET, cudaStream_t stream) {
  record_failure(thread, "waiting for a stream", result);
  u64 dur = tscope_elapsed(thread, start);
  u16 index =
      result == cudaSuccess ? stream_index(thread, default_stream, stream) : TSCOPE_NO_STREAM;
  call_site(thread, &thread->ring, start, CALL_SITE_ALWAYS);
  RING(SYNC, sync, start, dur, TSCOPE_SYNC_STREAM, .object = index);
}
RECORDER(sync_event, QUIET, cudaEvent_t event) {
  u64 dur = tscope_elapsed(thread, start);
  record_failure(thread, "waiting for an event", result);
  call_site(thread, &thread->ring, start, CALL_SITE_ALWAYS);
  RING(SYNC, sync, start, dur, TSCOPE_SYNC_EVENT, .object = event_bits(event));
}

/* query_event, query_stream: a thread that asks for the same until it is over, and does nothing
 * else that is recorded, waits for it. Now and then a program asks whether it may reuse something:
 * so it must have asked often, and not rarely. It may ask for several in turn. */
static inline struct polled *find_polled(struct cuda_thread *cuda, u64 object) {
  struct polled *oldest = cuda->polled;
  for (struct polled *one = cuda->polled; one < cuda->polled + POLLED_AT_ONCE; one++) {
    if (one->object == object)
      return one;
    oldest = one->last < oldest->last ? one : oldest;
  }
  *oldest = (struct polled){.object = object};
  return oldest;
}
static inline bool was_polled_until(struct tscope_thread *thread, u64 object, u64 start,
                                    cudaError_t result, u64 *begin) {
  enum { TIMES = 3 };
  const u64 rarely = 1 << 22; /* units of 4 to 8 ns */
  struct polled *polled = find_polled(cuda_thread(thread), object);
  bool again = polled->times && polled->ring == thread->ring.cursor &&
               polled->retained == thread->retained.cursor &&
               start - polled->last < rarely << thread->tick_shift;
  *begin = polled->begin;
  u32 times = again ? polled->times : 0;
  if (result == cudaErrorNotReady)
    *polled = (struct polled){.object = object,
                              .begin = again ? *begin : start,
                              .last = start,
                              .ring = thread->ring.cursor,
                              .retained = thread->retained.cursor,
                              .times = times + 1};
  else
    *polled = (struct polled){0};
  return result != cudaErrorNotReady && times >= TIMES;
}
/* What a thread asks for besides, it waits for from the end of this wait on: its waits do not
 * overlap. */
static inline void go_on_polling(struct tscope_thread *thread, const u8 *ring, const u8 *retained) {
  struct cuda_thread *cuda = cuda_thread(thread);
  u64 now = tscope_ticks();
  for (struct polled *one = cuda->polled; one < cuda->polled + POLLED_AT_ONCE; one++) {
    if (one->ring != ring || one->retained != retained)
      continue;
    one->begin = now;
    one->ring = thread->ring.cursor;
    one->retained = thread->retained.cursor;
  }
}
RECORDER(query_event, QUIET, cudaEvent_t event) {
  const u8 *ring = thread->ring.cursor, *retained = thread->retained.cursor;
  u64 begin;
  if (was_polled_until(thread, (u64)(uintptr_t)event, start, result, &begin)) {
    record_sync_event(thread, begin, result, event);
    go_on_polling(thread, ring, retained);
  }
}
STREAM_RECORDER(query_stream, QUIET, cudaStream_t stream) {
  const u8 *ring = thread->ring.cursor, *retained = thread->retained.cursor;
  u64 begin, object = (u64)(uintptr_t)stream ^ ~(u64)default_stream;
  if (was_polled_until(thread, object, start, result, &begin)) {
    record_sync_stream(thread, begin, result, default_stream, stream);
    go_on_polling(thread, ring, retained);
  }
}

/* event_record, event_wait: the edges between streams. */
STREAM_RECORDER(event_record, QUIET, cudaEvent_t event, cudaStream_t stream) {
  u64 dur = tscope_elapsed(thread, start);
  if (result != cudaSuccess || graph_captured(default_stream, stream, GRAPH_MARK))
    return;
  u16 index = stream_index(thread, default_stream, stream);
  RING(EVENT_RECORD, event_record, start, dur, index, .event = event_bits(event));
}
STREAM_RECORDER(event_wait, QUIET, cudaEvent_t event, cudaStream_t stream) {
  u64 dur = tscope_elapsed(thread, start);
  if (result != cudaSuccess || graph_captured(default_stream, stream, GRAPH_MARK))
    return;
  u16 index = stream_index(thread, default_stream, stream);
  RING(EVENT_WAIT, event_wait, start, dur, index, .event = event_bits(event));
}
