/* SPDX-License-Identifier: MIT */
#include "shapes.h"

#include <errno.h>

#include "gpu_facts.h"
#include "handle_map.h"
#include "kernel_names.h"

enum {
  MAX_SHAPES = 32768,     /* kernels with geometry */
  MAX_BARE_SHAPES = 8192, /* kernels alone, for when those have run out */
};

HANDLE_MAP(by_key, 2 * MAX_SHAPES);

static u32 n_shapes, n_bare; /* guarded by by_key's lock */

static u32 announce(struct tscope_thread *thread, u64 key, const void *function, dim3 grid,
                    dim3 block, u32 name) {
  handle_map_lock(&by_key);
  u64 shape = 0;
  bool bare = grid.x == 0;
  if (!handle_map_get(&by_key, key, &shape) &&
      (bare ? n_bare < MAX_BARE_SHAPES : n_shapes < MAX_SHAPES)) {
    shape = bare ? MAX_SHAPES + ++n_bare : ++n_shapes;
    struct tscope_shape_record record = {
        .shape = (u32)shape,
        .kernel = name,
        .grid_x = grid.x,
        .grid_y = grid.y,
        .grid_z = grid.z,
        .block_x = block.x,
        .block_y = block.y,
        .block_z = block.z,
        .function = (u64)(uintptr_t)function,
    };
    tscope_spine(thread, tscope_ticks(), TSCOPE_REC_SHAPE, 0, &record, sizeof record);
    if (!handle_map_put_locked(&by_key, key, shape))
      tscope_lose(TSCOPE_LOSS_SHAPES, 1);
  }
  handle_map_unlock(&by_key);
  return (u32)shape;
}

u32 shape_number_slow(struct tscope_thread *thread, u64 key, const void *function, dim3 grid,
                      dim3 block) {
  u64 shape;
  if (!handle_map_get(&by_key, key, &shape)) {
    int saved = errno;
    gpu_facts_tell_once(thread);
    u32 name = tscope_string(thread, kernel_name(function));
    shape = announce(thread, key, function, grid, block, name);
    if (!shape) {
      tscope_lose(TSCOPE_LOSS_SHAPES, 1);
      dim3 none = {0, 0, 0};
      shape = announce(thread, shape_key(function, none, none), function, none, none, name);
    }
    errno = saved;
  }
  cuda_thread(thread)->shapes[key % SHAPES_CACHED] =
      (struct shape_cached){.key = key, .shape = (u32)shape};
  return (u32)shape;
}
