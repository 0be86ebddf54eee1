/* SPDX-License-Identifier: MIT */
#include "cuda/launch_shapes.h"

#include "cuda/gpu_facts.h"
#include "gpu/gpu_clock.h"
#include "hooks/handle_map.h"

enum {
  MAX_SHAPES = 32768,     /* kernels with geometry */
  MAX_BARE_SHAPES = 8192, /* kernels alone, for when those have run out */
};

/* At most a third is used, so that a key finds its place. */
HANDLE_MAP(by_key, 4 * MAX_SHAPES);

static u32 n_shapes, n_bare; /* only change under by_key's lock */

/* Number of the combination, 0 if there is no room for it; `is_new` says whether the number is
 * new. */
static u32 find_or_add(u64 key, bool bare, bool *is_new) {
  u64 shape = 0;
  *is_new = false;
  if (!tscope_lock(&by_key.lock))
    return 0;
  if (!handle_map_get(&by_key, key, &shape) &&
      (bare ? n_bare < MAX_BARE_SHAPES : n_shapes < MAX_SHAPES)) {
    shape = bare ? MAX_SHAPES + n_bare + 1 : n_shapes + 1;
    *is_new = handle_map_put_locked(&by_key, key, shape);
    if (*is_new)
      __atomic_fetch_add(bare ? &n_bare : &n_shapes, 1, __ATOMIC_RELAXED);
    else
      shape = 0;
    __atomic_store_n(&gpu_clock_kernels_launched, true, __ATOMIC_RELAXED);
  }
  tscope_unlock(&by_key.lock);
  return (u32)shape;
}

/* Number of the combination, written down if it is new; 0 if there is no room for it. A grid of 0
 * blocks stands for the kernel alone. */
static u32 write_shape(struct tscope_thread *thread, u64 key, const void *function, dim3 grid,
                       dim3 block) {
  u32 name = tscope_string(thread, kernel_name(function));
  bool is_new;
  u32 shape = find_or_add(key, grid.x == 0, &is_new);
  struct tscope_shape_record record = {
      .shape = shape,
      .kernel = name,
      .grid_x = grid.x,
      .grid_y = grid.y,
      .grid_z = grid.z,
      .block_x = block.x,
      .block_y = block.y,
      .block_z = block.z,
      .function = (u64)(uintptr_t)function & ~(u64)KERNEL_OF_DRIVER,
  };
  if (is_new)
    tscope_retain(thread, tscope_ticks(), TSCOPE_REC_SHAPE, 0, &record, sizeof(record));
  return shape;
}

/* The kernel without its geometry. Cheap if the kernel was already met in this way: a job whose
 * geometry never repeats comes here with every launch. */
static u32 shape_without_geometry(struct tscope_thread *thread, const void *function) {
  const dim3 none = {0, 0, 0};
  u64 key = shape_key_with_name(shape_key(function, none, none), function), shape;
  tscope_count_lost(TSCOPE_LOSS_SHAPES, 1);
  return handle_map_get(&by_key, key, &shape) ? (u32)shape
                                              : write_shape(thread, key, function, none, none);
}

u32 shape_number_slow(struct tscope_thread *thread, u64 handle_key, const void *function, dim3 grid,
                      dim3 block) {
  u64 key = shape_key_with_name(handle_key, function), shape;
  if (!handle_map_get(&by_key, key, &shape)) {
    TSCOPE_KEEP_ERRNO;
    gpu_facts_record_once(thread);
    shape = __atomic_load_n(&n_shapes, __ATOMIC_RELAXED) < MAX_SHAPES
                ? write_shape(thread, key, function, grid, block)
                : 0;
    if (!shape)
      shape = shape_without_geometry(thread, function);
  }
  cuda_thread(thread)->shapes[handle_key % SHAPES_CACHED] =
      (struct shape_cached){.key = handle_key, .shape = (u32)shape};
  return (u32)shape;
}
