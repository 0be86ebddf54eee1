/* SPDX-License-Identifier: MIT
 *
 * What is recorded of tensor memory, with stand-ins for PyTorch's functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "hooks_fakes.h"
#include "hooks_trace.h"
#include "inside_c10.h"

static int out_of_memory(const struct fake_call *call) {
  return strcmp(call->name, "cudaMalloc") == 0 ? cudaErrorMemoryAllocation : 0;
}

static int set_up(void **state) {
  return trace_set_up(state);
}

static void a_block_wakes_nothing(void **state) {
  (void)state;
  c10_report((void *)0x1000, 512, 512, 2097152, C10_CUDA_0);
  assert_int_equal(c10_last.calls, 1);
  struct trace trace = trace_read();
  assert_null(trace.bytes);
  void *memory;
  cudaMalloc(&memory, 1);
}

static void each_block_comes_with_the_totals(void **state) {
  (void)state;
  int calls = c10_last.calls;
  c10_report((void *)0x2000, 1024, 4096, 2097152, C10_CUDA_3);
  assert_int_equal(c10_last.calls, calls + 1);
  assert_ptr_equal(c10_last.address, (void *)0x2000);
  assert_int_equal(c10_last.bytes, 1024);
  assert_int_equal(c10_last.allocated, 4096);
  assert_int_equal(c10_last.reserved, 2097152);
  assert_int_equal(c10_last.device, C10_CUDA_3);
  c10_report((void *)0x2000, -1024, 3072, 2097152, C10_CUDA_3);
  struct tscope_tensor_totals_record block = LAST(TENSOR_TOTALS, tensor_totals);
  assert_int_equal(block.header.tag, C10_CUDA_3);
  assert_int_equal(block.address, 0x2000);
  assert_true(block.bytes == -1024);
  assert_int_equal(block.allocated, 3072);
  assert_int_equal(block.reserved, 2097152);
}

/* A listening profiler hears of a block from the same function as tscope. */
static void a_block_counts_once(void **state) {
  (void)state;
  u32 tensors = count(TSCOPE_REC_TENSOR), totals = count(TSCOPE_REC_TENSOR_TOTALS);
  c10_cpu_new(NULL, (void *)0x3000, 64);
  assert_int_equal(c10_last.allocated, 77); /* the real function was called */
  assert_int_equal(count(TSCOPE_REC_TENSOR), tensors + 1);
  assert_int_equal(count(TSCOPE_REC_TENSOR_TOTALS), totals);
  struct tscope_tensor_record block = LAST(TENSOR, tensor);
  assert_int_equal(block.header.tag, C10_CPU);
  assert_true(block.bytes == 64);
}

static void refusals_are_recorded(void **state) {
  (void)state;
  void *memory;
  fake_behaviour = out_of_memory;
  assert_int_equal(cudaMalloc(&memory, 1ull << 40), cudaErrorMemoryAllocation);
  fake_behaviour = NULL;
  struct tscope_out_of_memory_record refusal = LAST(OUT_OF_MEMORY, out_of_memory);
  assert_int_equal(refusal.header.tag, TSCOPE_REFUSAL_API);
  assert_true(refusal.bytes == 1ull << 40);
  assert_true(refusal.allocated == UINT64_MAX); /* CUDA does not know */
  assert_int_equal(refusal.memory, TSCOPE_MEMORY_DEVICE);
  c10_report_refused(1l << 40, 5000, 6000, C10_CUDA_0);
  refusal = LAST(OUT_OF_MEMORY, out_of_memory);
  assert_int_equal(refusal.header.tag, TSCOPE_REFUSAL_ALLOCATOR);
  assert_true(refusal.bytes == 1ull << 40);
  assert_int_equal(refusal.allocated, 5000);
  assert_int_equal(refusal.reserved, 6000);
  assert_int_equal(refusal.device, C10_CUDA_0);
  assert_true(refusal.device_free == UINT64_MAX);
}

/* The last MEMORY record of a device once it counts `events`; it comes within 100 ms. */
static struct tscope_memory_record totals_of(u16 device, u64 events) {
  for (;;) {
    struct trace trace = trace_read();
    struct trace_record at = {0};
    struct tscope_memory_record last = {0};
    while (trace_next_of(&trace, &at, TSCOPE_REC_MEMORY))
      if (at.record->tag == device)
        memcpy(&last, at.record, sizeof(last));
    trace_close(&trace);
    if (last.obtained + last.given_back == events)
      return last;
    usleep(10000);
  }
}

static void *allocate(void *device) {
  for (unsigned long i = 1; i <= 10000; i++)
    c10_report((void *)0x1000, i % 2 ? 512 : -512, i, 20000 - i, *(unsigned short *)device);
  return NULL;
}

/* Two threads use one device each; a peak is the maximum since the previous record. */
static void totals_and_peaks_are_recorded(void **state) {
  (void)state;
  static unsigned short devices[] = {0x0401, 0x2401}; /* the same place in the shim's table */
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, allocate, &devices[i]);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) {
    struct tscope_memory_record totals = totals_of(devices[i], 10000);
    assert_int_equal(totals.allocated, 10000);
    assert_int_equal(totals.reserved, 10000);
    assert_int_equal(totals.peak_allocated, 10000);
    assert_in_range(totals.peak_reserved, 10000, 19999);
    assert_int_equal(totals.obtained, 5000);
  }
  c10_report((void *)0x1000, 512, 99999, 99999, devices[0]);
  c10_report((void *)0x1000, -512, 10, 20, devices[0]);
  struct tscope_memory_record totals = totals_of(devices[0], 10002);
  assert_int_equal(totals.allocated, 10);
  assert_int_equal(totals.reserved, 20);
}

static void that_totals_of_more_devices_are_not_kept_is_said(void **state) {
  (void)state;
  enum { DEVICES = 40 };
  u32 blocks = count(TSCOPE_REC_TENSOR_TOTALS), infos = count(TSCOPE_REC_INFO);
  for (int i = 0; i < DEVICES; i++)
    c10_report((void *)0x1000, 512, 512, 2097152, (unsigned short)(C10_CUDA_3 + 0x100 * (1 + i)));
  assert_int_equal(count(TSCOPE_REC_TENSOR_TOTALS), blocks + DEVICES);
  for (int i = 0; i < 100 && count(TSCOPE_REC_INFO) == infos; i++)
    usleep(100000); /* the poller says it */
  assert_string(LAST(INFO, info).value, "only of the first 32 devices");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_block_wakes_nothing),
      cmocka_unit_test(each_block_comes_with_the_totals),
      cmocka_unit_test(a_block_counts_once),
      cmocka_unit_test(refusals_are_recorded),
      cmocka_unit_test(totals_and_peaks_are_recorded),
      cmocka_unit_test(that_totals_of_more_devices_are_not_kept_is_said),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
