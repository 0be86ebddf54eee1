/* SPDX-License-Identifier: MIT
 *
 * docs/adding-a-hook.md does what it says: its lines, expanded as a registry's would be, are hooks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/cuda_record.h"
#include "hooks_fakes.h"
#include "hooks_trace.h"
#include "wrapper.h"

#define PAGE_RECORDERS
#include "hooks_page.h"

#define HOOK(...) TSCOPE_WRAPPER(tscope_cuda_sonames, __VA_ARGS__)
PAGE_HOOKS(HOOK)

static int behave(const struct fake_call *call) {
  if (strcmp(call->name, "cudaMallocPitch"))
    return 0;
  *FAKE_ARG(call, 0, void **) = (void *)0x4000;
  *FAKE_ARG(call, 1, size_t *) = 512;
  return 0;
}

static void the_line_is_a_hook(void **state) {
  (void)state;
  assert_int_equal(cudaMemset2D((void *)0x1000, 512, 0, 100, 8), cudaSuccess);
  assert_string_equal(fake_last.name, "cudaMemset2D");
  void *memory;
  cudaMalloc(&memory, 1); /* wakes the process, which a fill does not */
  cudaMemset2D((void *)0x1000, 512, 0, 100, 8);
  assert_int_equal(count(TSCOPE_REC_FILL), 1);
  assert_int_equal(LAST(FILL, fill).bytes, 800);
}

static void the_recorder_records(void **state) {
  (void)state;
  fake_behaviour = behave;
  void *memory;
  size_t pitch;
  assert_int_equal(cudaMallocPitch(&memory, &pitch, 100, 8), cudaSuccess);
  assert_int_equal(LAST(ALLOC, alloc).bytes, 512 * 8);
  assert_int_equal(LAST(ALLOC, alloc).address, 0x4000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_line_is_a_hook),
      cmocka_unit_test(the_recorder_records),
  };
  return cmocka_run_group_tests(tests, trace_set_up, trace_tear_down);
}
