/* SPDX-License-Identifier: MIT
 *
 * A program with a CUPTI client that loads CUPTI by name, as Triton's profiler does. It launches
 * kernels before, within and between two sessions. It prints what the client got, which must be the
 * same whatever other library is in the process.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda_runtime_api.h>
#include <cupti.h>

#include "../standin.h"

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *);

static char kernel;
static void *library;
static size_t kernels, others, unfinished, foreign;
static void *buffer;
enum { BUFFER_BYTES = 1 << 20 };

static void *function(const char *name) {
  void *address = dlsym(library, name);
  if (!address) {
    fprintf(stderr, "no %s\n", name);
    exit(2);
  }
  return address;
}

#define CALL(name, ...) ((__typeof__(&name))function(#name))(__VA_ARGS__)

static void must(int result, const char *what) {
  if (result) {
    fprintf(stderr, "%s: %d\n", what, result);
    exit(2);
  }
}

static void CUPTIAPI requested(uint8_t **start, size_t *bytes, size_t *most) {
  buffer = calloc(1, BUFFER_BYTES);
  *start = buffer;
  *bytes = BUFFER_BYTES;
  *most = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *start, size_t size,
                               size_t valid) {
  (void)context, (void)stream, (void)size;
  CUpti_Activity *record = NULL;
  foreign += start != buffer;
  while (CALL(cuptiActivityGetNextRecord, start, valid, &record) == CUPTI_SUCCESS) {
    const CUpti_ActivityKernel9 *work = (const void *)record;
    bool is_kernel = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernels += is_kernel;
    others += !is_kernel;
    unfinished += is_kernel && !work->start;
  }
}

static void launch(int n) {
  for (int i = 0; i < n; i++) {
    standin_next_kernel_ns(100000);
    must(cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL), "launch");
  }
}

static void session(int n) {
  must(CALL(cuptiActivityRegisterCallbacks, requested, completed), "callbacks");
  must(CALL(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable");
  launch(n);
  cudaDeviceSynchronize();
  must(CALL(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "disable");
  must(CALL(cuptiActivityFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "flush");
  printf("kernels %zu, others %zu, unfinished %zu, foreign buffers %zu\n", kernels, others,
         unfinished, foreign);
}

int main(void) {
  const char *name = "_Z6kernelv";
  static int fatbin;
  void *memory;
  const struct timespec pause = {.tv_nsec = 400000000};
  __cudaRegisterFunction(__cudaRegisterFatBinary(&fatbin), &kernel, (char *)(uintptr_t)name, name,
                         -1, NULL, NULL, NULL, NULL, NULL);
  must(cudaMalloc(&memory, 1), "malloc");
  library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  launch(5); /* still running when the session begins */
  session(7);
  nanosleep(&pause, NULL); /* time for a profiler that left CUPTI to the client to take it back */
  launch(11);
  cudaDeviceSynchronize();
  session(13);
  cudaFree(memory);
  return 0;
}
