/* SPDX-License-Identifier: MIT
 *
 * What each thread remembers of CUDA handles it has met, so that a call it repeats is recorded
 * without looking further. Both caches are direct-mapped: an entry is simply overwritten.
 */
#ifndef TSCOPE_CUDA_THREAD_H
#define TSCOPE_CUDA_THREAD_H

#include "record/families.h"

enum { SHAPES_CACHED = 1024, STREAMS_CACHED = 32 };

struct shape_cached {
  u64 key; /* hash of kernel and geometry */
  u32 shape;
  u32 unused;
};

struct stream_cached {
  u64 key;
  u16 index;
};

struct cuda_thread {
  u32 stream_generation; /* that `streams` belongs to */
  u64 no_number_at;      /* ticks; when a stream last got no number, 0: none */
  u32 removed_then;      /* streams that had been removed by then */
  u32 names_changed;     /* kernel_names_changed, of which `shapes` is */
  struct stream_cached streams[STREAMS_CACHED];
  struct shape_cached shapes[SHAPES_CACHED];
};

static inline struct cuda_thread *cuda_thread(const struct tscope_thread *thread) {
  return thread->family[TSCOPE_FAMILY_CUDA];
}

extern const char *const tscope_cuda_sonames[];
extern const char *const tscope_driver_sonames[];

#endif
