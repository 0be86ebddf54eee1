/* SPDX-License-Identifier: MIT */
#include "cuda/gpu_facts.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "cuda/last_error.h"
#include "gpu/gpu_clock.h"
#include "streams/cuda_thread.h"

static bool reported;

static void *find_function(struct tscope_symbol *symbol) {
  return tscope_resolve(symbol, NULL);
}

static void record_version(struct tscope_thread *thread, enum tscope_info key, int code) {
  char text[32];
  snprintf(text, sizeof(text), "%d.%d", code / 1000, code % 1000 / 10);
  tscope_info(thread, key, text, NULL);
}

static void record_memory(struct tscope_thread *thread, size_t bytes) {
  char text[32];
  snprintf(text, sizeof(text), "%zu", bytes);
  tscope_info(thread, TSCOPE_INFO_GPU_MEMORY, text, NULL);
}

/* The driver's functions leave the job's last error alone. */
static bool record_device_by_driver(struct tscope_thread *thread) {
  static struct tscope_symbol ctx = {.name = "cuCtxGetDevice", .sonames = tscope_driver_sonames};
  static struct tscope_symbol name = {.name = "cuDeviceGetName", .sonames = tscope_driver_sonames};
  static struct tscope_symbol memory = {.name = "cuDeviceTotalMem_v2",
                                        .sonames = tscope_driver_sonames};
  int (*get_device)(int *) = find_function(&ctx);
  int (*get_name)(char *, int, int) = find_function(&name);
  int (*get_memory)(size_t *, int) = find_function(&memory);
  int device;
  char text[256];
  size_t bytes;
  if (!get_device || !get_name || !get_memory || get_device(&device) ||
      get_name(text, sizeof(text), device) || get_memory(&bytes, device))
    return false;
  text[sizeof(text) - 1] = '\0';
  tscope_info(thread, TSCOPE_INFO_GPU_NAME, text, NULL);
  record_memory(thread, bytes);
  return true;
}

/* struct cudaDeviceProp grew with every version, but its start has been the same since CUDA 10. */
union device_properties {
  struct {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned int luid_device_node_mask;
    size_t total_memory;
  } start;
  char room[8192];
};

static void record_device_by_runtime(struct tscope_thread *thread) {
  static struct tscope_symbol current = {.name = "cudaGetDevice", .sonames = tscope_cuda_sonames};
  static struct tscope_symbol newer = {.name = "cudaGetDeviceProperties_v2",
                                       .sonames = tscope_cuda_sonames};
  static struct tscope_symbol plain = {.name = "cudaGetDeviceProperties",
                                       .sonames = tscope_cuda_sonames};
  cudaError_t (*get_device)(int *) = find_function(&current);
  cudaError_t (*get_properties)(void *, int) = find_function(&newer);
  if (!get_properties)
    get_properties = find_function(&plain);
  static union device_properties properties; /* written once; the stack may be small */
  int device;
  if (!get_device || !get_properties || !last_error_is_clear())
    return;
  if (get_device(&device) == cudaSuccess && get_properties(&properties, device) == cudaSuccess) {
    properties.start.name[sizeof(properties.start.name) - 1] = '\0';
    tscope_info(thread, TSCOPE_INFO_GPU_NAME, properties.start.name, NULL);
    record_memory(thread, properties.start.total_memory);
  }
  last_error_clear();
}

void gpu_facts_record_once(struct tscope_thread *thread) {
  if (TSCOPE_LIKELY(__atomic_load_n(&reported, __ATOMIC_RELAXED)) ||
      __atomic_exchange_n(&reported, true, __ATOMIC_RELAXED))
    return;
  static struct tscope_symbol driver = {.name = "cudaDriverGetVersion",
                                        .sonames = tscope_cuda_sonames};
  static struct tscope_symbol runtime = {.name = "cudaRuntimeGetVersion",
                                         .sonames = tscope_cuda_sonames};
  const struct {
    struct tscope_symbol *symbol;
    enum tscope_info key;
  } versions[] = {{&driver, TSCOPE_INFO_CUDA_DRIVER}, {&runtime, TSCOPE_INFO_CUDA_RUNTIME}};
  for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
    cudaError_t (*get_version)(int *) = find_function(versions[i].symbol);
    int code;
    if (get_version && get_version(&code) == cudaSuccess && code > 0)
      record_version(thread, versions[i].key, code);
  }
  if (!record_device_by_driver(thread))
    record_device_by_runtime(thread);
  gpu_clock_register_close();
}

int gpu_facts_runtime_version(const struct tscope_thread *thread) {
  static struct tscope_symbol symbols[] =
      TSCOPE_QUERY("cudaRuntimeGetVersion", tscope_cuda_sonames);
  cudaError_t (*get_version)(int *) = tscope_query_function(symbols, thread);
  int version;
  TSCOPE_KEEP_ERRNO;
  bool known = get_version && get_version(&version) == cudaSuccess;
  return known ? version : 0;
}
