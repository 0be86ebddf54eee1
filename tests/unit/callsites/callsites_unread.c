/* SPDX-License-Identifier: MIT
 *
 * Pythons whose frames are not read, because nothing says for certain where they are: one without a
 * GIL, a version that is not known, a table that is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* After cmocka, which defines these names differently. */
#include "inspect/python_layout.h"

enum { WORDS = 96, VERSION = 1, WITHOUT_GIL = 2, FRAME_PREVIOUS = 29 };

/* Where _PyRuntime begins, from 3.13 on. */
struct runtime {
  u64 words[WORDS];
};

static struct runtime runtime_of(u64 minor) {
  struct runtime runtime = {.words = {[VERSION] = (3u << 24 | minor << 16) | 0x2f0}};
  memcpy(runtime.words, "xdebugpy", 8);
  return runtime;
}

static const char *find(const char *version, const struct runtime *runtime) {
  struct python_layout layout;
  return python_layout_find(&layout, version, python_read_directly, NULL, (u64)(uintptr_t)runtime);
}

static void without_gil(void **state) {
  (void)state;
  static const char *const versions[] = {"3.13.0", "3.14.1", "3.15.0"};
  for (u64 i = 0; i < 3; i++) {
    struct runtime runtime = runtime_of(13 + i);
    assert_null(find(versions[i], &runtime));
    runtime.words[WITHOUT_GIL] = 1;
    assert_string_equal(find(versions[i], &runtime), "Python without a GIL is not read");
  }
}

static void unknown_version(void **state) {
  (void)state;
  struct runtime runtime = runtime_of(14);
  assert_non_null(find("3.13.0", &runtime)); /* the table is another version's */
  runtime = runtime_of(16);
  assert_non_null(find("3.16.0", &runtime));
  assert_non_null(find("3.8.20", &runtime));
  assert_non_null(find("2.7.18", &runtime));
}

static void no_table(void **state) {
  (void)state;
  struct runtime runtime = {0};
  assert_non_null(find("3.13.0", &runtime));
  assert_non_null(find("3.13.0", NULL));
  runtime = runtime_of(13);
  runtime.words[FRAME_PREVIOUS] = 1u << 20; /* no structure is so large */
  assert_non_null(find("3.13.0", &runtime));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_gil),
      cmocka_unit_test(unknown_version),
      cmocka_unit_test(no_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
