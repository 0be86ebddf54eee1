/* SPDX-License-Identifier: MIT
 *
 * The stand-in CUDA runtime as its callers see it: order on a stream, events across streams, the
 * default stream's rules, effects in stream order, durations, errors; and the records of CUPTI.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <cupti.h>

#include "../standin.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                            int *warp);

static char stub;
static const int64_t ms = 1000000;

/* What a test created, for tidy_up(). */
static cudaStream_t streams[16];
static cudaEvent_t events[16];
static size_t n_streams, n_events;

static void launch(int64_t ns, cudaStream_t stream) {
  dim3 grid = {3, 2, 1}, block = {64, 1, 1};
  standin_next_kernel_ns(ns);
  OK(cudaLaunchKernel(&stub, grid, block, NULL, 0, stream));
}

static cudaStream_t new_stream(unsigned flags) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, flags));
  streams[n_streams++] = stream;
  return stream;
}

static cudaEvent_t event_on(cudaStream_t stream) {
  cudaEvent_t event;
  OK(cudaEventCreate(&event));
  OK(cudaEventRecord(event, stream));
  events[n_events++] = event;
  return event;
}

static int tidy_up(void **state) {
  (void)state;
  while (n_events)
    OK(cudaEventDestroy(events[--n_events]));
  while (n_streams)
    OK(cudaStreamDestroy(streams[--n_streams]));
  return 0;
}

static double elapsed(cudaEvent_t from, cudaEvent_t to) {
  float value;
  OK(cudaEventElapsedTime(&value, from, to));
  return (double)value;
}

static void assert_about(double value, double wanted, double tolerance) {
  if (value < wanted - tolerance || value > wanted + tolerance)
    fail_msg("%g is not %g +- %g", value, wanted, tolerance);
}

static void a_launch_returns_before_the_kernel_ends(void **state) {
  (void)state;
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  launch(300 * ms, stream);
  assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
  cudaEvent_t end = event_on(stream);
  assert_int_equal(cudaEventQuery(end), cudaErrorNotReady);
  OK(cudaEventSynchronize(end));
  OK(cudaStreamQuery(stream));
  OK(cudaGetLastError());
}

/* Two kernels of one stream take the sum of their times and a gap of 1 us; two streams run
 * at the same time. */
static void streams_are_in_order_and_side_by_side(void **state) {
  (void)state;
  cudaStream_t one = new_stream(cudaStreamNonBlocking), two = new_stream(cudaStreamNonBlocking);
  launch(300 * ms, one); /* delays both until everything is enqueued, also on a busy machine */
  OK(cudaStreamWaitEvent(two, event_on(one), 0));
  cudaEvent_t start_one = event_on(one), start_two = event_on(two);
  launch(20 * ms, one);
  launch(30 * ms, one);
  launch(40 * ms, two);
  cudaEvent_t end_one = event_on(one), end_two = event_on(two);
  OK(cudaDeviceSynchronize());
  assert_about(elapsed(start_one, end_one), 50.001, 0.01);
  assert_about(elapsed(start_two, end_two), 40, 0.01);
  assert_about(elapsed(start_one, start_two), 0, 0.001);
}

static void a_stream_waits_for_an_event_of_another(void **state) {
  (void)state;
  cudaStream_t one = new_stream(cudaStreamNonBlocking), two = new_stream(cudaStreamNonBlocking);
  char *source, *target;
  OK(cudaMalloc((void **)&source, 100));
  OK(cudaMalloc((void **)&target, 100));
  OK(cudaMemset(target, 0, 100));
  OK(cudaMemset(source, 0, 100));
  OK(cudaDeviceSynchronize());
  launch(20 * ms, one);
  OK(cudaMemsetAsync(source, 7, 100, one));
  OK(cudaStreamWaitEvent(two, event_on(one), 0));
  OK(cudaMemcpyAsync(target, source, 100, cudaMemcpyDeviceToDevice, two));
  assert_int_equal(target[99], 0);
  OK(cudaStreamSynchronize(two));
  assert_int_equal(target[99], 7);
  OK(cudaFree(source));
  OK(cudaFree(target));
}

static void the_default_stream_and_blocking_streams_wait_for_each_other(void **state) {
  (void)state;
  cudaStream_t blocking = new_stream(cudaStreamDefault), free = new_stream(cudaStreamNonBlocking);
  cudaEvent_t start = event_on(blocking), start_free = event_on(free);
  launch(20 * ms, blocking);
  launch(20 * ms, NULL);
  launch(20 * ms, blocking);
  launch(20 * ms, free);
  cudaEvent_t end = event_on(blocking), end_free = event_on(free);
  OK(cudaDeviceSynchronize());
  assert_about(elapsed(start, end), 60, 1);
  assert_about(elapsed(start_free, end_free), 20, 1);
}

static void note(void *user) {
  ++*(int *)user;
}

static void effects_happen_in_stream_order(void **state) {
  (void)state;
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  unsigned char *memory, seen[2] = {0};
  int calls = 0;
  OK(cudaMalloc((void **)&memory, 1));
  OK(cudaMemsetAsync(memory, 1, 1, stream));
  OK(cudaMemcpyAsync(&seen[0], memory, 1, cudaMemcpyDeviceToHost, stream));
  launch(10 * ms, stream);
  OK(cudaLaunchHostFunc(stream, note, &calls));
  OK(cudaMemsetAsync(memory, 2, 1, stream));
  OK(cudaMemcpyAsync(&seen[1], memory, 1, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  assert_int_equal(seen[0], 1);
  assert_int_equal(seen[1], 2);
  assert_int_equal(calls, 1);
  OK(cudaFree(memory));
}

static void a_captured_stream_is_replayed(void **state) {
  (void)state;
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  enum cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, cudaStreamCaptureStatusNone);
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch(10 * ms, stream);
  launch(10 * ms, stream);
  OK(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, cudaStreamCaptureStatusActive);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaStreamQuery(stream));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t start = event_on(stream);
  OK(cudaGraphLaunch(executable, stream));
  cudaEvent_t end = event_on(stream);
  OK(cudaStreamSynchronize(stream));
  assert_about(elapsed(start, end), 20, 1);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
}

static void errors_are_returned_and_remembered(void **state) {
  (void)state;
  dim3 one = {1, 1, 1}, none = {0, 1, 1};
  static char unknown;
  assert_int_equal(cudaLaunchKernel(&unknown, one, one, NULL, 0, NULL),
                   cudaErrorInvalidDeviceFunction);
  assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDeviceFunction);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  OK(cudaGetLastError());
  assert_int_equal(cudaLaunchKernel(&stub, none, one, NULL, 0, NULL),
                   cudaErrorInvalidConfiguration);
  assert_int_equal(cudaFree(&unknown), cudaErrorInvalidValue);
  assert_int_equal(cudaSetDevice(1000), cudaErrorInvalidDevice);
  assert_string_equal(cudaGetErrorString(cudaGetLastError()), "invalid device ordinal");
}

static void a_fork_child_cannot_use_the_gpu(void **state) {
  (void)state;
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  char *memory;
  int status;
  OK(cudaMalloc((void **)&memory, 1));
  OK(cudaMemsetAsync(memory, 0, 1, stream));
  OK(cudaDeviceSynchronize());
  pid_t child = fork();
  if (child == 0)
    _exit(cudaMemsetAsync(memory, 0, 1, stream) != cudaErrorInitializationError ||
          cudaDeviceSynchronize() != cudaErrorInitializationError);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  OK(cudaFree(memory));
}

struct seen {
  size_t kernels, copies, fills;
  uint64_t kernel_ns, copied, first_start, last_end;
  uint32_t correlation, stream;
  char name[64];
};
static struct seen seen;

static void requested(uint8_t **buffer, size_t *bytes, size_t *most) {
  *bytes = 4096;
  *most = 0;
  *buffer = malloc(*bytes);
}

static CUptiResult (*next_record)(uint8_t *, size_t, CUpti_Activity **);

static void count_record(const CUpti_Activity *record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const CUpti_ActivityKernel4 *kernel = (const CUpti_ActivityKernel4 *)(const void *)record;
    seen.kernels++;
    seen.kernel_ns = kernel->end - kernel->start;
    seen.correlation = kernel->correlationId;
    seen.stream = kernel->streamId;
    if (!seen.first_start)
      seen.first_start = kernel->start;
    seen.last_end = kernel->end;
    strncpy(seen.name, kernel->name, sizeof(seen.name) - 1);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    seen.copies++;
    seen.copied = ((const CUpti_ActivityMemcpy *)(const void *)record)->bytes;
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    seen.fills++;
  }
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                      size_t valid) {
  (void)context, (void)stream, (void)size;
  CUpti_Activity *record = NULL;
  while (next_record(buffer, valid, &record) == CUPTI_SUCCESS)
    count_record(record);
  free(buffer);
}

/* A clock an hour ahead of the system's: the times of records must be on it. */
static uint64_t client_clock(void) {
  return (uint64_t)standin_now_ns() + 3600000000000u;
}

static void *cupti_function(const char *name) {
  static void *library;
  if (!library)
    library = dlopen(CHECK_CUPTI, RTLD_NOW);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function)
    fail_msg("%s has no %s", CHECK_CUPTI, name);
  return function;
}

static void cupti_times_are_on_the_clients_clock(void **state) {
  (void)state;
  CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc) =
      (CUptiResult(*)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc))
          cupti_function("cuptiActivityRegisterCallbacks");
  CUptiResult (*clock)(CUpti_TimestampCallbackFunc) = (CUptiResult(*)(
      CUpti_TimestampCallbackFunc))cupti_function("cuptiActivityRegisterTimestampCallback");
  CUptiResult (*enable)(CUpti_ActivityKind) =
      (CUptiResult(*)(CUpti_ActivityKind))cupti_function("cuptiActivityEnable");
  CUptiResult (*flush)(uint32_t) =
      (CUptiResult(*)(uint32_t))cupti_function("cuptiActivityFlushAll");
  CUptiResult (*stream_id)(CUcontext, CUstream, uint8_t, uint32_t *) = (CUptiResult(*)(
      CUcontext, CUstream, uint8_t, uint32_t *))cupti_function("cuptiGetStreamIdEx");
  next_record = (CUptiResult(*)(uint8_t *, size_t, CUpti_Activity **))cupti_function(
      "cuptiActivityGetNextRecord");
  OK((int)clock(client_clock));
  OK((int)callbacks(requested, completed));
  OK((int)enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  OK((int)enable(CUPTI_ACTIVITY_KIND_MEMCPY));
  OK((int)enable(CUPTI_ACTIVITY_KIND_MEMSET));

  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  uint32_t id;
  OK((int)stream_id(NULL, stream, 0, &id));
  char *memory, host[64];
  OK(cudaMalloc((void **)&memory, 64));
  uint64_t before = client_clock();
  for (int i = 0; i < 40; i++) /* more than fit into one buffer */
    launch(2 * ms, stream);
  OK(cudaMemsetAsync(memory, 0, 64, stream));
  OK(cudaMemcpyAsync(host, memory, 64, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  uint64_t after = client_clock();
  OK((int)flush(0));
  assert_int_equal(seen.kernels, 40);
  assert_int_equal(seen.copies, 1);
  assert_int_equal(seen.fills, 1);
  assert_int_equal(seen.copied, 64);
  assert_int_equal(seen.stream, id);
  assert_true(seen.correlation >= 40);
  assert_string_equal(seen.name, "_Z5checkv");
  assert_about((double)seen.kernel_ns, 2e6, 2);
  assert_true(seen.first_start > before && seen.last_end < after);
  assert_about((double)(seen.last_end - seen.first_start), 40 * 2e6 + 39 * 1e3, 100);
  OK(cudaFree(memory));
}

int main(void) {
  static int fatbin;
  __cudaRegisterFunction(__cudaRegisterFatBinary(&fatbin), &stub, "_Z5checkv", "_Z5checkv", -1,
                         NULL, NULL, NULL, NULL, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_launch_returns_before_the_kernel_ends, tidy_up),
      cmocka_unit_test_teardown(streams_are_in_order_and_side_by_side, tidy_up),
      cmocka_unit_test_teardown(a_stream_waits_for_an_event_of_another, tidy_up),
      cmocka_unit_test_teardown(the_default_stream_and_blocking_streams_wait_for_each_other,
                                tidy_up),
      cmocka_unit_test_teardown(effects_happen_in_stream_order, tidy_up),
      cmocka_unit_test_teardown(a_captured_stream_is_replayed, tidy_up),
      cmocka_unit_test_teardown(errors_are_returned_and_remembered, tidy_up),
      cmocka_unit_test_teardown(a_fork_child_cannot_use_the_gpu, tidy_up),
      cmocka_unit_test_teardown(cupti_times_are_on_the_clients_clock, tidy_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
