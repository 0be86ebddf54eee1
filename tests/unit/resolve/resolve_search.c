/* SPDX-License-Identifier: MIT
 *
 * Look-ups in the tables of loaded objects find what dlsym() finds, without the linker's lock.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "resolve/search.h"
#include "resolve/unloading.h"

static const char *library; /* resolved.c: has a table of hashes in the older format only */

/* Functions with one version and with several, chosen at run time (IFUNC), and variables. */
static void finds_what_dlsym_finds(void **state) {
  (void)state;
  static const char *const names[] = {
    "malloc",
    "memcpy",
    "strlen",
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they have their own */
    "time",
    "gettimeofday",
#endif
    "getpid",
    "realpath",
    "pthread_cond_wait",
    "dlvsym",
    "fopen",
    "nftw",
    "regexec",
    "environ",
    "stdout",
    "tscope_no_such_name"
  };
  for (size_t i = 0; i < LENGTH_OF(names); i++) {
    void *expected = dlsym(RTLD_DEFAULT, names[i]);
    if (tscope_first_definition(names[i]) != expected)
      fail_msg("%s: %p, not %p", names[i], tscope_first_definition(names[i]), expected);
  }
}

static void behind_tscope_is_what_the_program_started_with(void **state) {
  (void)state;
  struct definers found = tscope_definers("malloc", NULL);
  assert_ptr_equal(found.next, dlsym(RTLD_NEXT, "malloc"));
  found = tscope_definers("tscope_no_such_name", NULL);
  assert_true(!found.next && !found.loaded && !found.known);
}

static void an_object_loaded_later_is_told_apart(void **state) {
  static const char *const sonames[] = {"libother.so", "libresolved.so", NULL};
  (void)state;
  assert_int_equal(tscope_definers("resolved_by_hash", sonames).n_loaded, 0);
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(handle);
  void *expected = dlsym(handle, "resolved_by_hash");
  struct definers found = tscope_definers("resolved_by_hash", sonames);
  assert_null(found.next);
  assert_int_equal(found.n_loaded, 1);
  assert_int_equal(found.n_known, 1);
  assert_ptr_equal(found.loaded, expected);
  assert_ptr_equal(found.known, expected);
  assert_int_equal(tscope_definers("resolved_by_hash", NULL).n_known, 0);
  assert_ptr_equal(tscope_definition_in("libresolved.so", "resolved_by_hash"), expected);
  assert_ptr_equal(tscope_definition_beside(expected, "resolved_by_hash"), expected);
  assert_null(tscope_definition_beside(expected, "malloc"));
  dlclose(handle);
  assert_int_equal(tscope_definers("resolved_by_hash", sonames).n_loaded, 0);
}

/* The linker never binds a call in one namespace to a function of another. */
static void other_namespaces_are_left_alone(void **state) {
#ifdef __SANITIZE_ADDRESS__
  print_message("skipped: the address sanitizer ends a program that loads a second copy of it\n");
  skip();
#endif
  (void)state;
  void *handle = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
  if (!handle) /* as under sanitizers */
    skip();
  assert_int_equal(tscope_definers("resolved_by_hash", NULL).n_loaded, 0);
  dlclose(handle);
}

/* Last: the library stays. */
static void what_hooks_keep_is_not_unloaded(void **state) {
  (void)state;
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  int (*function)(void) = (int (*)(void))tscope_definers("resolved_by_hash", NULL).loaded;
  assert_non_null(handle);
  tscope_keep_loaded((const void *)function);
  assert_int_equal(tscope_hook_dlclose(handle), 0);
  assert_int_equal(function(), 42);
}

int main(int argc, char **argv) {
  assert_int_equal(argc, 2);
  library = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_what_dlsym_finds),
      cmocka_unit_test(behind_tscope_is_what_the_program_started_with),
      cmocka_unit_test(an_object_loaded_later_is_told_apart),
      cmocka_unit_test(other_namespaces_are_left_alone),
      cmocka_unit_test(what_hooks_keep_is_not_unloaded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
