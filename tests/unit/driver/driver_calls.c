/* SPDX-License-Identifier: MIT
 *
 * Work given to the GPU through the driver is recorded once, however the driver's function was
 * found and whichever runtime called it. For everything else dlsym() behaves as usual.
 */
#include "driver/driver_types.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "hooks_trace.h"

typedef CUresult launch_function(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, CUstream, void **, void **);
typedef CUresult proc_address_function(const char *, void **, int, cuuint64_t, void *);

static void *driver;
static CUmodule module;
static CUstream stream;

static CUfunction kernel_named(const char *name) {
  CUfunction function;
  assert_int_equal(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
  return function;
}

/* The file of the library that contains the address. */
static const char *object_of(const void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fname : "";
}

/* The C library's, for all of this program; and whether it says that the process has more rights
 * than who started it. */
static bool more_rights;
unsigned long __getauxval(unsigned long type);
unsigned long getauxval(unsigned long type) {
  return type == AT_SECURE ? more_rights : __getauxval(type);
}

/* Such a process, of which nothing is recorded, gets the driver's own functions. (What is wanted is
 * found out once, so in a process of its own.) */
static bool more_rights_get_no_wrapper(void) {
  pid_t child = fork();
  if (child == 0) {
    more_rights = true;
    _exit(strstr(object_of(dlsym(driver, "cuLaunchKernel")), "libcuda.so.1") ? 0 : 1);
  }
  int status;
  return waitpid(child, &status, 0) == child && status == 0;
}

static int set_up(void **state) {
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver || !more_rights_get_no_wrapper() || trace_set_up(state) ||
      cuModuleLoadData(&module, "") || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
    return -1;
  return 0;
}

static void *by_proc_address(const char *name, int version, cuuint64_t flags) {
  proc_address_function *get = (proc_address_function *)dlsym(driver, "cuGetProcAddress_v2");
  void *function = NULL;
  assert_int_equal(get(name, &function, version, flags, NULL), CUDA_SUCCESS);
  return function;
}

/* Launches once through `launch` and checks the records. */
static void one_launch(launch_function *launch, const char *name) {
  u32 before = count(TSCOPE_REC_LAUNCH);
  assert_int_equal(launch(kernel_named(name), 3, 2, 1, 64, 1, 1, 0, stream, NULL, NULL),
                   CUDA_SUCCESS);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), before + 1);
  struct tscope_shape_record shape = LAST(SHAPE, shape);
  assert_int_equal(LAST(LAUNCH, launch).shape, shape.shape);
  assert_string(shape.kernel, name);
  assert_int_equal(shape.grid_x, 3);
  assert_int_equal(shape.grid_y, 2);
  assert_int_equal(shape.block_x, 64);
}

static void a_launch_is_seen_however_it_was_found(void **state) {
  (void)state;
  one_launch(cuLaunchKernel, "by_the_linker");
  one_launch((launch_function *)dlsym(driver, "cuLaunchKernel"), "by_dlsym");
  one_launch((launch_function *)dlsym(driver, "cuLaunchKernel_ptsz"), "by_dlsym_ptsz");
  one_launch((launch_function *)by_proc_address("cuLaunchKernel", 13000, 0), "by_proc_address");
  one_launch((launch_function *)by_proc_address("cuLaunchKernel", 13000, 2), "per_thread");
}

static void a_lookup_of_the_lookup_function_is_answered_too(void **state) {
  (void)state;
  proc_address_function *again =
      (proc_address_function *)by_proc_address("cuGetProcAddress", 13000, 0);
  void *launch = NULL;
  assert_int_equal(again("cuLaunchKernel", &launch, 13000, 0, NULL), CUDA_SUCCESS);
  one_launch((launch_function *)launch, "by_a_look_up_of_the_look_up");
}

static void a_launch_with_a_config_names_its_kernel(void **state) {
  (void)state;
  CUlaunchConfig config = {.gridDimX = 5,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = 32,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .hStream = stream};
  CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **) =
      (CUresult(*)(const CUlaunchConfig *, CUfunction, void **, void **))by_proc_address(
          "cuLaunchKernelEx", 12000, 0);
  u32 before = count(TSCOPE_REC_LAUNCH);
  assert_int_equal(launch(&config, kernel_named("with_a_config"), NULL, NULL), CUDA_SUCCESS);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), before + 1);
  assert_string(LAST(SHAPE, shape).kernel, "with_a_config");
}

/* The stand-in runtime launches through the driver, which it finds like NVIDIA's. */
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *);
static char host_kernel;

static void a_launch_of_the_runtimes_is_one_launch(void **state) {
  (void)state;
  __cudaRegisterFunction(NULL, &host_kernel, NULL, "_Z6kernelv", -1, NULL, NULL, NULL, NULL, NULL);
  u32 before = count(TSCOPE_REC_LAUNCH);
  for (int i = 0; i < 10; i++)
    assert_int_equal(
        cudaLaunchKernel(&host_kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, stream),
        cudaSuccess);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), before + 10);
  assert_string(LAST(SHAPE, shape).kernel, "_Z6kernelv");
}

static void a_stream_has_one_number_for_runtime_and_driver(void **state) {
  (void)state;
  cudaLaunchKernel(&host_kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, stream);
  u16 of_runtime = LAST(LAUNCH, launch).header.tag;
  cuLaunchKernel(kernel_named("by_the_linker"), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
  assert_int_equal(LAST(LAUNCH, launch).header.tag, of_runtime);
  cuLaunchKernel(kernel_named("by_the_linker"), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
  assert_int_not_equal(LAST(LAUNCH, launch).header.tag, of_runtime);
}

static void memory_and_copies_are_seen(void **state) {
  (void)state;
  CUdeviceptr memory;
  int host[64] = {0};
  CUresult (*allocate)(CUdeviceptr *, size_t) =
      (CUresult(*)(CUdeviceptr *, size_t))by_proc_address("cuMemAlloc", 13000, 0);
  assert_int_equal(allocate(&memory, 256), CUDA_SUCCESS);
  struct tscope_alloc_record alloc = LAST(ALLOC, alloc);
  assert_int_equal(alloc.header.tag, TSCOPE_MEMORY_DEVICE);
  assert_int_equal(alloc.bytes, 256);
  assert_true(alloc.address == memory);
  assert_int_equal(cuMemsetD32Async(memory, 7, 64, stream), CUDA_SUCCESS);
  assert_int_equal(LAST(MEMSET, memset).bytes, 256);
  assert_int_equal(cuMemcpyDtoHAsync(host, memory, 256, stream), CUDA_SUCCESS);
  struct tscope_memcpy_record copy = LAST(MEMCPY, memcpy);
  assert_int_equal(copy.bytes, 256);
  assert_int_equal(copy.kind, TSCOPE_MEMCPY_D2H | TSCOPE_MEMCPY_ASYNC);
  assert_int_equal(cuStreamSynchronize(stream), CUDA_SUCCESS);
  assert_int_equal(host[63], 7);
  assert_int_equal(LAST(SYNC, sync).header.tag, TSCOPE_SYNC_STREAM);
  assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
  assert_true(LAST(FREE, free).address == memory);
}

static void physical_memory_is_seen(void **state) {
  (void)state;
  const size_t bytes = 4 << 20;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
  CUmemGenericAllocationHandle handle;
  CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                     unsigned long long) = dlsym(driver, "cuMemCreate");
  assert_int_equal(create(&handle, bytes, &properties, 0), CUDA_SUCCESS);
  struct tscope_alloc_record alloc = LAST(ALLOC, alloc);
  assert_int_equal(alloc.header.tag, TSCOPE_MEMORY_PHYSICAL);
  assert_int_equal(alloc.bytes, bytes);
  CUresult (*release)(CUmemGenericAllocationHandle) = dlsym(driver, "cuMemRelease");
  assert_int_equal(release(handle), CUDA_SUCCESS);
  struct tscope_free_record freed = LAST(FREE, free);
  assert_int_equal(freed.header.tag, TSCOPE_MEMORY_PHYSICAL);
  assert_true(freed.address == alloc.address);
}

/* Like PyTorch's expandable segments: reserves addresses, creates physical memory, and maps it. */
static void mapping_is_recorded_separately_from_creation(void **state) {
  (void)state;
  const size_t bytes = 2 << 20;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
  CUmemGenericAllocationHandle handle;
  CUdeviceptr range;
  assert_int_equal(cuMemAddressReserve(&range, 4 * bytes, 0, 0, 0), CUDA_SUCCESS);
  struct tscope_mapping_record mapping = LAST(MAPPING, mapping);
  assert_int_equal(mapping.header.tag, TSCOPE_MAPPING_RESERVE);
  assert_true(mapping.address == range);
  assert_int_equal(mapping.bytes, 4 * bytes);
  assert_int_equal(cuMemCreate(&handle, bytes, &properties, 0), CUDA_SUCCESS);
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) =
      dlsym(driver, "cuMemMap");
  assert_int_equal(map(range + bytes, bytes, 0, handle, 0), CUDA_SUCCESS);
  mapping = LAST(MAPPING, mapping);
  assert_int_equal(mapping.header.tag, TSCOPE_MAPPING_MAP);
  assert_true(mapping.address == range + bytes);
  assert_int_equal(mapping.bytes, bytes);
  assert_true(mapping.memory == LAST(ALLOC, alloc).address);
  assert_int_equal(cuMemUnmap(range + bytes, bytes), CUDA_SUCCESS);
  mapping = LAST(MAPPING, mapping);
  assert_int_equal(mapping.header.tag, TSCOPE_MAPPING_UNMAP);
  assert_true(mapping.address == range + bytes);
  assert_int_equal(cuMemUnmap(range, bytes), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(LAST(MAPPING, mapping).result, CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
  assert_int_equal(cuMemAddressFree(range, 4 * bytes), CUDA_SUCCESS);
  assert_int_equal(LAST(MAPPING, mapping).header.tag, TSCOPE_MAPPING_UNRESERVE);
}

static void copy_of_a_box_has_size_and_direction(void **state) {
  (void)state;
  CUdeviceptr memory;
  char host[3][4][8];
  assert_int_equal(cuMemAlloc(&memory, sizeof(host)), CUDA_SUCCESS);
  assert_int_equal(cuMemsetD2D8(memory, 8, 9, 8, 12), CUDA_SUCCESS);
  assert_int_equal(LAST(MEMSET, memset).bytes, 96);
  CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = memory,
                       .srcPitch = 8,
                       .srcHeight = 4,
                       .dstMemoryType = CU_MEMORYTYPE_HOST,
                       .dstHost = host,
                       .dstPitch = 8,
                       .dstHeight = 4,
                       .WidthInBytes = 8,
                       .Height = 4,
                       .Depth = 3};
  assert_int_equal(cuMemcpy3DAsync(&box, stream), CUDA_SUCCESS);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 96);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_D2H | TSCOPE_MEMCPY_ASYNC);
  assert_int_equal(cuStreamSynchronize(stream), CUDA_SUCCESS);
  assert_int_equal(host[2][3][7], 9);
  assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
}

static void copies_in_a_batch_are_one_record(void **state) {
  (void)state;
  CUdeviceptr memory;
  assert_int_equal(cuMemAlloc(&memory, 4096), CUDA_SUCCESS);
  CUdeviceptr to[] = {memory, memory + 64}, from[] = {memory + 1024, memory + 2048};
  size_t sizes[] = {10, 20}, first = 0;
  CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  CUresult (*batch)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *,
                    size_t, CUstream) = dlsym(driver, "cuMemcpyBatchAsync_v2");
  u32 before = count(TSCOPE_REC_MEMCPY);
  assert_int_equal(batch(to, from, sizes, 2, &attributes, &first, 1, stream), CUDA_SUCCESS);
  assert_int_equal(count(TSCOPE_REC_MEMCPY), before + 1);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 30);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_UNKNOWN | TSCOPE_MEMCPY_ASYNC);
  assert_int_equal(cuStreamSynchronize(stream), CUDA_SUCCESS);
  assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
}

static void nothing(void *user) {
  (void)user;
}

static void functions_of_the_host_have_their_stream(void **state) {
  (void)state;
  assert_int_equal(cuLaunchHostFunc(stream, nothing, NULL), CUDA_SUCCESS);
  struct tscope_host_function_record function = LAST(HOST_FUNCTION, host_function);
  assert_true(function.function == (u64)(uintptr_t)nothing);
  assert_int_equal(cuStreamSynchronize(stream), CUDA_SUCCESS);
  assert_int_equal(function.header.tag, LAST(SYNC, sync).object);
}

static u32 shape_of_launch(CUfunction function) {
  assert_int_equal(cuLaunchKernel(function, 5, 1, 1, 32, 1, 1, 0, stream, NULL, NULL),
                   CUDA_SUCCESS);
  return LAST(LAUNCH, launch).shape;
}

/* As JAX's autotuner unloads the kernels that it has tried, seen on an H100. */
static void a_handle_that_comes_back_is_another_kernel(void **state) {
  (void)state;
  static CUmodule tried, kept; /* the stand-in keeps them */
  CUfunction first, second;
  assert_int_equal(cuModuleLoadData(&tried, ""), CUDA_SUCCESS);
  assert_int_equal(cuModuleLoadData(&kept, ""), CUDA_SUCCESS);
  assert_int_equal(cuModuleGetFunction(&first, tried, "tried"), CUDA_SUCCESS);
  u32 shape = shape_of_launch(first);
  assert_int_equal(shape_of_launch(first), shape);
  assert_int_equal(cuModuleUnload(tried), CUDA_SUCCESS);
  assert_int_equal(cuModuleGetFunction(&second, kept, "kept"), CUDA_SUCCESS);
  assert_ptr_equal(second, first);
  assert_int_not_equal(shape_of_launch(second), shape);
  assert_string(LAST(SHAPE, shape).kernel, "kept");
}

static void a_failed_launch_is_not_recorded(void **state) {
  (void)state;
  u32 before = count(TSCOPE_REC_LAUNCH);
  assert_int_not_equal(cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL),
                       CUDA_SUCCESS);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), before);
}

/* numba and the like push a context, where cudaSetDevice() chose another device. */
static void a_stream_is_on_the_device_whose_context_is_current(void **state) {
  (void)state;
  CUcontext first = NULL;
  CUstream pushed;
  assert_int_equal(cuCtxGetCurrent(&first), CUDA_SUCCESS);
  assert_int_equal(cudaSetDevice(1), cudaSuccess);
  assert_int_equal(cuCtxPushCurrent(first), CUDA_SUCCESS);
  assert_int_equal(cuStreamCreate(&pushed, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  assert_int_equal(cuLaunchKernel(kernel_named("pushed"), 1, 1, 1, 32, 1, 1, 0, pushed, NULL, NULL),
                   CUDA_SUCCESS);
  assert_int_equal(LAST(STREAM, stream).handle, (u64)(uintptr_t)pushed);
  assert_int_equal(LAST(STREAM, stream).device, 0);
  assert_int_equal(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
}

static void other_functions_are_the_drivers_own(void **state) {
  (void)state;
  const char *const names[] = {"cuInit", "cuDeviceGet", "cuCtxSetCurrent", "cuMemSetAccess"};
  for (size_t i = 0; i < LENGTH_OF(names); i++) {
    assert_non_null(strstr(object_of(dlsym(driver, names[i])), "libcuda.so.1"));
    assert_non_null(strstr(object_of(by_proc_address(names[i], 13000, 0)), "libcuda.so.1"));
  }
}

static void a_version_that_is_not_hooked_is_left_alone(void **state) {
  (void)state;
  assert_null(dlsym(driver, "cuLaunchKernel_v9"));
  assert_non_null(dlerror());
}

static void errors_of_lookups_do_not_change(void **state) {
  (void)state;
  errno = 77;
  assert_null(dlsym(driver, "cuNoSuchFunction"));
  const char *why = dlerror();
  assert_non_null(why);
  assert_non_null(strstr(why, "cuNoSuchFunction"));
  assert_null(dlerror());
  assert_non_null(dlsym(driver, "cuLaunchKernel"));
  assert_null(dlerror());
  assert_int_equal(errno, 77);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_launch_is_seen_however_it_was_found),
      cmocka_unit_test(a_lookup_of_the_lookup_function_is_answered_too),
      cmocka_unit_test(a_launch_with_a_config_names_its_kernel),
      cmocka_unit_test(a_launch_of_the_runtimes_is_one_launch),
      cmocka_unit_test(a_stream_has_one_number_for_runtime_and_driver),
      cmocka_unit_test(memory_and_copies_are_seen),
      cmocka_unit_test(physical_memory_is_seen),
      cmocka_unit_test(mapping_is_recorded_separately_from_creation),
      cmocka_unit_test(copy_of_a_box_has_size_and_direction),
      cmocka_unit_test(copies_in_a_batch_are_one_record),
      cmocka_unit_test(functions_of_the_host_have_their_stream),
      cmocka_unit_test(a_handle_that_comes_back_is_another_kernel),
      cmocka_unit_test(a_failed_launch_is_not_recorded),
      cmocka_unit_test(a_stream_is_on_the_device_whose_context_is_current),
      cmocka_unit_test(other_functions_are_the_drivers_own),
      cmocka_unit_test(a_version_that_is_not_hooked_is_left_alone),
      cmocka_unit_test(errors_of_lookups_do_not_change),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
