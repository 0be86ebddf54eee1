/* SPDX-License-Identifier: MIT
 *
 * A known number of kernels of known length, for machines with a GPU and without PyTorch;
 * scripts/gpu-check runs it. The kernels are PTX, which every driver compiles for its GPU.
 *
 *   launches count        launches with the driver API and, if possible, with the runtime API; a
 *                         copy and a fill; a graph and its replays; long kernels, timed by events
 *   launches pace         the time of a launch in a loop of kernels that do nothing
 *   launches cost KINDS   what calls cost before CUPTI records activities of these kinds (numbers
 *                         with commas between), meanwhile, and afterwards; without the shim
 *
 * Prints one JSON object. `long_from` and `long_to`, in seconds of CLOCK_MONOTONIC, are the times
 * just before the launch of the first long kernel and just after the end of the last. After a CUDA
 * error it prints the error's text and exits with status 1.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

enum {
  LONG_KERNELS = 40,
  TINY_KERNELS = 300,
  CAPTURED = 7,
  REPLAYS = 20,
  PACED = 20000,
  QUEUED = 900,
  ROUNDS = 9
};

static const char ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
                          ".visible .entry check_tiny() { ret; }\n"
                          ".visible .entry check_graphed() { ret; }\n"
                          ".visible .entry check_long(.param .u64 ns) {\n"
                          "  .reg .u64 %r<5>; .reg .pred %p;\n"
                          "  ld.param.u64 %r1, [ns];\n"
                          "  mov.u64 %r2, %globaltimer;\n"
                          "again:\n"
                          "  mov.u64 %r3, %globaltimer;\n"
                          "  sub.u64 %r4, %r3, %r2;\n"
                          "  setp.lt.u64 %p, %r4, %r1;\n"
                          "  @%p bra again;\n"
                          "  ret;\n"
                          "}\n";

#define CUDA(call)                                                                                 \
  do {                                                                                             \
    int error_ = (int)(call);                                                                      \
    if (error_) {                                                                                  \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString((cudaError_t)error_));                 \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static CUfunction kernel(CUmodule module, const char *name) {
  CUfunction function;
  CUDA(cuModuleGetFunction(&function, module, name));
  return function;
}

static void launch(CUfunction function, cudaStream_t stream, void **arguments) {
  CUDA(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

/* A kernel from PTX for the runtime API; NULL with runtimes before CUDA 12.8, and with the
 * stand-in, which refuses. The functions are looked up by name, because older runtimes lack them.
 */
static const void *runtime_kernel(const char *name) {
  typedef cudaError_t load_function(void **, const void *, void *, void **, unsigned, void *,
                                    void **, unsigned);
  typedef cudaError_t get_function(const void **, void *, const char *);
  load_function *load = (load_function *)dlsym(RTLD_DEFAULT, "cudaLibraryLoadData");
  get_function *get = (get_function *)dlsym(RTLD_DEFAULT, "cudaLibraryGetKernel");
  void *library;
  const void *found = NULL;
  if (!load || !get)
    return NULL;
  cudaError_t loaded = load(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
  if (loaded == cudaErrorNotSupported)
    return NULL;
  CUDA(loaded);
  CUDA(get(&found, library, name));
  return found;
}

static void launch_by_runtime(const void *function, cudaStream_t stream) {
  dim3 grid = {1, 1, 1}, block = {32, 1, 1};
  CUDA(cudaLaunchKernel(function, grid, block, NULL, 0, stream));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void count(CUmodule module, cudaStream_t stream) {
  CUfunction tiny = kernel(module, "check_tiny"), graphed = kernel(module, "check_graphed");
  CUfunction long_kernel = kernel(module, "check_long");
  const void *by_runtime = runtime_kernel("check_tiny");
  for (int i = 0; i < TINY_KERNELS; i++)
    launch(tiny, stream, NULL);
  for (int i = 0; by_runtime && i < TINY_KERNELS; i++)
    launch_by_runtime(by_runtime, stream);

  void *memory;
  static char host[4096];
  CUDA(cudaMalloc(&memory, sizeof(host)));
  CUDA(cudaMemsetAsync(memory, 1, sizeof(host), stream));
  CUDA(cudaMemcpyAsync(host, memory, sizeof(host), cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));

  cudaGraph_t graph;
  cudaGraphExec_t replayed;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < CAPTURED; i++)
    launch(graphed, stream, NULL);
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiateWithFlags(&replayed, graph, 0));
  for (int i = 0; i < REPLAYS; i++)
    CUDA(cudaGraphLaunch(replayed, stream));
  CUDA(cudaStreamSynchronize(stream));

  uint64_t ns = 2000000;
  void *arguments[] = {&ns};
  cudaEvent_t start, end;
  float ms;
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&end));
  double from = now();
  launch(long_kernel, stream, arguments);
  CUDA(cudaEventRecord(start, stream));
  for (int i = 0; i < LONG_KERNELS; i++)
    launch(long_kernel, stream, arguments);
  CUDA(cudaEventRecord(end, stream));
  CUDA(cudaStreamSynchronize(stream));
  double to = now();
  CUDA(cudaEventElapsedTime(&ms, start, end));
  printf("{\"check_tiny\": %d, \"check_graphed\": %d, \"check_long\": %d, \"replays\": %d, "
         "\"long_ms\": %.6f, \"long_from\": %.9f, \"long_to\": %.9f, \"filled\": %d, "
         "\"by_runtime\": %s}\n",
         TINY_KERNELS * (by_runtime ? 2 : 1), CAPTURED * REPLAYS, LONG_KERNELS + 1, REPLAYS,
         (double)ms, from, to, host[17], by_runtime ? "true" : "false");
}

static int by_size(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void pace(CUmodule module, cudaStream_t stream) {
  CUfunction tiny = kernel(module, "check_tiny");
  double us[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    CUDA(cudaStreamSynchronize(stream));
    double began = now();
    for (int i = 0; i < PACED; i++)
      launch(tiny, stream, NULL);
    CUDA(cudaStreamSynchronize(stream));
    us[round] = 1e6 * (now() - began) / PACED;
  }
  qsort(us, ROUNDS, sizeof(*us), by_size);
  printf("{\"launch_us\": %.4f}\n", us[ROUNDS / 2]);
}

static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  *bytes = 512 << 10;
  *buffer = calloc(1, *bytes);
  *max_records = 0;
}

static void completed(void *context, uint32_t id, uint8_t *buffer, size_t bytes, size_t valid) {
  (void)context, (void)id, (void)bytes, (void)valid;
  free(buffer);
}

/* Median microseconds of the host in each of three calls: a launch, one that only asks, and the
 * record of an event. Fewer launches than the driver's queue holds, so that none waits for the GPU.
 */
static void print_costs(const char *when, CUfunction tiny, cudaStream_t stream, const char *end) {
  double us[3][ROUNDS];
  cudaEvent_t event;
  int device;
  CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int round = 0; round < ROUNDS; round++)
    for (int call = 0; call < 3; call++) {
      CUDA(cudaStreamSynchronize(stream));
      double began = now();
      for (int i = 0; i < QUEUED; i++)
        if (call == 0)
          launch(tiny, stream, NULL);
        else if (call == 1)
          CUDA(cudaGetDevice(&device));
        else
          CUDA(cudaEventRecord(event, stream));
      us[call][round] = 1e6 * (now() - began) / QUEUED;
    }
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaEventDestroy(event));
  for (int call = 0; call < 3; call++)
    qsort(us[call], ROUNDS, sizeof(**us), by_size);
  printf("\"%s\": [%.4f, %.4f, %.4f]%s", when, us[0][ROUNDS / 2], us[1][ROUNDS / 2],
         us[2][ROUNDS / 2], end);
}

static void cost(CUmodule module, cudaStream_t stream, const char *kinds) {
  CUfunction tiny = kernel(module, "check_tiny");
  void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
  cupti = cupti ? cupti : dlopen("libcupti.so.12", RTLD_NOW);
  int (*callbacks)(void *, void *) = cupti ? dlsym(cupti, "cuptiActivityRegisterCallbacks") : NULL;
  int (*enable)(int) = cupti ? dlsym(cupti, "cuptiActivityEnable") : NULL;
  int (*disable)(int) = cupti ? dlsym(cupti, "cuptiActivityDisable") : NULL;
  int (*flush)(uint32_t) = cupti ? dlsym(cupti, "cuptiActivityFlushAll") : NULL;
  if (!callbacks || !enable || !disable || !flush) {
    fprintf(stderr, "CUPTI was not found: %s\n", dlerror());
    exit(1);
  }
  for (int i = 0; i < PACED; i++)
    launch(tiny, stream, NULL);
  printf("{");
  print_costs("before", tiny, stream, ", ");
  CUDA(callbacks((void *)requested, (void *)completed));
  char *end;
  for (const char *at = kinds; *at; at = *end ? end + 1 : end)
    CUDA(enable((int)strtol(at, &end, 10)));
  print_costs("enabled", tiny, stream, ", ");
  for (const char *at = kinds; *at; at = *end ? end + 1 : end)
    CUDA(disable((int)strtol(at, &end, 10)));
  CUDA(flush(1));
  print_costs("disabled", tiny, stream, "}\n");
}

int main(int argc, char **argv) {
  CUmodule module;
  cudaStream_t stream;
  bool costs = argc == 3 && !strcmp(argv[1], "cost");
  if (!costs && (argc != 2 || (strcmp(argv[1], "count") && strcmp(argv[1], "pace")))) {
    fprintf(stderr, "usage: launches count|pace|cost KINDS\n");
    return 2;
  }
  CUDA(cudaSetDevice(0));
  CUDA(cudaFree(NULL)); /* creates the context */
  CUDA(cuModuleLoadData(&module, ptx));
  CUDA(cudaStreamCreate(&stream));
  if (costs)
    cost(module, stream, argv[2]);
  else if (!strcmp(argv[1], "count"))
    count(module, stream);
  else
    pace(module, stream);
  return 0;
}
