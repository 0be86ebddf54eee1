/* SPDX-License-Identifier: MIT */
#include "cuda/kernel_names.h"

#include <cuda_runtime_api.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/last_error.h"
#include "hooks/handle_map.h"
#include "record/atomics.h"
#include "record/reserve.h"
#include "resolve/search.h"
#include "resolve/unloading.h"
#include "streams/cuda_thread.h"

/* A training framework has about ten thousand kernels; unused pages of the table are never
 * touched. */
enum { COPIES_BYTES = 8 << 20, LONGEST_COPY = 64 << 10 };
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

static char *copies; /* reserved with the first one */

static bool reserve_copies(void) {
  char *none = NULL;
  if (__atomic_load_n(&copies, __ATOMIC_ACQUIRE))
    return true;
  TSCOPE_KEEP_ERRNO;
  void *made = tscope_reserve_map(-1, COPIES_BYTES);
  if (made != MAP_FAILED &&
      !__atomic_compare_exchange_n(&copies, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    munmap(made, COPIES_BYTES); /* another thread was faster */
  return made != MAP_FAILED;
}

/* NULL if there is no room for it. */
static const char *copy_of(const char *name) {
  static u32 used;
  u32 place;
  size_t bytes = name ? strlen(name) + 1 : COPIES_BYTES;
  if (bytes > LONGEST_COPY || !reserve_copies() ||
      !tscope_atomic_take(&used, bytes, COPIES_BYTES, &place))
    return NULL;
  return memcpy(&copies[place], name, bytes);
}

void kernel_name_register_driver(const void *handle, const char *name) {
  u64 key = (u64)(uintptr_t)handle | KERNEL_OF_DRIVER, known = 0;
  if (!handle || (handle_map_get(&names, key, &known) && name &&
                  !strcmp((const char *)(uintptr_t)known, name)))
    return;
  const char *copy = copy_of(name);
  if (copy)
    handle_map_put(&names, key, (u64)(uintptr_t)copy);
  if (!known)
    return;
  if (!copy) /* the name of what is gone would be wrong */
    handle_map_remove(&names, key, &known);
  cuda_kernel_handle_ends();
}

u64 kernel_name_entry(const void *function) {
  u64 entry;
  return handle_map_get(&names, (u64)(uintptr_t)function, &entry) ? entry : 0;
}

/* The driver's functions leave the job's last error alone. A kernel handle may be launched in place
 * of a function's. */
static const char *query_driver(const void *handle) {
  int (*get_function_name)(const char **, const void *) = DRIVER_FUNCTION("cuFuncGetName");
  int (*get_kernel_name)(const char **, const void *) = DRIVER_FUNCTION("cuKernelGetName");
  const char *name = NULL;
  if (get_function_name && !get_function_name(&name, handle) && name)
    return name;
  if (get_kernel_name && !get_kernel_name(&name, handle))
    return name;
  return NULL;
}

/* The name lies in the library that has the kernel. Once that is unloaded, a runtime may give its
 * handle to another kernel. */
static bool is_loaded(u64 name) {
  struct tscope_object object;
  return !tscope_unloads() || name - (u64)(uintptr_t)copies < COPIES_BYTES ||
         tscope_object_of((const void *)(uintptr_t)name, &object);
}

const char *kernel_name(const void *function) {
  u64 known;
  if (handle_map_get(&names, (u64)(uintptr_t)function, &known) && is_loaded(known))
    return (const char *)(uintptr_t)known;
  if ((u64)(uintptr_t)function & KERNEL_OF_DRIVER)
    return query_driver((const void *)((uintptr_t)function & ~(uintptr_t)KERNEL_OF_DRIVER));
  cudaError_t (*get_name)(const char **, const void *) = CUDA_FUNCTION("cudaFuncGetName");
  const char *name = NULL;
  if (!get_name || !last_error_is_clear())
    return NULL;
  if (get_name(&name, function) != cudaSuccess)
    name = NULL;
  last_error_clear();
  return name;
}
