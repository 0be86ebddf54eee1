/* SPDX-License-Identifier: MIT
 *
 * GPU times through CUPTI on the stand-in GPU, whose kernels run for a given time: what is recorded
 * of them, also in captures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/wait.h>

#include "hooks_gpu.h"

static char plain, collective, unseen;

static int set_up(void **state) {
  register_kernel(&plain, "_Z5plainv");
  register_kernel(&collective, "_Z22ncclDevKernel_SendRecvv");
  register_kernel(&unseen, "_Z6unseenv");
  return trace_set_up(state) || cudaStreamCreate(&stream) != cudaSuccess;
}

static int tear_down(void **state) {
  cudaStreamDestroy(stream);
  return trace_tear_down(state);
}

/* CUPTI converts its times with a clock that it reads only from time to time. */
enum { CLOCK_ERROR_NS = 10000 };

static void assert_lasted(u64 dur, u64 ns) {
  assert_in_range(dur, ns - CLOCK_ERROR_NS, ns + CLOCK_ERROR_NS);
}

/* Does now what the helper thread does from time to time. */
static void deliver(void) {
  cudaDeviceSynchronize();
  gpu_clock_cupti.poll(NULL);
}

static void kernels_copies_and_fills_are_timed(void **state) {
  (void)state;
  void *memory;
  char host[4096] = "";
  launch(&plain, 3000000);
  cudaMalloc(&memory, sizeof(host));
  cudaMemcpyAsync(memory, host, sizeof(host), cudaMemcpyHostToDevice, stream);
  cudaMemsetAsync(memory, 0, 100, stream);
  deliver();
  struct tscope_gpu_kernel_record run = LAST(GPU_KERNEL, gpu_kernel);
  assert_lasted(run.dur, 3000000);
  assert_string(run.name, "_Z5plainv");
  struct tscope_gpu_memcpy_record copy = LAST(GPU_MEMCPY, gpu_memcpy);
  assert_int_equal(copy.kind, TSCOPE_MEMCPY_H2D);
  assert_int_equal(copy.bytes, sizeof(host));
  assert_int_equal(LAST(GPU_MEMSET, gpu_memset).bytes, 100);
  /* The host and the GPU have the same number for the stream. */
  u16 launched_on = LAST(LAUNCH, launch).header.tag;
  assert_int_equal(run.header.tag, launched_on);
  assert_int_equal(copy.header.tag, launched_on);
  assert_true(LAST(STREAM, stream).gpu_stream != TSCOPE_UNKNOWN);
  assert_int_equal(LAST(GPU_CLOCK, gpu_clock).header.tag, TSCOPE_GPU_CLOCK_CUPTI);
  cudaFree(memory);
}

/* PyTorch's own stream is a default stream, for which CUPTI has to be given the context. */
static void work_on_default_streams_has_the_number_of_its_launch(void **state) {
  (void)state;
  const cudaStream_t defaults[] = {NULL, cudaStreamLegacy, cudaStreamPerThread};
  for (u32 i = 0; i < LENGTH_OF(defaults); i++) {
    launch_on(defaults[i], &plain, 1000000);
    deliver();
    assert_int_equal(LAST(GPU_KERNEL, gpu_kernel).header.tag, LAST(LAUNCH, launch).header.tag);
    assert_true(LAST(STREAM, stream).gpu_stream != TSCOPE_UNKNOWN);
  }
}

/* The times of the spans of a type are on CLOCK_MONOTONIC, according to their chunk. */
static void spans_are_in_nanoseconds_of_clock_monotonic(void **state) {
  (void)state;
  int64_t before = standin_now_ns();
  launch(&plain, 1000000);
  deliver();
  int64_t after = standin_now_ns();
  struct trace trace = trace_read();
  struct trace_record at = {0}, last = {0};
  while (trace_next_of(&trace, &at, TSCOPE_REC_GPU_KERNEL))
    last = at;
  assert_int_equal(last.chunk->clock, TSCOPE_CLOCK_MONOTONIC);
  assert_in_range(last.base + last.record->time, before - CLOCK_ERROR_NS,
                  after - 1000000 + CLOCK_ERROR_NS);
  trace_close(&trace);
}

static void collective_kernels_are_recorded_as_runs(void **state) {
  (void)state;
  u32 kernels = count(TSCOPE_REC_GPU_KERNEL);
  launch(&collective, 2000000);
  deliver();
  assert_int_equal(count(TSCOPE_REC_GPU_KERNEL), kernels);
  struct tscope_collective_run_record run = LAST(COLLECTIVE_RUN, collective_run);
  assert_lasted(run.dur, 2000000);
  assert_int_equal(run.comm, TSCOPE_UNKNOWN);
  assert_string(run.name, "_Z22ncclDevKernel_SendRecvv");
}

/* More nanoseconds than 32 bits hold. */
static void long_spans_keep_their_length(void **state) {
  (void)state;
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  assert_non_null(thread);
  struct gpu_span span = {.kind = GPU_SPAN_KERNEL, .start = (u64)standin_now_ns(), .name = "slow"};
  span.end = span.start + 6000000000;
  gpu_span_record(thread, &span);
  span.name = "nccl_slow";
  gpu_span_record(thread, &span);
  tscope_leave(thread);
  assert_true(LAST(COLLECTIVE_RUN, collective_run).dur == 6000000000);
  struct {
    struct tscope_gpu_kernel_record record;
    u64 dur;
  } run;
  last_record(TSCOPE_REC_GPU_KERNEL, &run, sizeof(run));
  assert_int_equal(run.record.header.words, sizeof(run) / 8);
  assert_int_equal(run.record.dur, TSCOPE_DUR_LONG);
  assert_true(run.dur == 6000000000);
}

static void a_capture_is_the_same_as_without_tscope(void **state) {
  (void)state;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  launch(&unseen, 2000000); /* the first of its kind, so the capture goes through every slow path */
  assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  assert_int_equal(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  assert_int_equal(cudaGraphLaunch(executable, stream), cudaSuccess);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
  u32 kernels = count(TSCOPE_REC_GPU_KERNEL);
  deliver();
  assert_int_equal(count(TSCOPE_REC_GPU_KERNEL), kernels + 1); /* only what the job captured */
  assert_int_equal(count(TSCOPE_REC_GRAPH_LAUNCH), 1);
  assert_string(LAST(GPU_KERNEL, gpu_kernel).name, "_Z6unseenv");
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

/* It runs the exit handlers of its parent. */
static void the_exit_of_a_child_that_shares_memory_ends_nothing(void **state) {
  (void)state;
  u32 kernels = count(TSCOPE_REC_GPU_KERNEL);
  pid_t child = vfork();
  if (child == 0)
    exit(0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  launch(&plain, 1000000);
  deliver();
  assert_int_equal(count(TSCOPE_REC_GPU_KERNEL), kernels + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_copies_and_fills_are_timed),
      cmocka_unit_test(work_on_default_streams_has_the_number_of_its_launch),
      cmocka_unit_test(spans_are_in_nanoseconds_of_clock_monotonic),
      cmocka_unit_test(collective_kernels_are_recorded_as_runs),
      cmocka_unit_test(long_spans_keep_their_length),
      cmocka_unit_test(a_capture_is_the_same_as_without_tscope),
      cmocka_unit_test(the_exit_of_a_child_that_shares_memory_ends_nothing),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
