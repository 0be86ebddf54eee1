/* SPDX-License-Identifier: MIT */
#include "kernel_names.h"

#include <cuda_runtime_api.h>

#include "cuda_thread.h"
#include "handle_map.h"
#include "last_error.h"

/* A training framework brings some ten thousand kernels; pages of the table that are not used are
 * never touched. */
HANDLE_MAP(names, 1 << 17);

void kernel_name_register(const void *function, const char *name) {
  if (function && name)
    handle_map_put(&names, (u64)(uintptr_t)function, (u64)(uintptr_t)name);
}

void kernel_name_alias(const void *kernel, const void *function) {
  u64 name;
  if (kernel && handle_map_get(&names, (u64)(uintptr_t)function, &name))
    handle_map_put(&names, (u64)(uintptr_t)kernel, name);
}

const char *kernel_name(const void *function) {
  u64 known;
  if (handle_map_get(&names, (u64)(uintptr_t)function, &known))
    return (const char *)(uintptr_t)known;
  static struct tscope_symbol symbol = {.name = "cudaFuncGetName", .sonames = tscope_cuda_sonames};
  cudaError_t (*get_name)(const char **, const void *) = tscope_resolve(&symbol, NULL);
  const char *name = NULL;
  if (!get_name || !last_error_is_clear())
    return NULL;
  if (get_name(&name, function) != cudaSuccess)
    name = NULL;
  last_error_clear();
  return name;
}
