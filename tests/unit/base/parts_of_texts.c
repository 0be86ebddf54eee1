/* SPDX-License-Identifier: MIT
 *
 * The lines of a text, and the number that one begins with; the folder of a path.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/arena.h"
#include "base/folders.h"
#include "base/texts.h"

static void a_number_that_is_too_large_is_no_other_number(void **state) {
  (void)state;
  static const struct {
    const char *text;
    u64 most, number;
    size_t digits;
  } asked[] = {{"12x", UINT32_MAX, 12, 2},
               {"007", UINT32_MAX, 7, 3},
               {"", UINT32_MAX, 0, 0},
               {"-1", UINT32_MAX, 0, 0},
               {" 1", UINT32_MAX, 0, 0},
               {"4294967295", UINT32_MAX, UINT32_MAX, 10},
               {"4294967297", UINT32_MAX, UINT32_MAX, 10},
               {"9223372036854775807", INT64_MAX, INT64_MAX, 19},
               {"99999999999999999999999 ", INT64_MAX, INT64_MAX, 23},
               {"101", 100, 100, 3},
               {"1010", 100, 100, 4}};
  FOR_EACH(asked, LENGTH_OF(asked), one) {
    const char *end;
    assert_int_equal(leading_number(one->text, one->most, &end), one->number);
    assert_int_equal(end - one->text, one->digits);
  }
}

static void the_last_line_needs_no_end(void **state) {
  (void)state;
  const char *lines = "a=1\n\nb", *nothing = NULL;
  int bytes;
  assert_string_equal(text_next_line(&lines, &bytes), "a=1\n\nb");
  assert_int_equal(bytes, 3);
  assert_string_equal(text_next_line(&lines, &bytes), "\nb");
  assert_int_equal(bytes, 0);
  assert_string_equal(text_next_line(&lines, &bytes), "b");
  assert_int_equal(bytes, 1);
  assert_null(text_next_line(&lines, &bytes));
  assert_null(text_next_line(&nothing, &bytes));
}

static void a_file_in_the_root_is_not_here(void **state) {
  static const char *const paths[][2] = {
      {"/x", "/"}, {"x", "."}, {"./x", "."}, {"a/x", "a"}, {"/a/b/x", "/a/b"}};
  struct arena arena = {0};
  (void)state;
  FOR_EACH(paths, LENGTH_OF(paths), one)
    assert_string_equal(folder_of(&arena, (*one)[0]), (*one)[1]);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_number_that_is_too_large_is_no_other_number),
      cmocka_unit_test(the_last_line_needs_no_end),
      cmocka_unit_test(a_file_in_the_root_is_not_here),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
