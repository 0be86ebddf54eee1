/* SPDX-License-Identifier: MIT
 *
 * For every hooked function of the registries: the arguments of the job reach the real function bit
 * for bit, its result reaches the job, and errno is the real function's.
 */
#include "driver/driver_types.h"

#include "blas/blas_hooks.def"
#include "cuda/cuda_hooks.def"
#include "driver/driver_hooks.def"
#include "nccl/nccl_hooks.def"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "hooks_fakes.h"
#include "hooks_trace.h"

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type wrapper_##name_ params __asm__(#name_);
TSCOPE_CUDA_HOOKS(HOOK)
TSCOPE_NCCL_HOOKS(HOOK)
TSCOPE_BLAS_HOOKS(HOOK)
TSCOPE_DRIVER_HOOKS(HOOK)
#undef HOOK

/* Fills registers and stack with arguments that any function can take. Each is an address of
 * readable memory whose low half is a small number, so it is valid as a pointer, as a count and as
 * a rank. */
typedef uintptr_t word;
typedef word any_function(word, word, word, word, word, word, word, word, word, word, word, word,
                          word, word, word, word, word, word, word, word, word, word, word, word);

static char *arena;

static word call(any_function *function) {
  word a = (word)arena;
  return function(a + 16, a + 24, a + 32, a + 40, a + 48, a + 56, a + 64, a + 72, a + 80, a + 88,
                  a + 96, a + 104, a + 112, a + 120, a + 128, a + 136, a + 144, a + 152, a + 160,
                  a + 168, a + 176, a + 184, a + 192, a + 200);
}

/* All arguments are the same. */
static word call_with(any_function *function, word all) {
  return function(all, all, all, all, all, all, all, all, all, all, all, all, all, all, all, all,
                  all, all, all, all, all, all, all, all);
}

struct hooked {
  const char *name;
  any_function *wrapper;
  size_t result_bytes;
  const char *params;
};

#define SIZE_void 0
#define SIZE_cudaError_t sizeof(cudaError_t)
#define SIZE_CUresult sizeof(CUresult)
#define SIZE_cublasStatus_t sizeof(cublasStatus_t)
#define SIZE_ncclResult_t sizeof(ncclResult_t)
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  {#name_, (any_function *)(void *)wrapper_##name_, SIZE_##type, #params},
static const struct hooked hooked[] = {TSCOPE_CUDA_HOOKS(HOOK) TSCOPE_NCCL_HOOKS(HOOK)
                                           TSCOPE_BLAS_HOOKS(HOOK) TSCOPE_DRIVER_HOOKS(HOOK)};
#undef HOOK

/* Where the ABI passes structures of more than 16 bytes by address, as on aarch64, the compiler
 * makes that address, so a caller cannot pass a wrong one. */
static bool passes_structure_by_address(const struct hooked *function) {
#ifdef __aarch64__
  return strstr(function->params, "cudaExtent extent") ||
         strstr(function->params, "cudaPitchedPtr pitchedDevPtr") ||
         strstr(function->params, "ncclUniqueId commId");
#else
  (void)function;
  return false;
#endif
}

static const char *expected_name;
static int result_wanted, errno_wanted;

static int behave(const struct fake_call *made) {
  if (strcmp(made->name, expected_name))
    return 0; /* a call of tscope itself */
  errno = errno_wanted;
  /* An address is larger than any number of groups or copies that a library accepts. */
  bool refused = (strstr(made->name, "Grouped") && strstr(made->name, "_64")) ||
                 strstr(made->name, "BatchAsync");
  return refused ? CUBLAS_STATUS_NOT_INITIALIZED : result_wanted;
}

static struct fake_call made_by(const char *name, any_function *function, word *result) {
  struct fake_call mine = {0};
  expected_name = name;
  memset(&fake_last, 0, sizeof(fake_last));
  *result = call(function);
  mine = fake_last;
  return mine;
}

static int set_up(void **state) {
  /* ASan uses one of these places itself, TSan the other. */
  static const uintptr_t places[] = {0x1000000000, 0x200000000000};
  for (size_t i = 0; i < 2; i++) {
    arena = mmap((void *)places[i], 1 << 20, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (arena != MAP_FAILED)
      break;
  }
  return arena == MAP_FAILED ? -1 : trace_set_up(state);
}

static void forwards(const char *name, any_function *wrapper, size_t result_bytes) {
  any_function *real = (any_function *)dlsym(RTLD_NEXT, name);
  assert_non_null(real);
  word direct_result, result;
  struct fake_call direct = made_by(name, real, &direct_result);
  errno_wanted = 77;
  struct fake_call through = made_by(name, wrapper, &result);
  assert_int_equal(errno, 77);
  if (strcmp(through.name, name))
    fail_msg("%s: the last function called was %s", name, through.name);
  assert_memory_equal(&direct, &through, sizeof(direct));
  assert_memory_equal(&direct_result, &result, result_bytes);
}

static void every_function_forwards(int returns) {
  fake_behaviour = behave;
  result_wanted = returns;
  for (size_t i = 0; i < LENGTH_OF(hooked); i++)
    forwards(hooked[i].name, hooked[i].wrapper, hooked[i].result_bytes);
}

/* Invalid handles: NULL, and all bits set. The caller gets the error of the real function, and the
 * entries of real handles stay: the words that mark free places are not handles. */
static void invalid_handles_are_forwarded_too(void **state) {
  (void)state;
  result_wanted = 3;
  fake_behaviour = behave;
  for (size_t i = 0; i < LENGTH_OF(hooked); i++)
    for (int set = 0; set <= 1 && !passes_structure_by_address(&hooked[i]); set++) {
      word all = set ? ~(word)0 : 0;
      any_function *real = (any_function *)dlsym(RTLD_NEXT, hooked[i].name);
      expected_name = hooked[i].name;
      memset(&fake_last, 0, sizeof(fake_last));
      word direct = call_with(real, all), through;
      errno_wanted = 77;
      through = call_with(hooked[i].wrapper, all);
      assert_int_equal(errno, 77);
      assert_string_equal(fake_last.name, hooked[i].name);
      assert_memory_equal(&direct, &through, hooked[i].result_bytes);
    }
}

static void successes_are_forwarded(void **state) {
  (void)state;
  every_function_forwards(0);
}

static void failures_are_forwarded(void **state) {
  (void)state;
  every_function_forwards(3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(successes_are_forwarded),
      cmocka_unit_test(failures_are_forwarded),
      cmocka_unit_test(invalid_handles_are_forwarded_too),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
