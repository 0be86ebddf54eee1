/* SPDX-License-Identifier: MIT
 *
 * Jobs that make more streams, kernels and conditional nodes than the tables hold: numbers are used
 * again once their streams are destroyed, the trace does not grow without end, and what has no
 * place is counted.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/launch_shapes.h"
#include "hooks_fakes.h"
#include "hooks_trace.h"
#include "record/hook.h"
#include "record/process_trace.h"
#include "streams/stream_numbers.h"

enum { LIVING = 10, NUMBERS = 65535, BRIEF = 3 * NUMBERS };

static char kernels[9000];

static int behave(const struct fake_call *call) {
  (void)call;
  return 0;
}

static u64 lost(void) {
  return tscope_trace.header->lost[TSCOPE_LOSS_STREAMS];
}

static cudaStream_t living(u32 i) {
  return (cudaStream_t)(uintptr_t)(0x100000 + 64 * i);
}

/* Handles as an allocator gives them: an address comes back after a while. */
static cudaStream_t brief(u32 i) {
  return (cudaStream_t)(uintptr_t)(0x10000000 + 64 * (i % 5000));
}

static void launch(u32 i, cudaStream_t stream) {
  cudaLaunchKernel(&kernels[0], (dim3){1 + i % 4, 1, 1}, (dim3){32, 1, 1}, NULL, 0, stream);
}

static struct tscope_thread *enter(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  assert_non_null(thread);
  return thread;
}

static u16 number_of(cudaStream_t stream) {
  struct tscope_thread *thread = enter();
  u16 index = stream_index(thread, TSCOPE_STREAM_LEGACY, stream);
  tscope_leave(thread);
  return index;
}

static u16 number_on_gpu(u32 id) {
  struct tscope_thread *thread = enter();
  u16 index = stream_index_of_gpu(thread, 0, id);
  tscope_leave(thread);
  return index;
}

static u32 source_id;
static u32 id_of(void *stream, bool per_thread) {
  (void)stream, (void)per_thread;
  return source_id;
}

static void work_reported_after_the_end_of_its_stream_is_still_its_own(void **state) {
  (void)state;
  stream_id_of_clock = id_of;
  source_id = 41;
  u16 index = number_of(brief(1));
  cudaStreamDestroy(brief(1));
  source_id = 42;
  u16 other = number_of(brief(1));
  assert_true(other != index);
  assert_int_equal(number_on_gpu(41), index);
  assert_int_equal(number_on_gpu(42), other);
  cudaStreamDestroy(brief(1));
  stream_id_of_clock = NULL;
}

/* A source may give the id of a destroyed stream to the next one. */
static void an_id_that_comes_back_leads_to_one_number(void **state) {
  (void)state;
  stream_id_of_clock = id_of;
  source_id = 43;
  u16 index = number_of(brief(2));
  cudaStreamDestroy(brief(2));
  assert_int_equal(number_of(brief(3)), index);
  assert_int_equal(number_on_gpu(43), index);
  cudaStreamDestroy(brief(3));
  stream_id_of_clock = NULL;
}

static void more_streams_than_numbers_one_after_the_other_have_one_each(void **state) {
  (void)state;
  u16 of_living[LIVING];
  for (u32 i = 0; i < LIVING; i++)
    of_living[i] = number_of(living(i));
  u64 lost_before = lost();
  stream_id_of_clock = id_of;
  for (u32 i = 0; i < BRIEF; i++) {
    source_id = 1000 + i;
    u16 index = number_of(brief(i));
    assert_int_not_equal(index, TSCOPE_NO_STREAM);
    for (u32 k = 0; k < LIVING; k++)
      assert_int_not_equal(index, of_living[k]);
    if (i % 1000 == 0)
      launch(i, brief(i));
    cudaStreamDestroy(brief(i));
    u32 k = i % LIVING;
    assert_int_equal(number_of(living(k)), of_living[k]);
  }
  stream_id_of_clock = NULL;
  assert_true(lost() == lost_before);
  assert_in_range(count(TSCOPE_REC_STREAM), NUMBERS, 2 * NUMBERS);
  assert_int_equal(LAST(STREAM, stream).gpu_stream, TSCOPE_UNKNOWN);
}

/* Streams that only the source knows, such as those that a library makes for itself. */
static void streams_that_only_the_source_knows_take_no_number_for_ever(void **state) {
  (void)state;
  u64 lost_before = lost();
  u32 records = count(TSCOPE_REC_STREAM);
  for (u32 i = 0; i < 3 * NUMBERS; i++)
    assert_int_not_equal(number_on_gpu(5000000 + i), TSCOPE_NO_STREAM);
  assert_true(lost() == lost_before);
  assert_in_range(count(TSCOPE_REC_STREAM), records, 2 * NUMBERS);
}

static void more_streams_at_a_time_than_numbers_are_counted(void **state) {
  (void)state;
  u32 without = 0;
  u64 lost_before = lost();
  for (u32 i = 0; i < NUMBERS + 1000; i++)
    without += number_of((cudaStream_t)(uintptr_t)(0x40000000 + 64 * i)) == TSCOPE_NO_STREAM;
  assert_in_range(without, 1000, 1100); /* the others below LIVING and the default stream's */
  assert_int_equal(lost() - lost_before, without);
  for (u32 i = 0; i < NUMBERS + 1000; i++)
    cudaStreamDestroy((cudaStream_t)(uintptr_t)(0x40000000 + 64 * i));
  assert_int_not_equal(number_of(brief(7)), TSCOPE_NO_STREAM);
}

static void launch_all_shapes(void) {
  for (u32 i = 0; i < 33000; i++)
    cudaLaunchKernel(&kernels[i % 3], (dim3){1 + i, 1, 1}, (dim3){64, 1, 1}, NULL, 0, NULL);
  for (u32 i = 0; i < sizeof(kernels); i++)
    cudaLaunchKernel(&kernels[i], (dim3){1, 1, 1}, (dim3){96, 1, 1}, NULL, 0, NULL);
}

static void a_full_table_of_shapes_repeats_no_record(void **state) {
  (void)state;
  launch_all_shapes();
  u32 shapes = count(TSCOPE_REC_SHAPE);
  u64 counted = tscope_trace.header->lost[TSCOPE_LOSS_SHAPES];
  assert_in_range(shapes, 32768, 32768 + 8192);
  assert_true(counted > 0);
  launch_all_shapes();
  assert_int_equal(count(TSCOPE_REC_SHAPE), shapes);
  assert_true(tscope_trace.header->lost[TSCOPE_LOSS_SHAPES] > counted);
}

enum { CROWD = 200 };

/* Launches whose keys all want the same few places: not all of them find one. */
static void *launch_crowd(void *unused) {
  for (u32 x = 1, launched = 0; launched < CROWD; x++) {
    dim3 grid = {x, 7, 1}, block = {32, 1, 1};
    u64 key = shape_key_with_name(shape_key(&kernels[1], grid, block), &kernels[1]);
    if ((handle_hash(key) & 0x1ffff) < 32) {
      cudaLaunchKernel(&kernels[1], grid, block, NULL, 0, NULL);
      launched++;
    }
  }
  return unused;
}

/* The second time on another thread, which remembers none of them. */
static void shapes_that_find_no_place_are_counted_and_repeat_no_record(void **state) {
  (void)state;
  pthread_t thread;
  launch_crowd(NULL);
  u32 shapes = count(TSCOPE_REC_SHAPE);
  u64 counted = tscope_trace.header->lost[TSCOPE_LOSS_SHAPES];
  assert_true(counted > 0);
  assert_int_equal(pthread_create(&thread, NULL, launch_crowd, NULL), 0);
  pthread_join(thread, NULL);
  assert_int_equal(count(TSCOPE_REC_SHAPE), shapes);
  assert_true(tscope_trace.header->lost[TSCOPE_LOSS_SHAPES] == 2 * counted);
}

static int set_up(void **state) {
  fake_behaviour = behave;
  cudaSetDevice(0); /* so that no stream searches for a driver */
  return setenv("TSCOPE_GPU", "cupti", 1) || trace_set_up(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(work_reported_after_the_end_of_its_stream_is_still_its_own),
      cmocka_unit_test(an_id_that_comes_back_leads_to_one_number),
      cmocka_unit_test(more_streams_than_numbers_one_after_the_other_have_one_each),
      cmocka_unit_test(streams_that_only_the_source_knows_take_no_number_for_ever),
      cmocka_unit_test(more_streams_at_a_time_than_numbers_are_counted),
      cmocka_unit_test(shapes_that_find_no_place_are_counted_and_repeat_no_record),
      cmocka_unit_test(a_full_table_of_shapes_repeats_no_record),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
