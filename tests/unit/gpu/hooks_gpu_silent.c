/* SPDX-License-Identifier: MIT
 *
 * A CUPTI that opens and then delivers nothing, as on GPUs that it may not trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks_gpu.h"

static int set_up(void **state) {
  __atomic_store_n(&gpu_clock_timeouts.silence_ns, 200000000, __ATOMIC_RELAXED);
  return setenv("STANDIN_CUPTI_SILENT", "1", 1) || gpu_set_up(state);
}

static struct tscope_gpu_clock_record wait_for(enum tscope_gpu_clock id, int64_t ns) {
  const struct timespec pause = {.tv_nsec = 20000000};
  struct tscope_gpu_clock_record clock;
  int64_t until = standin_now_ns() + ns;
  while ((clock = LAST(GPU_CLOCK, gpu_clock)).header.tag != id && standin_now_ns() < until)
    nanosleep(&pause, NULL);
  return clock;
}

static void no_records_without_work_is_normal(void **state) {
  (void)state;
  void *memory;
  assert_int_equal(cudaMalloc(&memory, 1), cudaSuccess);
  assert_int_equal(wait_for(TSCOPE_GPU_CLOCK_EVENTS, 1500000000).header.tag,
                   TSCOPE_GPU_CLOCK_CUPTI);
  cudaFree(memory);
}

static void no_records_of_kernels_ends_the_source(void **state) {
  (void)state;
  launch(&kernel, 1000);
  cudaDeviceSynchronize();
  struct tscope_gpu_clock_record clock = wait_for(TSCOPE_GPU_CLOCK_EVENTS, 20000000000);
  assert_int_equal(clock.header.tag, TSCOPE_GPU_CLOCK_EVENTS);
  assert_string(clock.reason, "CUPTI delivers no records, though kernels were launched");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_records_without_work_is_normal),
                                     cmocka_unit_test(no_records_of_kernels_ends_the_source)};
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
