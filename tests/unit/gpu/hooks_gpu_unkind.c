/* SPDX-License-Identifier: MIT
 *
 * CUPTI behaves as on real GPUs: a buffer for each thread that launches, withheld while any work in
 * it runs; and it takes much device memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "hooks_gpu.h"

static const int64_t us = 1000, ms = 1000000;

enum { THREADS = 100 };
static pthread_barrier_t all_have_launched;

static void *launch_one(void *nothing) {
  (void)nothing;
  launch(&kernel, us);
  pthread_barrier_wait(&all_have_launched);
  return NULL;
}

/* The stand-in ends the program when it gets a buffer that it already has. */
static void more_threads_than_buffers_share_none(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  launch(&kernel, us);
  u32 before = kernels_seen();
  assert_int_equal(pthread_barrier_init(&all_have_launched, NULL, THREADS), 0);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, launch_one, NULL), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  u32 seen = kernels_seen() - before;
  u64 dropped = __atomic_load_n(&gpu_clock_cupti.totals->dropped, __ATOMIC_RELAXED);
  assert_int_equal(seen + dropped, THREADS);
  assert_true(seen > 0);
}

bool standin_cupti_records(CUpti_ActivityKind kind); /* the stand-in's */

/* Records of waits make each call of CUDA longer, also calls that launch nothing and after they are
 * disabled (H100, CUPTI 13.0); those of events make each cudaEventRecord() longer. */
static void nothing_is_recorded_that_makes_other_calls_longer(void **state) {
  (void)state;
  launch(&kernel, us);
  assert_true(kernels_seen() > 0);
  assert_true(standin_cupti_records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  static const CUpti_ActivityKind costly[] = {
      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT,
      CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_KERNEL};
  for (size_t i = 0; i < LENGTH_OF(costly); i++)
    assert_false(standin_cupti_records(costly[i]));
}

/* Launches a kernel that runs for so long and one that does not, and looks for them meanwhile.
 * False if the machine was so busy that the first was over by then. */
static bool are_withheld(cudaStream_t other, int64_t length) {
  u32 before = kernels_seen();
  int64_t over = standin_now_ns() + length;
  launch_on(other, &kernel, length);
  launch(&kernel, us);
  assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
  poller_part(gpu_clock_cupti.poll);
  u32 seen = count(TSCOPE_REC_GPU_KERNEL);
  if (standin_now_ns() >= over)
    return false;
  assert_int_equal(seen, before);
  u64 patience = gpu_clock_timeouts.held_back_ns;
  __atomic_store_n(&gpu_clock_timeouts.held_back_ns, 0, __ATOMIC_RELAXED);
  poller_part(gpu_clock_cupti.poll);
  __atomic_store_n(&gpu_clock_timeouts.held_back_ns, patience, __ATOMIC_RELAXED);
  seen = count(TSCOPE_REC_GPU_KERNEL);
  if (standin_now_ns() >= over)
    return false;
  assert_int_equal(seen, before + 1);
  return true;
}

/* While a long kernel runs, CUPTI does not deliver those before it, unless it is forced to. */
static void withheld_records_are_delivered_in_the_end(void **state) {
  (void)state;
  cudaStream_t other;
  assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
  setenv("STANDIN_CUPTI_WITHHOLD", "1", 1);
  for (int64_t length = 250 * ms; !are_withheld(other, length); length *= 2)
    assert_true(length < 16000 * ms);
  unsetenv("STANDIN_CUPTI_WITHHOLD");
  cudaStreamSynchronize(other);
  cudaStreamDestroy(other);
}

static size_t device_buffers(void) {
  size_t limit = 0, bytes = sizeof(limit);
  assert_int_equal(
      cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &bytes, &limit),
      CUPTI_SUCCESS);
  return limit;
}

static void the_jobs_device_memory_is_left_to_it(void **state) {
  (void)state;
  assert_true(device_buffers() <= 32);
}

/* Both default streams have a special handle of the driver in addition to NULL. */
static void default_streams_are_known_by_their_handles(void **state) {
  (void)state;
  u32 by_none = gpu_clock_stream_id(NULL, false);
  assert_true(by_none != TSCOPE_UNKNOWN);
  assert_int_equal(gpu_clock_stream_id(cudaStreamLegacy, false), by_none);
  assert_int_equal(gpu_clock_stream_id(cudaStreamPerThread, true), gpu_clock_stream_id(NULL, true));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(more_threads_than_buffers_share_none),
      cmocka_unit_test(nothing_is_recorded_that_makes_other_calls_longer),
      cmocka_unit_test(withheld_records_are_delivered_in_the_end),
      cmocka_unit_test(the_jobs_device_memory_is_left_to_it),
      cmocka_unit_test(default_streams_are_known_by_their_handles),
  };
  return cmocka_run_group_tests(tests, gpu_set_up, trace_tear_down);
}
