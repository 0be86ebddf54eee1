/* SPDX-License-Identifier: MIT
 *
 * What is recorded of each kind of CUDA runtime call: the recorders that cuda_hooks.def names. They
 * run around the real call, on the job's thread; see core/wrapper.h for their shape. A call that
 * failed did nothing on the GPU and is not recorded, but for allocations, where failing matters.
 */
#ifndef TSCOPE_CUDA_RECORD_H
#define TSCOPE_CUDA_RECORD_H

#include "cuda/gpu_facts.h"
#include "cuda/graphs/captured_kernels.h"
#include "cuda/graphs/graph_record.h"
#include "cuda/launch_shapes.h"
#include "cuda/out_of_memory.h"
#include "cuda/ring_record.h"
#include "cuda/stream_numbers.h"
#include "gpu/gpu_clock.h"

/* Launches are the calls that there are most of: their recorders leave nothing to the compiler. */
#define HOT __attribute__((always_inline)) static inline

/* launch: every kernel launch that says grid, block and stream. `function` may be a host function
 * or a kernel handle. */
enum { launch_wakes = TSCOPE_WAKES };
struct launch_call {
  u64 start;
  const void *function;
  dim3 grid, block;
  cudaStream_t stream;
  enum tscope_default_stream default_stream;
};
HOT struct launch_call launch_begin(struct tscope_thread *thread,
                                    enum tscope_default_stream default_stream, const void *function,
                                    dim3 grid, dim3 block, cudaStream_t stream) {
  gpu_clock_start_once(thread);
  return (struct launch_call){tscope_ticks(), function, grid, block, stream, default_stream};
}
HOT void launch_end(struct tscope_thread *thread, const struct launch_call *call,
                    cudaError_t result) {
  u64 dur = elapsed(thread, call->start);
  if (TSCOPE_UNLIKELY(result != cudaSuccess))
    return;
  if (graph_captured(call->default_stream, call->stream, GRAPH_KERNEL)) {
    captured_kernels_note(thread, call->function, call->grid, call->block);
    return;
  }
  u32 shape = shape_number(thread, call->function, call->grid, call->block);
  u16 stream = stream_index(thread, call->default_stream, call->stream);
  DETAIL(LAUNCH, launch, call->start, dur, stream, .shape = shape);
}

/* launch_config: the same, said in a struct that is only read once the real function took it. */
enum { launch_config_wakes = TSCOPE_WAKES };
struct launch_config_call {
  u64 start;
  const cudaLaunchConfig_t *config;
  const void *function;
  enum tscope_default_stream default_stream;
};
HOT struct launch_config_call launch_config_begin(struct tscope_thread *thread,
                                                  enum tscope_default_stream default_stream,
                                                  const cudaLaunchConfig_t *config,
                                                  const void *function) {
  gpu_clock_start_once(thread);
  return (struct launch_config_call){tscope_ticks(), config, function, default_stream};
}
HOT void launch_config_end(struct tscope_thread *thread, const struct launch_config_call *call,
                           cudaError_t result) {
  u64 dur = elapsed(thread, call->start);
  const cudaLaunchConfig_t *config = call->config;
  if (TSCOPE_UNLIKELY(result != cudaSuccess))
    return;
  if (graph_captured(call->default_stream, config->stream, GRAPH_KERNEL)) {
    captured_kernels_note(thread, call->function, config->gridDim, config->blockDim);
    return;
  }
  u32 shape = shape_number(thread, call->function, config->gridDim, config->blockDim);
  u16 stream = stream_index(thread, call->default_stream, config->stream);
  DETAIL(LAUNCH, launch, call->start, dur, stream, .shape = shape);
}

/* alloc_device, alloc_async, alloc_host: memory obtained; `where` holds its address afterwards. */
enum {
  alloc_device_wakes = TSCOPE_WAKES,
  alloc_async_wakes = TSCOPE_WAKES,
  alloc_host_wakes = TSCOPE_QUIET
};
struct alloc_call {
  u64 start;
  void *const *where;
  u64 bytes;
  u16 memory;
};
static inline void alloc_end(struct tscope_thread *thread, const struct alloc_call *call,
                             cudaError_t result) {
  u64 dur = elapsed(thread, call->start);
  u64 address = result == cudaSuccess ? (u64)(uintptr_t)*call->where : 0;
  DETAIL(ALLOC, alloc, call->start, dur, call->memory, .result = (u32)result, .address = address,
         .bytes = call->bytes);
  if (TSCOPE_UNLIKELY(result == cudaErrorMemoryAllocation))
    out_of_memory(thread, call->start, (enum tscope_memory)call->memory, call->bytes);
}
#define alloc_device_call alloc_call
#define alloc_async_call alloc_call
#define alloc_host_call alloc_call
static inline struct alloc_call alloc_device_begin(struct tscope_thread *thread,
                                                   enum tscope_memory memory, void *const *where,
                                                   size_t bytes) {
  gpu_clock_start_once(thread);
  return (struct alloc_call){tscope_ticks(), where, bytes, (u16)memory};
}
static inline void alloc_device_end(struct tscope_thread *thread, const struct alloc_call *call,
                                    cudaError_t result) {
  alloc_end(thread, call, result);
  if (result == cudaSuccess)
    gpu_facts_tell_once(thread);
}
static inline struct alloc_call alloc_async_begin(struct tscope_thread *thread,
                                                  enum tscope_default_stream default_stream,
                                                  void *const *where, size_t bytes,
                                                  cudaStream_t stream) {
  (void)default_stream, (void)stream;
  return alloc_device_begin(thread, TSCOPE_MEMORY_DEVICE_ASYNC, where, bytes);
}
static inline void alloc_async_end(struct tscope_thread *thread, const struct alloc_call *call,
                                   cudaError_t result) {
  alloc_device_end(thread, call, result);
}
static inline struct alloc_call alloc_host_begin(struct tscope_thread *thread,
                                                 enum tscope_memory memory, void *const *where,
                                                 size_t bytes) {
  (void)thread;
  return (struct alloc_call){tscope_ticks(), where, bytes, (u16)memory};
}
static inline void alloc_host_end(struct tscope_thread *thread, const struct alloc_call *call,
                                  cudaError_t result) {
  alloc_end(thread, call, result);
}

/* alloc_pitch: as many rows, as long as the call says. */
enum { alloc_pitch_wakes = TSCOPE_WAKES };
struct alloc_pitch_call {
  struct alloc_call alloc;
  const size_t *pitch;
  u64 rows;
};
static inline struct alloc_pitch_call alloc_pitch_begin(struct tscope_thread *thread,
                                                        void *const *where, const size_t *pitch,
                                                        size_t rows) {
  return (struct alloc_pitch_call){alloc_device_begin(thread, TSCOPE_MEMORY_DEVICE, where, 0),
                                   pitch, rows};
}
static inline void alloc_pitch_end(struct tscope_thread *thread, struct alloc_pitch_call *call,
                                   cudaError_t result) {
  if (result == cudaSuccess)
    call->alloc.bytes = *call->pitch * call->rows;
  alloc_device_end(thread, &call->alloc, result);
}

/* alloc_array: what its elements take; how the device lays them out is its own secret. */
enum { alloc_array_wakes = TSCOPE_WAKES };
struct alloc_array_call {
  struct alloc_call alloc;
  const struct cudaChannelFormatDesc *format;
};
static inline struct alloc_array_call alloc_array_begin(struct tscope_thread *thread,
                                                        cudaArray_t *where,
                                                        const struct cudaChannelFormatDesc *format,
                                                        u64 width, u64 height, u64 depth) {
  u64 elements = width * (height ? height : 1) * (depth ? depth : 1);
  return (struct alloc_array_call){
      alloc_device_begin(thread, TSCOPE_MEMORY_ARRAY, (void *const *)where, elements), format};
}
static inline void alloc_array_end(struct tscope_thread *thread, struct alloc_array_call *call,
                                   cudaError_t result) {
  const struct cudaChannelFormatDesc *format = call->format;
  if (result == cudaSuccess)
    call->alloc.bytes *= (u64)(format->x + format->y + format->z + format->w) / 8;
  alloc_device_end(thread, &call->alloc, result);
}

/* release, release_async: memory given back. Giving back NULL is a usual way to start CUDA. */
enum { release_wakes = TSCOPE_QUIET, release_async_wakes = TSCOPE_QUIET };
struct release_call {
  u64 start;
  const void *address;
  u16 memory;
};
#define release_async_call release_call
static inline struct release_call release_begin(struct tscope_thread *thread,
                                                enum tscope_memory memory, const void *address) {
  (void)thread;
  return (struct release_call){tscope_ticks(), address, (u16)memory};
}
static inline void release_end(struct tscope_thread *thread, const struct release_call *call,
                               cudaError_t result) {
  u64 dur = elapsed(thread, call->start);
  if (call->address)
    DETAIL(FREE, free, call->start, dur, call->memory, .result = (u32)result,
           .address = (u64)(uintptr_t)call->address);
}
static inline struct release_call release_async_begin(struct tscope_thread *thread,
                                                      enum tscope_default_stream default_stream,
                                                      const void *address, cudaStream_t stream) {
  (void)default_stream, (void)stream;
  return release_begin(thread, TSCOPE_MEMORY_DEVICE_ASYNC, address);
}
static inline void release_async_end(struct tscope_thread *thread, const struct release_call *call,
                                     cudaError_t result) {
  release_end(thread, call, result);
}

/* copy, copy_peer, fill: bytes moved or set; `async` is TSCOPE_COPY_ASYNC or 0. */
enum { copy_wakes = TSCOPE_QUIET, copy_peer_wakes = TSCOPE_QUIET, fill_wakes = TSCOPE_QUIET };
struct copy_call {
  struct stream_call on;
  u64 bytes;
  u32 kind;
};
#define copy_peer_call copy_call
#define fill_call copy_call
static inline u32 copy_direction(enum cudaMemcpyKind kind) {
  static const u8 directions[] = {[cudaMemcpyHostToHost] = TSCOPE_COPY_H2H,
                                  [cudaMemcpyHostToDevice] = TSCOPE_COPY_H2D,
                                  [cudaMemcpyDeviceToHost] = TSCOPE_COPY_D2H,
                                  [cudaMemcpyDeviceToDevice] = TSCOPE_COPY_D2D};
  return (unsigned)kind < sizeof directions ? directions[kind] : TSCOPE_COPY_UNKNOWN;
}
static inline struct copy_call copy_begin(struct tscope_thread *thread,
                                          enum tscope_default_stream default_stream,
                                          enum cudaMemcpyKind kind, size_t bytes, u32 async,
                                          cudaStream_t stream) {
  (void)thread;
  return (struct copy_call){
      {tscope_ticks(), stream, default_stream}, bytes, copy_direction(kind) | async};
}
static inline void copy_end(struct tscope_thread *thread, const struct copy_call *call,
                            cudaError_t result) {
  u64 dur = elapsed(thread, call->on.start);
  if (result != cudaSuccess || graph_captured(call->on.default_stream, call->on.stream, GRAPH_COPY))
    return;
  u16 stream = stream_index(thread, call->on.default_stream, call->on.stream);
  DETAIL(COPY, copy, call->on.start, dur, stream, .kind = call->kind, .bytes = call->bytes);
}
static inline struct copy_call copy_peer_begin(struct tscope_thread *thread,
                                               enum tscope_default_stream default_stream,
                                               size_t bytes, u32 async, cudaStream_t stream) {
  (void)thread;
  return (struct copy_call){
      {tscope_ticks(), stream, default_stream}, bytes, TSCOPE_COPY_P2P | async};
}
static inline void copy_peer_end(struct tscope_thread *thread, const struct copy_call *call,
                                 cudaError_t result) {
  copy_end(thread, call, result);
}
static inline struct copy_call fill_begin(struct tscope_thread *thread,
                                          enum tscope_default_stream default_stream, size_t bytes,
                                          u32 async, cudaStream_t stream) {
  (void)thread;
  return (struct copy_call){{tscope_ticks(), stream, default_stream}, bytes, async};
}
static inline void fill_end(struct tscope_thread *thread, const struct copy_call *call,
                            cudaError_t result) {
  u64 dur = elapsed(thread, call->on.start);
  if (result != cudaSuccess || graph_captured(call->on.default_stream, call->on.stream, GRAPH_FILL))
    return;
  u16 stream = stream_index(thread, call->on.default_stream, call->on.stream);
  DETAIL(FILL, fill, call->on.start, dur, stream, .kind = call->kind, .bytes = call->bytes);
}

/* copy_3d, copy_3d_peer: said in a struct that is only read once the real function took it. Beside
 * an array, a width is in elements of it: how many bytes that is, is not known. */
static inline u64 copy_3d_bytes(struct cudaExtent extent, bool has_array) {
  return has_array ? 0 : (u64)extent.width * extent.height * extent.depth;
}

/* The recorder of a copy that is said in a struct, which `copy` points at. */
#define COPY_BY_STRUCT(recorder, parameters, direction, bytes_)                                    \
  enum { recorder##_wakes = TSCOPE_QUIET };                                                        \
  struct recorder##_call {                                                                         \
    struct stream_call on;                                                                         \
    const parameters *copy;                                                                        \
    u32 async;                                                                                     \
  };                                                                                               \
  static inline struct recorder##_call recorder##_begin(                                           \
      struct tscope_thread *thread, enum tscope_default_stream default_stream,                     \
      const parameters *copy, u32 async, cudaStream_t stream) {                                    \
    (void)thread;                                                                                  \
    return (struct recorder##_call){{tscope_ticks(), stream, default_stream}, copy, async};        \
  }                                                                                                \
  static inline void recorder##_end(struct tscope_thread *thread,                                  \
                                    const struct recorder##_call *call, cudaError_t result) {      \
    const parameters *copy = call->copy;                                                           \
    if (result == cudaSuccess)                                                                     \
      copy_end(thread, &(struct copy_call){call->on, (bytes_), (direction) | call->async},         \
               result);                                                                            \
  }
COPY_BY_STRUCT(copy_3d, struct cudaMemcpy3DParms, copy_direction(copy->kind),
               copy_3d_bytes(copy->extent, copy->srcArray || copy->dstArray))
COPY_BY_STRUCT(copy_3d_peer, struct cudaMemcpy3DPeerParms, TSCOPE_COPY_P2P,
               copy_3d_bytes(copy->extent, copy->srcArray || copy->dstArray))

/* copy_batch: many copies in one call, whose directions may differ: one record of all. */
enum { copy_batch_wakes = TSCOPE_QUIET };
struct copy_batch_call {
  struct stream_call on;
  const size_t *sizes;
  size_t copies;
};
static inline struct copy_batch_call copy_batch_begin(struct tscope_thread *thread,
                                                      enum tscope_default_stream default_stream,
                                                      const size_t *sizes, size_t copies,
                                                      cudaStream_t stream) {
  (void)thread;
  return (struct copy_batch_call){{tscope_ticks(), stream, default_stream}, sizes, copies};
}
static inline void copy_batch_end(struct tscope_thread *thread, const struct copy_batch_call *call,
                                  cudaError_t result) {
  u64 bytes = 0;
  if (result != cudaSuccess)
    return;
  for (size_t i = 0; i < call->copies; i++)
    bytes += call->sizes[i];
  copy_end(thread, &(struct copy_call){call->on, bytes, TSCOPE_COPY_UNKNOWN | TSCOPE_COPY_ASYNC},
           result);
}

/* prefetch: managed memory is to be brought somewhere; what is there already is not moved. */
enum { prefetch_wakes = TSCOPE_QUIET };
#define prefetch_call copy_call
static inline struct copy_call prefetch_begin(struct tscope_thread *thread,
                                              enum tscope_default_stream default_stream,
                                              size_t bytes, cudaStream_t stream) {
  (void)thread;
  return (struct copy_call){
      {tscope_ticks(), stream, default_stream}, bytes, TSCOPE_COPY_PREFETCH | TSCOPE_COPY_ASYNC};
}
static inline void prefetch_end(struct tscope_thread *thread, const struct copy_call *call,
                                cudaError_t result) {
  copy_end(thread, call, result);
}

/* host_function: the stream's work waits while a function of the host runs. */
enum { host_function_wakes = TSCOPE_QUIET };
struct host_function_call {
  struct stream_call on;
  const void *function;
};
static inline struct host_function_call
host_function_begin(struct tscope_thread *thread, enum tscope_default_stream default_stream,
                    const void *function, cudaStream_t stream) {
  (void)thread;
  return (struct host_function_call){{tscope_ticks(), stream, default_stream}, function};
}
static inline void host_function_end(struct tscope_thread *thread,
                                     const struct host_function_call *call, cudaError_t result) {
  u64 dur = elapsed(thread, call->on.start);
  if (result != cudaSuccess || graph_captured(call->on.default_stream, call->on.stream, GRAPH_MARK))
    return;
  u16 stream = stream_index(thread, call->on.default_stream, call->on.stream);
  DETAIL(HOST_FUNCTION, host_function, call->on.start, dur, stream,
         .function = (u64)(uintptr_t)call->function);
}

/* sync_device, sync_stream, sync_event: the host waited for the GPU. Recorded even if the wait
 * ended with an error, since it is time that passed. */
enum { sync_device_wakes = TSCOPE_QUIET, sync_stream_wakes = TSCOPE_QUIET };
enum { sync_event_wakes = TSCOPE_QUIET };
static inline u32 event_bits(cudaEvent_t event) {
  return (u32)((uintptr_t)event >> 4);
}
struct sync_device_call {
  u64 start;
};
static inline struct sync_device_call sync_device_begin(struct tscope_thread *thread) {
  (void)thread;
  return (struct sync_device_call){tscope_ticks()};
}
static inline void sync_device_end(struct tscope_thread *thread,
                                   const struct sync_device_call *call, cudaError_t result) {
  (void)result;
  DETAIL(SYNC, sync, call->start, elapsed(thread, call->start), TSCOPE_SYNC_DEVICE, .object = 0);
}
#define sync_stream_call stream_call
static inline struct stream_call sync_stream_begin(struct tscope_thread *thread,
                                                   enum tscope_default_stream default_stream,
                                                   cudaStream_t stream) {
  (void)thread;
  return (struct stream_call){tscope_ticks(), stream, default_stream};
}
static inline void sync_stream_end(struct tscope_thread *thread, const struct stream_call *call,
                                   cudaError_t result) {
  u64 dur = elapsed(thread, call->start);
  u16 stream = result == cudaSuccess ? stream_index(thread, call->default_stream, call->stream)
                                     : TSCOPE_NO_STREAM;
  DETAIL(SYNC, sync, call->start, dur, TSCOPE_SYNC_STREAM, .object = stream);
}
struct sync_event_call {
  u64 start;
  cudaEvent_t event;
};
static inline struct sync_event_call sync_event_begin(struct tscope_thread *thread,
                                                      cudaEvent_t event) {
  (void)thread;
  return (struct sync_event_call){tscope_ticks(), event};
}
static inline void sync_event_end(struct tscope_thread *thread, const struct sync_event_call *call,
                                  cudaError_t result) {
  (void)result;
  DETAIL(SYNC, sync, call->start, elapsed(thread, call->start), TSCOPE_SYNC_EVENT,
         .object = event_bits(call->event));
}

/* event_record, event_wait: the edges between streams. */
enum { event_record_wakes = TSCOPE_QUIET, event_wait_wakes = TSCOPE_QUIET };
struct event_call {
  struct stream_call on;
  cudaEvent_t event;
};
#define event_record_call event_call
#define event_wait_call event_call
static inline struct event_call event_record_begin(struct tscope_thread *thread,
                                                   enum tscope_default_stream default_stream,
                                                   cudaEvent_t event, cudaStream_t stream) {
  (void)thread;
  return (struct event_call){{tscope_ticks(), stream, default_stream}, event};
}
static inline void event_record_end(struct tscope_thread *thread, const struct event_call *call,
                                    cudaError_t result) {
  u64 dur = elapsed(thread, call->on.start);
  if (result != cudaSuccess || graph_captured(call->on.default_stream, call->on.stream, GRAPH_MARK))
    return;
  u16 stream = stream_index(thread, call->on.default_stream, call->on.stream);
  DETAIL(EVENT_RECORD, event_record, call->on.start, dur, stream, .event = event_bits(call->event));
}
static inline struct event_call event_wait_begin(struct tscope_thread *thread,
                                                 enum tscope_default_stream default_stream,
                                                 cudaEvent_t event, cudaStream_t stream) {
  return event_record_begin(thread, default_stream, event, stream);
}
static inline void event_wait_end(struct tscope_thread *thread, const struct event_call *call,
                                  cudaError_t result) {
  u64 dur = elapsed(thread, call->on.start);
  if (result != cudaSuccess || graph_captured(call->on.default_stream, call->on.stream, GRAPH_MARK))
    return;
  u16 stream = stream_index(thread, call->on.default_stream, call->on.stream);
  DETAIL(EVENT_WAIT, event_wait, call->on.start, dur, stream, .event = event_bits(call->event));
}

#endif
