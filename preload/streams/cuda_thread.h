/* SPDX-License-Identifier: MIT
 *
 * What each thread remembers of CUDA handles it has met, so that a call it repeats is recorded
 * without looking further. Both caches are direct-mapped: an entry is simply overwritten.
 */
#pragma once

#include "record/families.h"

enum { SHAPES_CACHED = 1024, STREAMS_CACHED = 32, POLLED_AT_ONCE = 4 };

struct shape_cached {
  u64 key; /* hash of kernel and geometry */
  u32 shape;
  u32 unused;
};

struct stream_cached {
  u64 key;
  u16 index;
};

/* What a thread asks for again and again until it is over, with nothing that is recorded between.
 */
struct polled {
  u64 object;                /* handle of an event or a stream; 0: nothing */
  u64 begin, last;           /* ticks, of the first time and the last */
  const u8 *ring, *retained; /* where its records ended then */
  u32 times;
};

struct cuda_thread {
  u32 generation;         /* that both caches belong to */
  u32 kernels_generation; /* that `shapes` belongs to */
  u64 no_number_at;       /* ticks; when a stream last got no number, 0: none */
  u32 removed_then;       /* streams that had been removed by then */
  struct polled polled[POLLED_AT_ONCE];
  struct stream_cached streams[STREAMS_CACHED];
  struct shape_cached shapes[SHAPES_CACHED];
};

/* Counts handles that went out of use, and of these those of kernels: they may come back for
 * something else. */
extern u32 cuda_generation, cuda_kernels_generation;

/* A stream or a kernel is no longer what its handle stands for. */
void cuda_stream_handle_ends(void);
void cuda_kernel_handle_ends(void);

/* The thread forgets what it remembers of such handles. The look-up of a stream does so. */
void cuda_thread_forget_stale(struct cuda_thread *cuda);

static inline struct cuda_thread *cuda_thread(const struct tscope_thread *thread) {
  return thread->family[TSCOPE_FAMILY_CUDA];
}

extern const char *const tscope_cuda_sonames[];
extern const char *const tscope_driver_sonames[];

/* A function of the CUDA runtime, or of the driver; NULL if there is none. */
#define CUDA_FUNCTION(name) TSCOPE_FUNCTION(name, tscope_cuda_sonames)
#define DRIVER_FUNCTION(name) TSCOPE_FUNCTION(name, tscope_driver_sonames)
