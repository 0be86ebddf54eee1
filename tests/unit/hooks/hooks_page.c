/* SPDX-License-Identifier: MIT
 *
 * Checks the example of docs/adding-a-hook.md: its lines, expanded like those of a registry, are
 * hooks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/cuda_record.h"
#include "hooks/wrapper.h"
#include "hooks_fakes.h"
#include "hooks_trace.h"

#define PAGE_RECORDERS
#include "hooks_page.h"

#define HOOK(...) TSCOPE_WRAPPER(tscope_cuda_sonames, __VA_ARGS__)
PAGE_HOOKS(HOOK)

static int behave(const struct fake_call *call) {
  if (strcmp(call->name, "cudaExternalMemoryGetMappedBuffer"))
    return 0;
  *FAKE_ARG(call, 0, void **) = (void *)0x4000;
  return 0;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static cudaError_t copy_from_array(char *to) {
  return cudaMemcpyFromArray(to, NULL, 0, 0, 800, cudaMemcpyDeviceToHost);
}

static void the_line_is_a_hook(void **state) {
  (void)state;
  char to[800];
  assert_int_equal(copy_from_array(to), cudaSuccess);
  assert_string_equal(fake_last.name, "cudaMemcpyFromArray");
  void *memory;
  cudaMalloc(&memory, 1); /* starts the recording of the process; a copy would not */
  copy_from_array(to);
  assert_int_equal(count(TSCOPE_REC_MEMCPY), 1);
  assert_int_equal(LAST(MEMCPY, memcpy).bytes, 800);
  assert_int_equal(LAST(MEMCPY, memcpy).kind, TSCOPE_MEMCPY_D2H);
}

static void the_recorder_records(void **state) {
  (void)state;
  fake_behaviour = behave;
  struct cudaExternalMemoryBufferDesc desc = {.size = 512};
  void *memory;
  assert_int_equal(cudaExternalMemoryGetMappedBuffer(&memory, NULL, &desc), cudaSuccess);
  assert_int_equal(LAST(ALLOC, alloc).bytes, 512);
  assert_int_equal(LAST(ALLOC, alloc).address, 0x4000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_line_is_a_hook),
      cmocka_unit_test(the_recorder_records),
  };
  return cmocka_run_group_tests(tests, trace_set_up, trace_tear_down);
}
