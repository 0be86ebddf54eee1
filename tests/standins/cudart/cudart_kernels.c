/* SPDX-License-Identifier: MIT
 *
 * Kernels as nvcc-compiled programs register and launch them. A kernel only takes time; the program
 * sets how long (standin.h).
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "../driver_pointer.h"
#include "cudart.h"

struct kernel {
  const void *host;  /* address of the host stub, the key */
  char *name;        /* mangled */
  CUfunction handle; /* the driver's, set at the first launch */
};

static void *by_host, *by_handle;

static int compare_host(const void *left, const void *right) {
  const struct kernel *a = left, *b = right;
  return (a->host > b->host) - (a->host < b->host);
}

static int compare_handle(const void *left, const void *right) {
  return (left > right) - (left < right);
}

static struct kernel *find(const void *function) {
  struct kernel wanted = {.host = function};
  void *found = tfind(&wanted, &by_host, compare_host);
  if (!found)
    found = tfind(function, &by_handle, compare_handle);
  return found ? *(struct kernel **)found : NULL;
}

CUDART_API void **__cudaRegisterFatBinary(void *fatbin);
CUDART_API void **__cudaRegisterFatBinary(void *fatbin) {
  static void *binaries[4096];
  static _Atomic size_t n;
  size_t i = n++ % (sizeof(binaries) / sizeof(*binaries));
  binaries[i] = fatbin;
  return &binaries[i];
}

CUDART_API void __cudaRegisterFatBinaryEnd(void **handle);
CUDART_API void __cudaRegisterFatBinaryEnd(void **handle) {
  (void)handle;
}

CUDART_API void __cudaUnregisterFatBinary(void **handle);
CUDART_API void __cudaUnregisterFatBinary(void **handle) {
  (void)handle;
}

CUDART_API void __cudaRegisterFunction(void **handle, const char *host, char *device,
                                       const char *name, int thread_limit, uint3 *tid, uint3 *bid,
                                       dim3 *block, dim3 *grid, int *warp);
CUDART_API void __cudaRegisterFunction(void **handle, const char *host, char *device,
                                       const char *name, int thread_limit, uint3 *tid, uint3 *bid,
                                       dim3 *block, dim3 *grid, int *warp) {
  (void)handle, (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid;
  (void)warp;
  struct kernel *kernel = calloc(1, sizeof(*kernel));
  if (!kernel)
    return;
  kernel->host = host;
  kernel->name = strdup(name ? name : "");
  sim_lock();
  tsearch(kernel, &by_host, compare_host);
  tsearch(kernel, &by_handle, compare_handle);
  sim_unlock();
}

/* A device variable: it has its own host memory, and the address of its host shadow is the key. */
struct variable {
  const void *host;
  void *memory;
};

static void *variables;

static int compare_variable(const void *left, const void *right) {
  const struct variable *a = left, *b = right;
  return (a->host > b->host) - (a->host < b->host);
}

CUDART_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                                  int external, size_t size, int constant, int global);
CUDART_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                                  int external, size_t size, int constant, int global) {
  (void)handle, (void)device, (void)name, (void)external, (void)constant, (void)global;
  struct variable *variable = calloc(1, sizeof(*variable));
  if (!variable)
    return;
  *variable = (struct variable){.host = host, .memory = calloc(1, size ? size : 1)};
  sim_lock();
  tsearch(variable, &variables, compare_variable);
  sim_unlock();
}

cudaError_t CUDART_API cudaGetSymbolAddress(void **address, const void *symbol) {
  struct variable wanted = {.host = symbol};
  sim_lock();
  struct variable **found = tfind(&wanted, &variables, compare_variable);
  *address = found ? (*found)->memory : NULL;
  sim_unlock();
  return remember(*address ? cudaSuccess : cudaErrorInvalidSymbol);
}

CUDART_API char __cudaInitModule(void **handle);
CUDART_API char __cudaInitModule(void **handle) {
  (void)handle;
  return 1;
}

static __thread struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} configuration;

CUDART_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                cudaStream_t stream);
CUDART_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                cudaStream_t stream) {
  configuration.grid = grid;
  configuration.block = block;
  configuration.shared = shared;
  configuration.stream = stream;
  return 0;
}

CUDART_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                  void *stream);
CUDART_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                  void *stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *(cudaStream_t *)stream = configuration.stream;
  return cudaSuccess;
}

/* The driver's functions that a launch needs, looked up at the first launch. */
static struct {
  CUresult (*get_kernel)(CUkernel *, CUlibrary, const char *);
  CUresult (*launch[2])(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);
} driver;

static bool find_driver(void) {
  if (!driver.launch[1]) {
    *(void **)&driver.get_kernel = driver_pointer("cuLibraryGetKernel", false);
    *(void **)&driver.launch[0] = driver_pointer("cuLaunchKernel", false);
    *(void **)&driver.launch[1] = driver_pointer("cuLaunchKernel", true);
  }
  return driver.get_kernel && driver.launch[0] && driver.launch[1];
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block, cudaStream_t stream,
                          bool own) {
  sim_lock();
  struct kernel *kernel = find(function);
  sim_unlock();
  if (!kernel)
    return remember(cudaErrorInvalidDeviceFunction);
  if (!find_driver() ||
      (!kernel->handle && driver.get_kernel((CUkernel *)&kernel->handle, NULL, kernel->name)))
    return remember(cudaErrorInitializationError);
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z ||
      (size_t)block.x * block.y * block.z > 1024)
    return remember(cudaErrorInvalidConfiguration);
  ensure_context();
  CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, void **, void **) = driver.launch[own];
  return remember((cudaError_t)launch_kernel(kernel->handle, grid.x, grid.y, grid.z, block.x,
                                             block.y, block.z, 0, stream, NULL, NULL));
}

TWINS(cudaLaunchKernel, _ptsz,
      (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
      ((void)args, (void)shared, launch(func, grid, block, stream, own)))
TWINS(__cudaLaunchKernel, _ptsz,
      (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
      ((void)args, (void)shared, launch(kernel, grid, block, stream, own)))
TWINS(cudaLaunchCooperativeKernel, _ptsz,
      (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
      ((void)args, (void)shared, launch(func, grid, block, stream, own)))
TWINS(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t *config, const void *func, void **args),
      ((void)args, launch(func, config->gridDim, config->blockDim, config->stream, own)))

static cudaError_t get_kernel(cudaKernel_t *handle, const void *host) {
  sim_lock();
  struct kernel *kernel = find(host);
  sim_unlock();
  *handle = (cudaKernel_t)kernel;
  return remember(kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

CUDART_API cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *host);
CUDART_API cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *host) {
  return get_kernel(handle, host);
}

cudaError_t CUDART_API cudaGetKernel(cudaKernel_t *handle, const void *host) {
  return get_kernel(handle, host);
}

cudaError_t CUDART_API cudaFuncGetName(const char **name, const void *function) {
  sim_lock();
  const struct kernel *kernel = find(function);
  sim_unlock();
  if (!kernel)
    return remember(cudaErrorInvalidDeviceFunction);
  *name = kernel->name;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                             const void *function) {
  memset(attributes, 0, sizeof(*attributes));
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  sim_lock();
  const struct kernel *kernel = find(function);
  sim_unlock();
  return remember(kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t CUDART_API cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                            int value) {
  (void)function, (void)attribute, (void)value;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config) {
  (void)function, (void)config;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                     const void *function,
                                                                     int threads, size_t shared) {
  (void)function, (void)shared;
  *blocks = threads > 0 ? 2048 / threads : 0;
  return cudaSuccess;
}

cudaError_t CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int threads, size_t shared, unsigned flags) {
  (void)flags;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
