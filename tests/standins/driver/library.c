/* SPDX-License-Identifier: MIT
 *
 * Modules and libraries. Binaries are not read: every kernel or variable that is looked up exists.
 * A kernel handle and a function handle are the address of the symbol's entry in the list; the
 * entries of what was unloaded are used again, so that handles come back as with the driver.
 */
#include <stdlib.h>
#include <string.h>

#include "cu_launch.h"
#include "driver.h"

enum { VARIABLE_BYTES = 1 << 20 };

/* A kernel or variable that was looked up. */
struct symbol {
  struct symbol *next;
  const void *binary; /* the library or module, NULL for none, `unloaded` after it; `former` if the
                         entry only keeps a name for work that is under way */
  char *name;
  void *memory; /* of a variable */
};

static struct symbol *kernels, *variables;
static const char unloaded, former;

static struct symbol *find(struct symbol *list, const void *binary, const char *name) {
  while (list && (list->binary != binary || (name && strcmp(list->name, name))))
    list = list->next;
  return list;
}

static struct symbol *find_or_add(struct symbol **list, const void *binary, const char *name) {
  sim_lock();
  struct symbol *entry = find(*list, binary, name);
  if (!entry && (entry = find(*list, &unloaded, NULL))) {
    struct symbol *keeper = calloc(1, sizeof(*keeper));
    if (keeper) {
      *keeper = (struct symbol){.next = *list, .binary = &former, .name = entry->name};
      *list = keeper;
    }
    entry->binary = binary;
    entry->name = strdup(name);
  }
  if (!entry && (entry = calloc(1, sizeof(*entry)))) {
    *entry = (struct symbol){.next = *list, .binary = binary, .name = strdup(name)};
    *list = entry;
  }
  sim_unlock();
  return entry;
}

const char *driver_kernel_name(const void *handle) {
  const char *name = NULL;
  sim_lock();
  for (const struct symbol *entry = kernels; entry && !name; entry = entry->next)
    if (entry == handle)
      name = entry->name;
  sim_unlock();
  return name;
}

static CUresult unload(const void *binary) {
  sim_lock();
  for (struct symbol *entry = kernels; entry; entry = entry->next)
    if (entry->binary == binary)
      entry->binary = &unloaded;
  sim_unlock();
  return CUDA_SUCCESS;
}

static CUresult new_handle(void **handle) {
  *handle = calloc(1, 16);
  return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY(cuModuleLoadData, (CUmodule * module, const void *image)) {
  (void)image;
  return new_handle((void **)module);
}

ENTRY(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned options,
                           CUjit_option *names, void **values)) {
  (void)image, (void)options, (void)names, (void)values;
  return new_handle((void **)module);
}

ENTRY(cuModuleLoadFatBinary, (CUmodule * module, const void *image)) {
  (void)image;
  return new_handle((void **)module);
}

ENTRY(cuModuleLoad, (CUmodule * module, const char *path)) {
  (void)path;
  return new_handle((void **)module);
}

ENTRY(cuModuleUnload, (CUmodule module)) {
  return unload(module);
}

ENTRY(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode)) {
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

ENTRY(cuLibraryLoadData,
      (CUlibrary * library, const void *code, CUjit_option *jit, void **jit_values, unsigned n_jit,
       CUlibraryOption *options, void **values, unsigned n_options)) {
  (void)code, (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values;
  (void)n_options;
  return new_handle((void **)library);
}

ENTRY(cuLibraryUnload, (CUlibrary library)) {
  return unload(library);
}

ENTRY(cuLibraryGetModule, (CUmodule * module, CUlibrary library)) {
  *module = (CUmodule)library;
  return CUDA_SUCCESS;
}

static CUresult get_kernel(void **handle, const void *binary, const char *name) {
  *handle = find_or_add(&kernels, binary, name);
  return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name)) {
  return get_kernel((void **)kernel, library, name);
}

ENTRY(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name)) {
  return get_kernel((void **)function, module, name);
}

ENTRY(cuKernelGetFunction, (CUfunction * function, CUkernel kernel)) {
  *function = (CUfunction)kernel;
  return CUDA_SUCCESS;
}

ENTRY(cuKernelGetLibrary, (CUlibrary * library, CUkernel kernel)) {
  *library = (CUlibrary)(uintptr_t)((struct symbol *)kernel)->binary;
  return CUDA_SUCCESS;
}

ENTRY(cuFuncGetModule, (CUmodule * module, CUfunction function)) {
  *module = (CUmodule)(uintptr_t)((struct symbol *)function)->binary;
  return CUDA_SUCCESS;
}

static CUresult get_name(const char **name, const void *handle) {
  *name = driver_kernel_name(handle);
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY(cuFuncGetName, (const char **name, CUfunction function)) {
  return get_name(name, function);
}

ENTRY(cuKernelGetName, (const char **name, CUkernel kernel)) {
  return get_name(name, kernel);
}

static CUresult get_variable(CUdeviceptr *pointer, size_t *bytes, const void *binary,
                             const char *name) {
  struct symbol *entry = find_or_add(&variables, binary, name);
  if (entry && !entry->memory)
    sim_allocate(&entry->memory, VARIABLE_BYTES, cudaMemoryTypeDevice);
  if (!entry || !entry->memory)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (pointer)
    *pointer = (CUdeviceptr)(uintptr_t)entry->memory;
  if (bytes)
    *bytes = VARIABLE_BYTES;
  return CUDA_SUCCESS;
}

ENTRY(cuModuleGetGlobal_v2,
      (CUdeviceptr * pointer, size_t *bytes, CUmodule module, const char *name)) {
  return get_variable(pointer, bytes, module, name);
}

ENTRY(cuLibraryGetGlobal,
      (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name)) {
  return get_variable(pointer, bytes, library, name);
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? 1024
           : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS                      ? 32
           : attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION                   ? 90
           : attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION                ? 90
           : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 49152
                                                                          : 0;
  return CUDA_SUCCESS;
}

ENTRY(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function)) {
  (void)function;
  return get_attribute(value, attribute);
}

ENTRY(cuKernelGetAttribute,
      (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)) {
  (void)kernel, (void)device;
  return get_attribute(value, attribute);
}

ENTRY(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value)) {
  (void)function, (void)attribute, (void)value;
  return CUDA_SUCCESS;
}

ENTRY(cuKernelSetAttribute,
      (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)) {
  (void)kernel, (void)attribute, (void)value, (void)device;
  return CUDA_SUCCESS;
}

ENTRY(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config)) {
  (void)function, (void)config;
  return CUDA_SUCCESS;
}

ENTRY(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice device)) {
  (void)kernel, (void)config, (void)device;
  return CUDA_SUCCESS;
}

ENTRY(cuFuncLoad, (CUfunction function)) {
  (void)function;
  return CUDA_SUCCESS;
}

ENTRY(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function)) {
  (void)function;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

static CUresult occupancy(int *blocks, int threads) {
  *blocks = threads > 0 ? 2048 / threads : 0;
  return CUDA_SUCCESS;
}

ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
      (int *blocks, CUfunction function, int threads, size_t shared)) {
  (void)function, (void)shared;
  return occupancy(blocks, threads);
}

ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
      (int *blocks, CUfunction function, int threads, size_t shared, unsigned flags)) {
  (void)function, (void)shared, (void)flags;
  return occupancy(blocks, threads);
}

ENTRY(cuOccupancyMaxPotentialBlockSize,
      (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_size, size_t shared,
       int limit)) {
  (void)function, (void)shared_size, (void)shared, (void)limit;
  *grid = 132;
  *block = 1024;
  return CUDA_SUCCESS;
}

ENTRY(cuOccupancyMaxActiveClusters,
      (int *clusters, CUfunction function, const CUlaunchConfig *config)) {
  (void)function, (void)config;
  *clusters = 66;
  return CUDA_SUCCESS;
}
