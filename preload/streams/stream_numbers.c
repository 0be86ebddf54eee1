/* SPDX-License-Identifier: MIT */
#include "streams/stream_numbers.h"

enum { MAX_STREAMS = TSCOPE_NO_STREAM };

/* Both keys of every number, with room left. Pages that are not used take no memory. */
HANDLE_MAP(by_key, 4 * (MAX_STREAMS + 1));

/* All guarded by by_key's lock. Once every number was given, a new stream gets the number that has
 * been unused for the longest time. Until then an unused number keeps the key of the GPU clock
 * source, which reports the work of a stream even after the stream is destroyed. */
static struct numbered {
  u64 gpu_key;       /* 0: none leads to it */
  u16 before, after; /* in the list of unused numbers, while no handle leads to it */
  u16 handles;       /* that lead to it */
  bool unused;       /* it is in the list */
  bool shared;       /* it has stood for several streams, and the trace says so */
} numbers[MAX_STREAMS];
static u32 n_streams; /* numbers given so far */
static u16 first_unused = TSCOPE_NO_STREAM, last_unused = TSCOPE_NO_STREAM;

u32 captures_open;
u32 (*stream_id_of_clock)(void *stream, bool per_thread);
__thread i32 cuda_chosen_device __attribute__((tls_model("initial-exec"))) = -1;

static u64 gpu_key(u32 device, u32 gpu_stream) {
  return 1ull << 62 | (u64)device << 32 | gpu_stream;
}

/* The driver knows for sure: cuCtxPushCurrent() and its like choose a device too. Its functions
 * leave the job's last CUDA error alone. */
i32 cuda_current_device(void) {
  int (*get_device)(int *) = DRIVER_FUNCTION("cuCtxGetDevice");
  int device;
  return get_device && !get_device(&device) ? device : cuda_chosen_device;
}

/* If the driver does not give it, it is the device that CUDA begins with. Searching for a driver
 * that is not there takes long, so that is repeated only now and then. */
i32 cuda_first_device(void) {
  static u32 unanswered;
  const u32 often = 4096;
  TSCOPE_KEEP_ERRNO;
  i32 device = -1;
  if (__atomic_fetch_add(&unanswered, 1, __ATOMIC_RELAXED) % often == 0)
    device = cuda_current_device();
  if (device < 0)
    return 0;
  __atomic_store_n(&unanswered, 0, __ATOMIC_RELAXED);
  return cuda_chosen_device = device;
}

static u32 gpu_stream_of(cudaStream_t stream, bool per_thread) {
  u32 (*get_id)(void *, bool) = __atomic_load_n(&stream_id_of_clock, __ATOMIC_ACQUIRE);
  return get_id ? get_id(stream, per_thread) : TSCOPE_UNKNOWN;
}

static void link_numbers(u16 before, u16 after) {
  *(before == TSCOPE_NO_STREAM ? &first_unused : &numbers[before].after) = after;
  *(after == TSCOPE_NO_STREAM ? &last_unused : &numbers[after].before) = before;
}

static void leave_list(u16 index) {
  if (numbers[index].unused)
    link_numbers(numbers[index].before, numbers[index].after);
  numbers[index].unused = false;
}

/* The number takes its turn after all others without a handle. */
static void join_list(u16 index) {
  leave_list(index);
  numbers[index].unused = true;
  link_numbers(last_unused, index);
  link_numbers(index, TSCOPE_NO_STREAM);
}

static bool put_handle(u64 key, u16 index) {
  if (!handle_map_put_locked(&by_key, key, index))
    return false;
  numbers[index].handles++;
  leave_list(index);
  return true;
}

/* False if there is no such handle. */
static bool remove_handle(u64 key, u64 *index) {
  if (!handle_map_remove_locked(&by_key, key, index))
    return false;
  if (--numbers[*index].handles == 0)
    join_list((u16)*index);
  return true;
}

static void remove_gpu_key(u16 index) {
  u64 value;
  handle_map_remove_locked(&by_key, numbers[index].gpu_key, &value);
  numbers[index].gpu_key = 0;
}

/* A number that no handle leads to; it is in the list. TSCOPE_NO_STREAM if there is none. */
static u16 free_number(void) {
  u16 index = first_unused;
  if (n_streams < MAX_STREAMS) {
    index = (u16)n_streams++;
    join_list(index);
  } else if (index != TSCOPE_NO_STREAM) {
    remove_gpu_key(index);
    join_list(index);
  }
  return index;
}

/* What the trace is to say about a number. */
enum said { SAID_NOTHING, SAID_STREAM, SAID_SHARED };

/* The number that a stream has by one of its keys, or a new one, which it has by both from then
 * on. keys[0] is the handle's, keys[1] the GPU clock source's, each 0 if it is not known. */
static u16 find_or_add(const u64 keys[2], enum said *said) {
  u64 found;
  bool reused = false;
  *said = SAID_NOTHING;
  if (handle_map_get(&by_key, keys[0], &found))
    return (u16)found;
  if (!handle_map_get(&by_key, keys[1], &found)) {
    reused = n_streams == MAX_STREAMS;
    found = free_number();
    if (found == TSCOPE_NO_STREAM)
      return TSCOPE_NO_STREAM;
    if (keys[1] && handle_map_put_locked(&by_key, keys[1], found))
      numbers[found].gpu_key = keys[1];
  } else if (!keys[0]) {
    return (u16)found;
  }
  if (keys[0] ? !put_handle(keys[0], (u16)found) : !numbers[found].gpu_key)
    return TSCOPE_NO_STREAM;
  *said = numbers[found].shared ? SAID_NOTHING : reused ? SAID_SHARED : SAID_STREAM;
  numbers[found].shared |= reused;
  return (u16)found;
}

/* The number cannot be used: the trace has no record that says what it stands for. */
static void take_back(u16 index, u64 handle_key) {
  u64 value;
  if (!tscope_lock(&by_key.lock))
    return;
  remove_handle(handle_key, &value);
  remove_gpu_key(index);
  numbers[index].shared = false;
  tscope_unlock(&by_key.lock);
  cuda_stream_handle_ends();
}

/* Gives the stream the number that its other key has, or a new one, with a STREAM record. */
static u16 assign_number(struct tscope_thread *thread, const u64 keys[2],
                         const struct tscope_stream_record *stream) {
  enum said said = SAID_NOTHING;
  u16 index = TSCOPE_NO_STREAM;
  if (tscope_lock(&by_key.lock)) {
    index = find_or_add(keys, &said);
    tscope_unlock(&by_key.lock);
  }
  struct tscope_stream_record record = *stream;
  if (said == SAID_SHARED)
    record = (struct tscope_stream_record){.gpu_stream = TSCOPE_UNKNOWN, .device = -1};
  if (said != SAID_NOTHING &&
      !tscope_retain(thread, tscope_ticks(), TSCOPE_REC_STREAM, index, &record, sizeof(record))) {
    take_back(index, keys[0]);
    index = TSCOPE_NO_STREAM;
  }
  if (index == TSCOPE_NO_STREAM)
    tscope_count_lost(TSCOPE_LOSS_STREAMS, 1);
  return index;
}

/* How many streams have been removed: each may leave a number. */
static u32 n_removed;

/* Where the trace has no room for STREAM records, each call would look for a number in vain. So a
 * thread that found none does not look again for about 0.1 s, or until a stream is removed. */
static bool looked_lately(const struct tscope_thread *thread, const struct cuda_thread *cuda) {
  const u64 units = 1 << 24; /* of 4 to 8 ns */
  return cuda->no_number_at &&
         cuda->removed_then == __atomic_load_n(&n_removed, __ATOMIC_RELAXED) &&
         tscope_ticks() - cuda->no_number_at < units << thread->tick_shift;
}

u16 stream_index_slow(struct tscope_thread *thread, u64 key, cudaStream_t stream) {
  struct cuda_thread *cuda = cuda_thread(thread);
  cuda_thread_forget_stale(cuda);
  u64 index;
  if (!handle_map_get(&by_key, key, &index)) {
    if (looked_lately(thread, cuda)) {
      tscope_count_lost(TSCOPE_LOSS_STREAMS, 1);
      return TSCOPE_NO_STREAM;
    }
    TSCOPE_KEEP_ERRNO;
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
    cuda->no_number_at = index == TSCOPE_NO_STREAM ? tscope_ticks() : 0;
    cuda->removed_then = __atomic_load_n(&n_removed, __ATOMIC_RELAXED);
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
      thread, (u64[]){0, key},
      &(struct tscope_stream_record){.gpu_stream = gpu_stream, .device = (i32)device});
}

u16 stream_remove(cudaStream_t stream) {
  u64 key = (u64)(uintptr_t)stream, index;
  if ((uintptr_t)stream <= TSCOPE_STREAM_PER_THREAD || !handle_map_find(&by_key, key) ||
      !tscope_lock(&by_key.lock))
    return TSCOPE_NO_STREAM;
  bool removed = remove_handle(key, &index);
  tscope_unlock(&by_key.lock);
  if (!removed)
    return TSCOPE_NO_STREAM;
  __atomic_add_fetch(&n_removed, 1, __ATOMIC_RELAXED);
  cuda_stream_handle_ends();
  return (u16)index;
}
