/* SPDX-License-Identifier: MIT */
#include "cuda/gpu_facts.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "cuda/last_error.h"
#include "gpu/gpu_clock.h"
#include "streams/stream_numbers.h"

static bool reported;

static void record_version(struct tscope_thread *thread, enum tscope_info key,
                           int (*get_version)(int *)) {
  char text[32];
  int code;
  if (!get_version || get_version(&code) || code <= 0)
    return;
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
  int (*get_name)(char *, int, int) = DRIVER_FUNCTION("cuDeviceGetName");
  int (*get_memory)(size_t *, int) = DRIVER_FUNCTION("cuDeviceTotalMem_v2");
  i32 device = cuda_current_device();
  char text[256];
  size_t bytes;
  if (device < 0 || !get_name || !get_memory || get_name(text, sizeof(text), device) ||
      get_memory(&bytes, device))
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
  cudaError_t (*get_device)(int *) = CUDA_FUNCTION("cudaGetDevice");
  cudaError_t (*get_properties)(void *, int) = CUDA_FUNCTION("cudaGetDeviceProperties_v2");
  if (!get_properties)
    get_properties = CUDA_FUNCTION("cudaGetDeviceProperties");
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
  record_version(thread, TSCOPE_INFO_CUDA_DRIVER, DRIVER_FUNCTION("cuDriverGetVersion"));
  record_version(thread, TSCOPE_INFO_CUDA_RUNTIME, CUDA_FUNCTION("cudaRuntimeGetVersion"));
  if (!record_device_by_driver(thread))
    record_device_by_runtime(thread);
  gpu_clock_register_close();
}

int gpu_facts_runtime_version(const struct tscope_thread *thread) {
  cudaError_t (*get_version)(int *) =
      TSCOPE_FUNCTION_OF_COPY("cudaRuntimeGetVersion", tscope_cuda_sonames, thread);
  int version;
  TSCOPE_KEEP_ERRNO;
  bool known = get_version && get_version(&version) == cudaSuccess;
  return known ? version : 0;
}
