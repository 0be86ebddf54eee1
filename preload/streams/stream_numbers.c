/* SPDX-License-Identifier: MIT */
#include "streams/stream_numbers.h"

#include <errno.h>
#include <string.h>

HANDLE_MAP(by_key, 4096);

static u32 n_streams; /* guarded by by_key's lock */
u32 stream_generation;
u32 captures_open;
u32 (*stream_id_of_clock)(void *stream, bool per_thread);
__thread i32 cuda_chosen_device __attribute__((tls_model("initial-exec"))) = -1;

static u64 gpu_key(u32 device, u32 gpu_stream) {
  return 1ull << 62 | (u64)device << 32 | gpu_stream;
}

/* The driver knows for sure; its functions leave the job's last CUDA error alone. */
i32 cuda_current_device(void) {
  if (cuda_chosen_device >= 0)
    return cuda_chosen_device;
  static struct tscope_symbol symbol = {.name = "cuCtxGetDevice", .sonames = tscope_driver_sonames};
  int (*get_device)(int *) = tscope_resolve(&symbol, NULL);
  int device;
  return get_device && !get_device(&device) ? device : -1;
}

/* If the driver does not give it, it is the device that CUDA begins with. Searching for a driver
 * that is not there takes long, so that is repeated only now and then. */
i32 cuda_first_device(void) {
  static u32 unanswered;
  const u32 often = 4096;
  int saved = errno;
  i32 device = -1;
  if (__atomic_fetch_add(&unanswered, 1, __ATOMIC_RELAXED) % often == 0)
    device = cuda_current_device();
  errno = saved;
  if (device < 0)
    return 0;
  __atomic_store_n(&unanswered, 0, __ATOMIC_RELAXED);
  return cuda_chosen_device = device;
}

static u32 gpu_stream_of(cudaStream_t stream, bool per_thread) {
  u32 (*get_id)(void *, bool) = __atomic_load_n(&stream_id_of_clock, __ATOMIC_ACQUIRE);
  return get_id ? get_id(stream, per_thread) : TSCOPE_UNKNOWN;
}

/* The number that a stream has by one of its keys, or a new one, which it has by both from then on.
 * `is_new` says whether the trace gets a record of it. */
static u16 find_or_add(const u64 keys[2], bool *is_new) {
  u64 index = TSCOPE_NO_STREAM;
  *is_new = false;
  if (!tscope_lock(&by_key.lock))
    return TSCOPE_NO_STREAM;
  if (!handle_map_get(&by_key, keys[0], &index)) {
    if (!handle_map_get(&by_key, keys[1], &index))
      index = n_streams < TSCOPE_NO_STREAM ? n_streams++ : TSCOPE_NO_STREAM;
    handle_map_put_locked(&by_key, keys[0], index);
    handle_map_put_locked(&by_key, keys[1], index);
    *is_new = index != TSCOPE_NO_STREAM;
  }
  tscope_unlock(&by_key.lock);
  return (u16)index;
}

/* Gives the stream the number that its other key has, or a new one, with a STREAM record. `keys`
 * are those that are known, 0 for one that is not. */
static u16 assign_number(struct tscope_thread *thread, const u64 keys[2],
                         const struct tscope_stream_record *stream) {
  bool is_new;
  u16 index = find_or_add(keys, &is_new);
  struct tscope_stream_record record = *stream;
  if (is_new)
    tscope_retain(thread, tscope_ticks(), TSCOPE_REC_STREAM, index, &record, sizeof(record));
  return index;
}

u16 stream_index_slow(struct tscope_thread *thread, u64 key, cudaStream_t stream) {
  struct cuda_thread *cuda = cuda_thread(thread);
  u32 generation = __atomic_load_n(&stream_generation, __ATOMIC_ACQUIRE);
  if (cuda->stream_generation != generation) {
    memset(cuda->streams, 0, sizeof(cuda->streams));
    cuda->stream_generation = generation;
  }
  u64 index;
  if (!handle_map_get(&by_key, key, &index)) {
    int saved = errno;
    /* Queried before the lock is taken: the source may be delivering spans, which needs it too. */
    bool per_thread = (key & 0xff) == TSCOPE_STREAM_PER_THREAD && key >> 63;
    i32 device = cuda_current_device();
    u32 gpu_stream = gpu_stream_of(stream, per_thread);
    index = assign_number(thread,
                          (u64[]){key, gpu_stream == TSCOPE_UNKNOWN
                                           ? 0
                                           : gpu_key(device < 0 ? 0 : (u32)device, gpu_stream)},
                          &(struct tscope_stream_record){.handle = key >> 63 ? key & 0xff : key,
                                                         .gpu_stream = gpu_stream,
                                                         .device = device});
    errno = saved;
  }
  if (index != TSCOPE_NO_STREAM)
    cuda->streams[handle_hash(key) % STREAMS_CACHED] =
        (struct stream_cached){.key = key, .index = (u16)index};
  return (u16)index;
}

u16 stream_index_first(struct tscope_thread *thread, enum tscope_default_stream default_stream,
                       cudaStream_t stream) {
  return stream_index_of_key(thread, stream_key(thread, default_stream, stream), stream);
}

u16 stream_index_of_gpu(struct tscope_thread *thread, u32 device, u32 gpu_stream) {
  u64 key = gpu_key(device, gpu_stream), index;
  if (TSCOPE_LIKELY(handle_map_get(&by_key, key, &index)))
    return (u16)index;
  return assign_number(
      thread, (u64[]){key, 0},
      &(struct tscope_stream_record){.gpu_stream = gpu_stream, .device = (i32)device});
}

u16 stream_remove(cudaStream_t stream) {
  u64 index;
  if ((uintptr_t)stream <= TSCOPE_STREAM_PER_THREAD ||
      !handle_map_remove(&by_key, (u64)(uintptr_t)stream, &index))
    return TSCOPE_NO_STREAM;
  __atomic_add_fetch(&stream_generation, 1, __ATOMIC_RELEASE);
  return (u16)index;
}
