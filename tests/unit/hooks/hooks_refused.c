/* SPDX-License-Identifier: MIT
 *
 * If CUPTI refuses, the job continues, CUPTI is not tried again, and the trace says what happened.
 * If the driver is for an older CUDA than CUPTI, CUPTI is not called at all: hooks_refused older.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks_fakes.h"
#include "hooks_trace.h"

extern int refusals;
int cuDriverGetVersion(int *version); /* of the driver, without which CUPTI is not asked */

static bool driver_is_older;

/* What the driver says of itself, whatever runtime the job has: here one that knows of no driver.
 */
static void check_driver_fact(void) {
  struct trace trace = trace_read();
  const struct tscope_info_record *fact = NULL;
  u32 n = 0;
  do
    fact = trace_record(&trace, TSCOPE_REC_INFO, n++);
  while (fact && fact->header.tag != TSCOPE_INFO_CUDA_DRIVER);
  assert_non_null(fact);
  assert_string(fact->value, driver_is_older ? "12.9" : "13.0");
  trace_close(&trace);
}

static void a_refusal_is_recorded_and_harms_nothing(void **state) {
  (void)state;
  void *memory;
  char kernel;
  int version;
  assert_int_equal(cuDriverGetVersion(&version), 0);
  refusals = 0;
  fake_behaviour = NULL; /* every other library succeeds */
  assert_int_equal(cudaMalloc(&memory, 1), cudaSuccess);
  assert_int_equal(refusals > 0, !driver_is_older);
  int asked = refusals;
  assert_int_equal(
      cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, (cudaStream_t)0x5000),
      cudaSuccess);
  assert_int_equal(refusals, asked);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), 1);
  check_driver_fact();
  assert_int_equal(LAST(STREAM, stream).gpu_stream, TSCOPE_UNKNOWN);
  struct tscope_gpu_clock_record clock = LAST(GPU_CLOCK, gpu_clock);
  assert_int_equal(clock.header.tag, TSCOPE_GPU_CLOCK_HOST);
  assert_string(clock.reason, driver_is_older ? "the driver is for CUDA 12.9, and CUPTI for CUDA 13"
                                              : "CUPTI refused buffers: no reason given");
}

/* Selects CUPTI, so that a driver on this machine does not change the result. */
static int set_up(void **state) {
  return setenv("TSCOPE_GPU", "cupti", 1) ||
         setenv("DRIVER_FOR", driver_is_older ? "12090" : "13000", 1) || trace_set_up(state);
}

int main(int argc, char **argv) {
  (void)argv;
  driver_is_older = argc > 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_refusal_is_recorded_and_harms_nothing)};
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
