/* SPDX-License-Identifier: MIT
 *
 * Kernel and launch geometry, written once per combination in a SHAPE record, so that a launch
 * costs one word.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/kernel_names.h"
#include "streams/cuda_thread.h"

static inline u64 shape_mix(u64 a, u64 b) {
  unsigned __int128 product =
      (unsigned __int128)(a ^ 0xa0761d6478bd642full) * (b ^ 0xe7037ed1a0b428dbull);
  return (u64)product ^ (u64)(product >> 64);
}

/* 64 bits identify the combination: the probability that two of the 32768 that are kept share them
 * is below 1e-10. The words are those in which dim3 is passed: one that the compiler reads across
 * two stores of before waits for both. */
static inline u64 shape_key(const void *function, dim3 grid, dim3 block) {
  u64 first = shape_mix((u64)(uintptr_t)function, (u64)grid.y << 32 | grid.x);
  u64 second = shape_mix((u64)block.y << 32 | block.x, (u64)block.z << 32 | grid.z);
  u64 key = shape_mix(first, second) >> 1;
  return key ? key : 1;
}

/* A job that unloads a module may get the same handle for another kernel later. So combinations are
 * kept by handle, geometry and name. */
static inline u64 shape_key_with_name(u64 key, const void *function) {
  u64 kept = shape_mix(key, kernel_name_entry(function)) >> 1;
  return kept ? kept : 1;
}

TSCOPE_NOINLINE u32 shape_number_slow(struct tscope_thread *thread, u64 handle_key,
                                      const void *function, dim3 grid, dim3 block);

/* The SHAPE number of a shape_key(), with a SHAPE record if it is new. Once the table is full, a
 * number for the kernel without its geometry, or 0. Call it after the launch succeeded, and after
 * the thread has forgotten what is stale (cuda_thread.h). */
static inline u32 shape_number(struct tscope_thread *thread, u64 key, const void *function,
                               dim3 grid, dim3 block) {
  const struct shape_cached *cached = &cuda_thread(thread)->shapes[key % SHAPES_CACHED];
  if (TSCOPE_LIKELY(cached->key == key))
    return cached->shape;
  return shape_number_slow(thread, key, function, grid, block);
}
