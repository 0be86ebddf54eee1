/* SPDX-License-Identifier: MIT
 *
 * Streams as the trace knows them: small numbers, defined by STREAM records. The host side knows
 * a stream by its handle, the GPU clock source by an id of its own; both lead to one number
 * wherever the source can translate.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "hooks/handle_map.h"
#include "streams/cuda_thread.h"

/* What stream 0 means to the function that was called; the values are the handles that CUDA itself
 * gives these streams. */
enum tscope_default_stream { TSCOPE_STREAM_LEGACY = 1, TSCOPE_STREAM_PER_THREAD = 2 };

/* The device that this thread chose with cudaSetDevice(), or was found on when it first used a
 * default stream; -1 before that. */
extern __thread i32 cuda_chosen_device __attribute__((tls_model("initial-exec")));

/* The device that this thread works on, -1 if that is not known. */
i32 cuda_current_device(void);

/* The device whose default streams this thread uses, which has not chosen one. */
TSCOPE_NOINLINE i32 cuda_first_device(void);

/* Stream captures that are going on in the process. */
extern u32 captures_open;

/* What the open GPU clock source calls a stream of the calling thread's context, TSCOPE_UNKNOWN if
 * it is not known. Set by the GPU clock when it starts; NULL before. */
extern u32 (*stream_id_of_clock)(void *stream, bool per_thread);

/* What distinguishes streams: the handle, but default streams exist once per device, or per thread
 * and device. Real handles are pointers: bits 62 and 63 are free. */
static inline bool stream_is_default(cudaStream_t stream) {
  return TSCOPE_UNLIKELY((uintptr_t)stream <= TSCOPE_STREAM_PER_THREAD);
}
static inline u64 stream_key_default(const struct tscope_thread *thread,
                                     enum tscope_default_stream default_stream, cudaStream_t stream,
                                     i32 device) {
  u64 which = stream ? (u64)(uintptr_t)stream : default_stream;
  u64 owner = which == TSCOPE_STREAM_PER_THREAD ? thread->number : 0;
  return 1ull << 63 | owner << 16 | (u64)(u8)device << 8 | which;
}
static inline u64 stream_key(const struct tscope_thread *thread,
                             enum tscope_default_stream default_stream, cudaStream_t stream) {
  if (!stream_is_default(stream))
    return (u64)(uintptr_t)stream;
  i32 device = cuda_chosen_device;
  return stream_key_default(thread, default_stream, stream,
                            TSCOPE_UNLIKELY(device < 0) ? cuda_first_device() : device);
}

TSCOPE_NOINLINE u16 stream_index_slow(struct tscope_thread *thread, u64 key, cudaStream_t stream);

static inline u16 stream_index_of_key(struct tscope_thread *thread, u64 key, cudaStream_t stream) {
  struct cuda_thread *cuda = cuda_thread(thread);
  const struct stream_cached *cached = &cuda->streams[handle_hash(key) % STREAMS_CACHED];
  if (TSCOPE_LIKELY(cached->key == key &&
                    cuda->generation == __atomic_load_n(&cuda_generation, __ATOMIC_RELAXED)))
    return cached->index;
  return stream_index_slow(thread, key, stream);
}

/* Where this thread's device is not known yet. */
TSCOPE_NOINLINE u16 stream_index_first(struct tscope_thread *thread,
                                       enum tscope_default_stream default_stream,
                                       cudaStream_t stream);

/* The stream's number, with a STREAM record if it is new. TSCOPE_NO_STREAM when the table is full.
 * Call it only where a context exists: after a CUDA call succeeded, or with a communicator in hand.
 * All that it calls it calls last, so that no launch saves registers for that. */
static inline u16 stream_index(struct tscope_thread *thread,
                               enum tscope_default_stream default_stream, cudaStream_t stream) {
  u64 key = (u64)(uintptr_t)stream;
  if (stream_is_default(stream)) {
    i32 device = cuda_chosen_device;
    if (TSCOPE_UNLIKELY(device < 0))
      return stream_index_first(thread, default_stream, stream);
    key = stream_key_default(thread, default_stream, stream, device);
  }
  return stream_index_of_key(thread, key, stream);
}

/* The number of the stream that the GPU clock source calls `gpu_stream` on `device`. */
u16 stream_index_of_gpu(struct tscope_thread *thread, u32 device, u32 gpu_stream);

/* The handle is about to be invalid, and may come back as another stream. The number that the
 * stream had, TSCOPE_NO_STREAM if it had none. */
u16 stream_remove(cudaStream_t stream);
