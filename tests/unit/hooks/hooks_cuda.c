/* SPDX-License-Identifier: MIT
 *
 * What is recorded of the CUDA runtime: launches with their shapes and names, streams, memory,
 * copies, waits and events. Also checks that tscope's own calls do not change the job's last error.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "hooks_fakes.h"
#include "hooks_trace.h"
#include "record/process_trace.h"
#include "record/tick_clock.h"

/* Entry points of the runtime that its header does not declare. */
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchKernel_ptsz(const void *, dim3, dim3, void **, size_t, cudaStream_t);

static struct {
  cudaError_t result; /* of the calls under test */
  cudaError_t last;   /* the job's last error */
  const char *name;   /* of every kernel; NULL: unknown to the runtime */
  int name_queries;
  int version; /* 0: a recent one */
} runtime;

static int behave(const struct fake_call *call) {
  const char *name = call->name;
  if (!strcmp(name, "cudaPeekAtLastError"))
    return runtime.last;
  if (!strcmp(name, "cudaGetLastError")) {
    cudaError_t last = runtime.last;
    runtime.last = cudaSuccess;
    return last;
  }
  if (!strcmp(name, "cudaFuncGetName")) {
    runtime.name_queries++;
    if (!runtime.name)
      return runtime.last = cudaErrorInvalidDeviceFunction;
    *FAKE_ARG(call, 0, const char **) = runtime.name;
    return cudaSuccess;
  }
  if (!strcmp(name, "cudaMalloc") && runtime.result == cudaSuccess)
    *FAKE_ARG(call, 0, void **) = (void *)0x7000000;
  if (!strcmp(name, "cudaMallocPitch") && runtime.result == cudaSuccess) {
    *FAKE_ARG(call, 0, void **) = (void *)0x8000000;
    *FAKE_ARG(call, 1, size_t *) = 512;
  }
  if (!strcmp(name, "cudaMalloc3D") && runtime.result == cudaSuccess)
    *FAKE_ARG(call, 0, struct cudaPitchedPtr *) = (struct cudaPitchedPtr){(void *)0x9000000, 256};
  if (!strcmp(name, "__cudaGetKernel"))
    *FAKE_ARG(call, 0, cudaKernel_t *) = (cudaKernel_t)0x123450;
  if (!strcmp(name, "cudaRuntimeGetVersion"))
    *FAKE_ARG(call, 0, int *) = runtime.version ? runtime.version : 13020;
  return runtime.result;
}

static int fresh_runtime(void **state) {
  (void)state;
  memset(&runtime, 0, sizeof(runtime));
  fake_behaviour = behave;
  return 0;
}

static const cudaStream_t a_stream = (cudaStream_t)0x20000;
static char a_kernel, b_kernel, c_kernel, d_kernel;

static void launch(const void *kernel, unsigned blocks, cudaStream_t stream) {
  cudaLaunchKernel(kernel, (dim3){blocks, 2, 3}, (dim3){128, 4, 5}, NULL, 0, stream);
}

static void a_launch_names_its_kernel_and_geometry_once(void **state) {
  (void)state;
  __cudaRegisterFunction(NULL, &a_kernel, NULL, "_Z8a_kernelPf", -1, NULL, NULL, NULL, NULL, NULL);
  launch(&a_kernel, 7, a_stream);
  struct tscope_shape_record shape = LAST(SHAPE, shape);
  struct tscope_launch_record launched = LAST(LAUNCH, launch);
  assert_int_equal(launched.shape, shape.shape);
  assert_int_equal(shape.grid_x, 7);
  assert_int_equal(shape.grid_y, 2);
  assert_int_equal(shape.grid_z, 3);
  assert_int_equal(shape.block_x, 128);
  assert_int_equal(shape.block_y, 4);
  assert_int_equal(shape.block_z, 5);
  assert_true(shape.function == (u64)(uintptr_t)&a_kernel);
  assert_string(shape.kernel, "_Z8a_kernelPf");
  assert_int_equal(runtime.name_queries, 0);
  u32 shapes = count(TSCOPE_REC_SHAPE), launches = count(TSCOPE_REC_LAUNCH);
  launch(&a_kernel, 7, a_stream);
  assert_int_equal(count(TSCOPE_REC_SHAPE), shapes);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches + 1);
  assert_int_equal(LAST(LAUNCH, launch).shape, shape.shape);
  launch(&a_kernel, 8, a_stream);
  assert_int_equal(count(TSCOPE_REC_SHAPE), shapes + 1);
  assert_true(LAST(LAUNCH, launch).shape != shape.shape);
}

/* Code from nvcc 13 gets a handle once and launches that. */
static void a_kernel_handle_has_its_functions_name(void **state) {
  (void)state;
  cudaKernel_t kernel;
  __cudaRegisterFunction(NULL, &b_kernel, NULL, "_Z8b_kernelv", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaGetKernel(&kernel, &b_kernel);
  __cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, a_stream);
  assert_string(LAST(SHAPE, shape).kernel, "_Z8b_kernelv");
}

static void the_runtime_is_asked_for_names_that_were_not_registered(void **state) {
  (void)state;
  runtime.name = "_Z8c_kernelv";
  launch(&c_kernel, 1, a_stream);
  assert_string(LAST(SHAPE, shape).kernel, "_Z8c_kernelv");
}

static void queries_leave_the_last_error_as_it_was(void **state) {
  (void)state;
  launch(&d_kernel, 1, a_stream); /* the lookup of the name fails, and sets the last error */
  assert_int_equal(runtime.name_queries, 1);
  assert_int_equal(runtime.last, cudaSuccess);
  assert_int_equal(LAST(SHAPE, shape).kernel, 0);
  runtime.last = cudaErrorInvalidValue; /* the job's own error: the name is not looked up */
  launch(&d_kernel, 2, a_stream);
  assert_int_equal(runtime.name_queries, 1);
  assert_int_equal(runtime.last, cudaErrorInvalidValue);
}

static void a_failed_launch_is_no_launch(void **state) {
  (void)state;
  u32 launches = count(TSCOPE_REC_LAUNCH);
  runtime.result = cudaErrorLaunchOutOfResources;
  assert_int_equal(cudaLaunchKernel(&a_kernel, (dim3){7, 2, 3}, (dim3){128, 4, 5}, NULL, 0, NULL),
                   cudaErrorLaunchOutOfResources);
  assert_int_equal(cudaLaunchKernelExC(NULL, &a_kernel, NULL), cudaErrorLaunchOutOfResources);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches);
}

static void a_launch_by_config_is_the_same_launch(void **state) {
  (void)state;
  launch(&a_kernel, 7, a_stream);
  struct tscope_launch_record plain = LAST(LAUNCH, launch);
  cudaLaunchConfig_t config = {.gridDim = {7, 2, 3}, .blockDim = {128, 4, 5}, .stream = a_stream};
  cudaLaunchKernelExC(&config, &a_kernel, NULL);
  struct tscope_launch_record by_config = LAST(LAUNCH, launch);
  assert_int_equal(by_config.shape, plain.shape);
  assert_int_equal(by_config.header.tag, plain.header.tag);
}

static u16 stream_of_launch(cudaStream_t stream, bool per_thread) {
  if (per_thread)
    cudaLaunchKernel_ptsz(&a_kernel, (dim3){7, 2, 3}, (dim3){128, 4, 5}, NULL, 0, stream);
  else
    launch(&a_kernel, 7, stream);
  return LAST(LAUNCH, launch).header.tag;
}

static void *per_thread_stream(void *stream) {
  *(u16 *)stream = stream_of_launch(NULL, true);
  return NULL;
}

static void default_streams_have_different_numbers(void **state) {
  (void)state;
  u16 legacy = stream_of_launch(NULL, false), own = stream_of_launch(NULL, true), other;
  assert_int_equal(stream_of_launch(cudaStreamLegacy, true), legacy);
  assert_int_equal(stream_of_launch(cudaStreamPerThread, false), own);
  assert_true(legacy != own);
  cudaSetDevice(0); /* already the current device */
  assert_int_equal(stream_of_launch(NULL, false), legacy);
  assert_int_equal(stream_of_launch(NULL, true), own);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, per_thread_stream, &other), 0);
  pthread_join(thread, NULL);
  assert_true(other != own && other != legacy);
  cudaSetDevice(1);
  assert_true(stream_of_launch(NULL, false) != legacy);
  assert_int_equal(LAST(STREAM, stream).device, 1);
  cudaSetDevice(0);
}

static void a_stream_handle_used_again_is_another_stream(void **state) {
  (void)state;
  cudaStream_t stream = (cudaStream_t)0x30000;
  u16 first = stream_of_launch(stream, false);
  assert_int_equal(stream_of_launch(stream, false), first);
  cudaStreamDestroy(stream);
  assert_true(stream_of_launch(stream, false) != first);
  assert_int_equal(LAST(STREAM, stream).handle, 0x30000);
}

static void memory_is_recorded_with_its_kind(void **state) {
  (void)state;
  void *memory = NULL;
  cudaMalloc(&memory, 4096);
  assert_ptr_equal(memory, (void *)0x7000000);
  struct tscope_alloc_record alloc = LAST(ALLOC, alloc);
  assert_int_equal(alloc.header.tag, TSCOPE_MEMORY_DEVICE);
  assert_int_equal(alloc.bytes, 4096);
  assert_int_equal(alloc.address, 0x7000000);
  u32 frees = count(TSCOPE_REC_FREE);
  cudaFree(NULL);
  assert_int_equal(count(TSCOPE_REC_FREE), frees);
  cudaFree(memory);
  assert_int_equal(LAST(FREE, free).address, 0x7000000);
  runtime.result = cudaErrorMemoryAllocation;
  void *untouched = &alloc;
  assert_int_equal(cudaMalloc(&untouched, 1), cudaErrorMemoryAllocation);
  alloc = LAST(ALLOC, alloc);
  assert_int_equal(alloc.result, cudaErrorMemoryAllocation);
  assert_int_equal(alloc.address, 0);
  runtime.result = cudaSuccess;
  cudaHostAlloc(&memory, 64, 0);
  assert_int_equal(LAST(ALLOC, alloc).header.tag, TSCOPE_MEMORY_PINNED);
  cudaFreeAsync(&alloc, a_stream);
  assert_int_equal(LAST(FREE, free).header.tag, TSCOPE_MEMORY_DEVICE_ASYNC);
}

static void copies_have_size_and_direction(void **state) {
  (void)state;
  char a[8] = "", b[8] = "";
  cudaMemcpy(a, b, 8, cudaMemcpyDeviceToHost);
  struct tscope_memcpy_record copy = LAST(MEMCPY, memcpy);
  assert_int_equal(copy.kind, TSCOPE_MEMCPY_D2H);
  assert_int_equal(copy.bytes, 8);
  cudaMemcpy2DAsync(a, 1, b, 1, 100, 200, cudaMemcpyHostToDevice, a_stream);
  copy = LAST(MEMCPY, memcpy);
  assert_int_equal(copy.kind, TSCOPE_MEMCPY_H2D | TSCOPE_MEMCPY_ASYNC);
  assert_int_equal(copy.bytes, 20000);
  cudaMemcpyPeerAsync(a, 0, b, 1, 5, a_stream);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_P2P | TSCOPE_MEMCPY_ASYNC);
  cudaMemcpyAsync(a, b, 1, cudaMemcpyDefault, a_stream); /* only the driver knows the direction */
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_UNKNOWN | TSCOPE_MEMCPY_ASYNC);
  cudaMemsetAsync(a, 0, 7, a_stream);
  assert_int_equal(LAST(MEMSET, memset).bytes, 7);
  assert_int_equal(LAST(MEMSET, memset).kind, TSCOPE_MEMCPY_ASYNC);
}

static void memory_that_is_not_a_line_is_recorded_too(void **state) {
  (void)state;
  void *memory;
  size_t pitch;
  cudaMallocPitch(&memory, &pitch, 100, 8);
  assert_int_equal(LAST(ALLOC, alloc).bytes, 512 * 8);
  assert_int_equal(LAST(ALLOC, alloc).address, 0x8000000);
  struct cudaPitchedPtr box;
  cudaMalloc3D(&box, (struct cudaExtent){100, 8, 4});
  assert_int_equal(LAST(ALLOC, alloc).bytes, 256 * 8 * 4);
  assert_int_equal(LAST(ALLOC, alloc).address, 0x9000000);
  cudaArray_t array = (cudaArray_t)0x7700;
  cudaMallocArray(&array, &(struct cudaChannelFormatDesc){.x = 32, .y = 32}, 64, 0, 0);
  assert_int_equal(LAST(ALLOC, alloc).bytes, 8 * 64);
  assert_int_equal(LAST(ALLOC, alloc).header.tag, TSCOPE_MEMORY_ARRAY);
  cudaFreeArray(array);
  assert_int_equal(LAST(FREE, free).header.tag, TSCOPE_MEMORY_ARRAY);
  assert_int_equal(LAST(FREE, free).address, 0x7700);
  cudaHostRegister(&runtime, 64, 0);
  assert_int_equal(LAST(ALLOC, alloc).header.tag, TSCOPE_MEMORY_REGISTERED);
  assert_true(LAST(ALLOC, alloc).address == (u64)(uintptr_t)&runtime);
  assert_int_equal(LAST(ALLOC, alloc).bytes, 64);
  cudaHostUnregister(&runtime);
  assert_int_equal(LAST(FREE, free).header.tag, TSCOPE_MEMORY_REGISTERED);
}

static void copies_and_fills_of_boxes_have_sizes(void **state) {
  (void)state;
  struct cudaMemcpy3DParms box = {.extent = {10, 20, 30}, .kind = cudaMemcpyHostToDevice};
  cudaMemcpy3DAsync(&box, a_stream);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 6000);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_H2D | TSCOPE_MEMCPY_ASYNC);
  box.dstArray = (cudaArray_t)0x7700; /* 10 elements of unknown size */
  cudaMemcpy3D(&box);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 0);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_H2D);
  cudaMemcpy3DPeerAsync(&(struct cudaMemcpy3DPeerParms){.extent = {1, 2, 3}}, a_stream);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 6);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_P2P | TSCOPE_MEMCPY_ASYNC);
  cudaMemcpyToSymbolAsync(&runtime, &box, 11, 0, cudaMemcpyHostToDevice, a_stream);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 11);
  cudaMemcpy2DToArray(box.dstArray, 0, 0, &box, 1, 5, 6, cudaMemcpyDeviceToDevice);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 30);
  cudaMemset2DAsync(&box, 64, 0, 10, 5, a_stream);
  assert_int_equal(LAST(MEMSET, memset).bytes, 50);
  cudaMemset3D((struct cudaPitchedPtr){.ptr = &box}, 0, (struct cudaExtent){2, 3, 4});
  assert_int_equal(LAST(MEMSET, memset).bytes, 24);
  assert_int_equal(LAST(MEMSET, memset).kind, 0);
}

/* CUDA 13 changed the parameters of these functions under the same name: all of them reach the
 * runtime, and the stream is taken from the place where that runtime expects it. */
cudaError_t prefetch(const void *, size_t, size_t, size_t,
                     cudaStream_t) __asm__("cudaMemPrefetchAsync");
cudaError_t batch(void *, void *, const size_t *, size_t, void *, void *, size_t, void *,
                  cudaStream_t) __asm__("cudaMemcpyBatchAsync");
cudaError_t batch_3d(size_t, const void *, size_t, size_t,
                     cudaStream_t) __asm__("cudaMemcpy3DBatchAsync");

static void functions_that_changed_are_read_as_the_runtime_reads_them(void **state) {
  (void)state;
  const size_t sizes[] = {5, 6, 7};
  cudaStream_t old_stream = (cudaStream_t)0x40000, new_stream = (cudaStream_t)0x50000;
  for (int version = 12090; version <= 13000; version += 910) {
    runtime.version = version;
    u16 stream = stream_of_launch(version < 13000 ? old_stream : new_stream, false);
    prefetch(&runtime, 4096, 1, (size_t)old_stream, new_stream);
    assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_PREFETCH | TSCOPE_MEMCPY_ASYNC);
    assert_int_equal(LAST(MEMCPY, memcpy).bytes, 4096);
    assert_int_equal(LAST(MEMCPY, memcpy).header.tag, stream);
    assert_true(FAKE_ARG(&fake_last, 3, cudaStream_t) == old_stream);
    assert_true(FAKE_ARG(&fake_last, 4, cudaStream_t) == new_stream);
    stream = stream_of_launch(version < 13000 ? old_stream : new_stream, false);
    batch(NULL, NULL, sizes, 3, NULL, NULL, 0, version < 13000 ? NULL : new_stream, old_stream);
    assert_int_equal(LAST(MEMCPY, memcpy).bytes, 18);
    assert_int_equal(LAST(MEMCPY, memcpy).header.tag, stream);
    stream = stream_of_launch(version < 13000 ? old_stream : new_stream, false);
    const struct cudaMemcpy3DBatchOp boxes[] = {{.extent = {10, 2, 3}}, {.extent = {5, 1, 1}}};
    batch_3d(2, boxes, 0, version < 13000 ? 0 : (size_t)new_stream, old_stream);
    assert_int_equal(LAST(MEMCPY, memcpy).bytes, 65);
    assert_int_equal(LAST(MEMCPY, memcpy).header.tag, stream);
  }
}

/* Functions newer than the headers that the shim may be built with. */
cudaError_t with_attributes(void *, const void *, size_t, void *,
                            cudaStream_t) __asm__("cudaMemcpyWithAttributesAsync");
cudaError_t prefetches(void **, const size_t *, size_t, void *, size_t *, size_t,
                       unsigned long long, cudaStream_t) __asm__("cudaMemPrefetchBatchAsync");
cudaError_t host_function(cudaStream_t, cudaHostFn_t, void *,
                          unsigned) __asm__("cudaLaunchHostFunc_v2");
cudaError_t synchronize(void *) __asm__("cudaExecutionCtxSynchronize");

static void functions_of_cuda_13(void **state) {
  (void)state;
  u16 stream = stream_of_launch(a_stream, false);
  with_attributes(&runtime, &runtime, 77, NULL, a_stream);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 77);
  assert_int_equal(LAST(MEMCPY, memcpy).header.tag, stream);
  prefetches(NULL, (const size_t[]){8, 9}, 2, NULL, NULL, 0, 0, a_stream);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_PREFETCH | TSCOPE_MEMCPY_ASYNC);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 17);
  host_function(a_stream, (cudaHostFn_t)0x1234, NULL, 1);
  assert_int_equal(LAST(HOST_FUNCTION, host_function).function, 0x1234);
  assert_int_equal(LAST(HOST_FUNCTION, host_function).header.tag, stream);
  synchronize(&runtime);
  assert_int_equal(LAST(SYNC, sync).header.tag, TSCOPE_SYNC_DEVICE);
}

static void waits_and_events_say_what_for(void **state) {
  (void)state;
  u16 stream = stream_of_launch(a_stream, false);
  cudaEvent_t event = (cudaEvent_t)0x54320;
  cudaEventRecord(event, a_stream);
  assert_int_equal(LAST(EVENT_RECORD, event_record).event, 0x5432);
  assert_int_equal(LAST(EVENT_RECORD, event_record).header.tag, stream);
  cudaStreamWaitEvent(a_stream, event, 0);
  assert_int_equal(LAST(EVENT_WAIT, event_wait).event, 0x5432);
  assert_int_equal(LAST(EVENT_WAIT, event_wait).header.tag, stream);
  cudaStreamSynchronize(a_stream);
  assert_int_equal(LAST(SYNC, sync).header.tag, TSCOPE_SYNC_STREAM);
  assert_int_equal(LAST(SYNC, sync).object, stream);
  cudaEventSynchronize(event);
  assert_int_equal(LAST(SYNC, sync).header.tag, TSCOPE_SYNC_EVENT);
  assert_int_equal(LAST(SYNC, sync).object, 0x5432);
  cudaDeviceSynchronize();
  assert_int_equal(LAST(SYNC, sync).header.tag, TSCOPE_SYNC_DEVICE);
}

static int not_ready(const struct fake_call *call) {
  return strstr(call->name, "Query") ? cudaErrorNotReady : 0;
}

/* Asks so many times in vain, and once more: how many waits were recorded. */
static u32 waits_of_asking(u32 times, cudaEvent_t event, bool works_between) {
  u32 before = count(TSCOPE_REC_SYNC);
  fake_behaviour = not_ready;
  for (u32 i = 0; i < times; i++) {
    assert_int_equal(event ? cudaEventQuery(event) : cudaStreamQuery(a_stream), cudaErrorNotReady);
    if (works_between)
      cudaEventRecord((cudaEvent_t)0x99990, a_stream);
  }
  fake_behaviour = NULL;
  assert_int_equal(event ? cudaEventQuery(event) : cudaStreamQuery(a_stream), cudaSuccess);
  return count(TSCOPE_REC_SYNC) - before;
}

/* As PyTorch's work.is_completed() in a loop. Who asks a few times, or works meanwhile, does not
 * wait. */
static void who_asks_until_it_is_over_waits(void **state) {
  (void)state;
  cudaEvent_t event = (cudaEvent_t)0x54320;
  u16 stream = stream_of_launch(a_stream, false);
  assert_int_equal(waits_of_asking(5, event, false), 1);
  assert_int_equal(LAST(SYNC, sync).header.tag, TSCOPE_SYNC_EVENT);
  assert_int_equal(LAST(SYNC, sync).object, 0x5432);
  assert_int_equal(waits_of_asking(5, NULL, false), 1);
  assert_int_equal(LAST(SYNC, sync).header.tag, TSCOPE_SYNC_STREAM);
  assert_int_equal(LAST(SYNC, sync).object, stream);
  assert_int_equal(waits_of_asking(2, event, false), 0);
  assert_int_equal(waits_of_asking(0, event, false), 0);
  assert_int_equal(waits_of_asking(9, event, true), 0);
  fake_behaviour = not_ready;
  u64 last_end = tscope_ticks();
  for (u32 i = 0; i < 9; i++, usleep(1000))
    for (u32 k = 0; k < 3; k++)
      cudaEventQuery((cudaEvent_t)(uintptr_t)(0x1110 * (k + 1)));
  for (u32 k = 0; k < 3; k++) {
    usleep(1000);
    u64 asked = tscope_ticks();
    fake_behaviour = NULL;
    cudaEventQuery((cudaEvent_t)(uintptr_t)(0x1110 * (k + 1)));
    fake_behaviour = not_ready;
    assert_int_equal(LAST(SYNC, sync).object, 0x111 * (k + 1));
    u64 ns = tscope_ns_of_ticks(LAST(SYNC, sync).dur << tscope_clock.shift);
    assert_in_range(ns, k ? 1000000 : 10000000, tscope_ns_of_ticks(tscope_ticks() - last_end));
    last_end = asked;
  }
  fake_behaviour = not_ready;
  for (u32 i = 0; i < 9; i++)
    cudaEventQuery(event);
  fake_behaviour = NULL;
  u32 before = count(TSCOPE_REC_SYNC);
  cudaEventQuery((cudaEvent_t)0x99990);
  assert_int_equal(count(TSCOPE_REC_SYNC), before);
  cudaEventQuery(event);
  assert_int_equal(count(TSCOPE_REC_SYNC), before + 1);
}

enum { THREADS = 8, SHAPES = 300, STREAMS = 20 };

static void *launch_all(void *unused) {
  (void)unused;
  for (unsigned i = 0; i < SHAPES; i++)
    launch(&b_kernel, 100000 + i, (cudaStream_t)(uintptr_t)(0x900000 + 64 * (i % STREAMS)));
  return NULL;
}

/* When all threads need their first chunk at once, the helper may be too slow. What they lose is
 * counted, and so are the other records that they lose then. */
static void threads_that_meet_a_handle_together_give_it_one_number(void **state) {
  (void)state;
  u32 shapes = count(TSCOPE_REC_SHAPE), streams = count(TSCOPE_REC_STREAM);
  u32 launches = count(TSCOPE_REC_LAUNCH);
  u64 lost = tscope_trace.header->lost[TSCOPE_LOSS_BEHIND];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, launch_all, NULL), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(count(TSCOPE_REC_SHAPE), shapes + SHAPES);
  assert_int_equal(count(TSCOPE_REC_STREAM), streams + STREAMS);
  launches = count(TSCOPE_REC_LAUNCH) - launches;
  lost = tscope_trace.header->lost[TSCOPE_LOSS_BEHIND] - lost;
  assert_in_range(launches, 1, THREADS * SHAPES);
  assert_in_range(launches + lost, THREADS * SHAPES, UINT32_MAX);
}

/* A job with an endless number of shapes must not lose the names of its kernels. */
/* Until one is recorded: while the helper gets no core, launches are lost. */
static void launch_recorded(const void *kernel, unsigned blocks) {
  const u64 *lost = &tscope_trace.header->lost[TSCOPE_LOSS_BEHIND];
  u64 before;
  do {
    before = *lost;
    launch(kernel, blocks, a_stream);
  } while (*lost != before);
}

static void endless_geometry_keeps_the_kernels_name(void **state) {
  (void)state;
  for (unsigned i = 1; i <= 40000; i++)
    launch(&a_kernel, 1000 + i, a_stream);
  launch_recorded(&a_kernel, 50000);
  struct tscope_shape_record shape = LAST(SHAPE, shape);
  assert_int_equal(shape.grid_x, 0);
  assert_string(shape.kernel, "_Z8a_kernelPf");
  assert_int_equal(LAST(LAUNCH, launch).shape, shape.shape);
  launch_recorded(&b_kernel, 3);
  shape = LAST(SHAPE, shape);
  assert_string(shape.kernel, "_Z8b_kernelv");
  assert_int_equal(shape.grid_x, 0);
}

static void without_cupti_the_trace_says_so(void **state) {
  (void)state;
  struct tscope_gpu_clock_record clock = LAST(GPU_CLOCK, gpu_clock);
  assert_int_equal(clock.header.tag, TSCOPE_GPU_CLOCK_HOST);
  assert_string(clock.reason, "CUPTI is neither loaded nor beside the CUDA runtime");
}

/* Selects CUPTI, so that a driver on this machine does not change the result. */
static int set_up(void **state) {
  return setenv("TSCOPE_GPU", "cupti", 1) || trace_set_up(state);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, fresh_runtime)
  const struct CMUnitTest tests[] = {
      TEST(a_launch_names_its_kernel_and_geometry_once),
      TEST(a_kernel_handle_has_its_functions_name),
      TEST(the_runtime_is_asked_for_names_that_were_not_registered),
      TEST(queries_leave_the_last_error_as_it_was),
      TEST(a_failed_launch_is_no_launch),
      TEST(a_launch_by_config_is_the_same_launch),
      TEST(default_streams_have_different_numbers),
      TEST(a_stream_handle_used_again_is_another_stream),
      TEST(memory_is_recorded_with_its_kind),
      TEST(copies_have_size_and_direction),
      TEST(memory_that_is_not_a_line_is_recorded_too),
      TEST(copies_and_fills_of_boxes_have_sizes),
      TEST(functions_that_changed_are_read_as_the_runtime_reads_them),
      TEST(functions_of_cuda_13),
      TEST(waits_and_events_say_what_for),
      TEST(who_asks_until_it_is_over_waits),
      TEST(threads_that_meet_a_handle_together_give_it_one_number),
      TEST(without_cupti_the_trace_says_so),
      TEST(endless_geometry_keeps_the_kernels_name),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
