/* SPDX-License-Identifier: MIT */
#include "cuda/out_of_memory.h"

#include "streams/stream_numbers.h"

/* c10::Device of a CUDA device, as in TENSOR records. */
static u32 cuda_device(i32 index) {
  return 1u | (u32)index << 8;
}

void out_of_memory(struct tscope_thread *thread, u64 start, enum tscope_memory memory, u64 bytes) {
  TSCOPE_KEEP_ERRNO;
  int (*get_memory)(size_t *, size_t *) = DRIVER_FUNCTION("cuMemGetInfo_v2");
  struct tscope_out_of_memory_record record = {
      .bytes = bytes,
      .allocated = UINT64_MAX,
      .reserved = UINT64_MAX,
      .device_free = UINT64_MAX,
      .device_total = UINT64_MAX,
      .device = TSCOPE_UNKNOWN,
      .memory = memory,
  };
  size_t free_bytes, total_bytes;
  i32 device = memory == TSCOPE_MEMORY_PINNED ? -1 : cuda_current_device();
  if (device >= 0) {
    record.device = cuda_device(device);
    if (get_memory && get_memory(&free_bytes, &total_bytes) == 0) {
      record.device_free = free_bytes;
      record.device_total = total_bytes;
    }
  }
  tscope_retain(thread, start, TSCOPE_REC_OUT_OF_MEMORY, TSCOPE_REFUSAL_API, &record,
                sizeof(record));
}
