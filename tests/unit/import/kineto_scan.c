/* SPDX-License-Identifier: MIT
 *
 * JSON that is scanned many characters at a time, compared with what one at a time gives: the
 * number in a text, and where a value ends, wherever these begin.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/each.h"
#include "import/kineto/json_scan.h"

#define NOT_A_NUMBER (-7)

/* A text as the scanner wants it, with zeroes behind it. */
struct padded {
  char at[256 + SCAN_PADDING];
  u32 n;
};

static struct padded padded(const char *text) {
  struct padded of = {.n = (u32)strlen(text)};
  assert_true(of.n <= 256);
  memcpy(of.at, text, of.n);
  return of;
}

static i64 thousandths(const char *text) {
  struct padded of = padded(text);
  return scan_thousandths((struct json_text){.at = of.at, .n = of.n}, NOT_A_NUMBER);
}

static i64 integer(const char *text) {
  struct padded of = padded(text);
  return scan_integer((struct json_text){.at = of.at, .n = of.n}, NOT_A_NUMBER);
}

static void numbers_of_every_length(void **state) {
  (void)state;
  static const char digits[] = "9081726354453627180912";
  for (int whole = 1; whole <= 16; whole++)
    for (int fraction = 0; fraction <= 20; fraction++)
      for (int sign = 0; sign < 2; sign++) {
        char text[64];
        snprintf(text, sizeof(text), "%s%.*s%s%.*s", sign ? "-" : "", whole, digits + whole % 3,
                 fraction ? "." : "", fraction, digits + 1);
        i64 expected = (i64)llroundl(strtold(text, NULL) * 1000);
        assert_int_equal(thousandths(text), expected);
        assert_int_equal(integer(text), expected / 1000);
      }
}

static void numbers_at_the_edges(void **state) {
  (void)state;
  assert_int_equal(integer("0"), 0);
  assert_int_equal(integer("000000000000000012"), 12);
  assert_int_equal(integer("999999999999999999"), 999999999999999999);
  assert_int_equal(integer("9999999999999999999999"), INT64_MAX);
  assert_int_equal(thousandths("9100000000000001"), 9100000000000001000);
  assert_int_equal(thousandths("9999999999999999"), INT64_MAX);
  assert_int_equal(thousandths(".5"), 500);
  assert_int_equal(thousandths("5."), 5000);
  assert_int_equal(thousandths("1.9999"), 2000);
  assert_int_equal(thousandths("1.99949"), 1999);
  assert_int_equal(thousandths("1e3"), 1000000);
  for (const char *const *bad =
           (const char *const[]){"", "-", ".", "NaN", "null", "12a", "1.2.3", "12:3", "1/2", NULL};
       *bad; bad++) {
    assert_int_equal(thousandths(*bad), NOT_A_NUMBER);
    assert_int_equal(integer(*bad), NOT_A_NUMBER);
  }
}

/* Where an object or array ends, one character after the other; 0 if it does not. */
static u32 end_of_container(const char *text) {
  u32 depth = 0, at = 0;
  bool in_string = false;
  for (; text[at]; at++) {
    char c = text[at];
    if (in_string && c == '\\') {
      if (!text[++at])
        return 0;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && strchr("[{", c)) {
      depth++;
    } else if (!in_string && strchr("]}", c) && --depth == 0) {
      return at + 1;
    }
  }
  return 0;
}

static void assert_ends(const char *text) {
  struct padded of = padded(text);
  for (u32 n = 1; n <= of.n; n++) {
    char kept = of.at[n];
    of.at[n] = 0;
    u32 expected = end_of_container(of.at);
    const char *behind = scan_value(of.at, of.at + n);
    assert_ptr_equal(behind, expected ? of.at + expected : NULL);
    of.at[n] = kept;
    if (expected)
      return;
  }
}

static void values_end_where_they_do(void **state) {
  (void)state;
  static const char *const values[] = {
      "[]",
      "{}",
      "[\"]\"]",
      "[\"\\\"]\", \"\\\\\", [\"\\\\\\\"\"]]",
      "[\\\"\\\"]",
      "{\"a\": [[4096, 1], [], {\"b\": \"}]\"}], \"c\": \"\\u005d\"}",
      "[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]",
      "[\"c10::BFloat16\", \"c10::BFloat16\", \"\", \"Scalar\"]",
  };
  for (size_t i = 0; i < LENGTH_OF(values); i++)
    for (int blanks = 0; blanks < 36; blanks++) {
      char text[256];
      snprintf(text, sizeof(text), "[%*s%s, \"%*s\\\"\"] ]", blanks, "", values[i], blanks, "");
      assert_ends(text);
    }
}

static void strings_end_at_their_quotes(void **state) {
  (void)state;
  for (u32 before = 0; before < 40; before++)
    for (u32 behind = 0; behind < 20; behind++) {
      char text[256];
      struct json_text found;
      snprintf(text, sizeof(text), "\"%.*s\\\"%.*s\"x", (int)before,
               "0123456789012345678901234567890123456789", (int)behind, "abcdefghijklmnopqrstu");
      struct padded of = padded(text);
      assert_ptr_equal(scan_string(of.at + 1, of.at + of.n, &found), of.at + of.n - 1);
      assert_int_equal(found.n, before + behind + 2);
      assert_true(found.escaped);
      assert_null(scan_string(of.at + 1, of.at + of.n - 2, &found));
    }
}

static void blanks_are_passed(void **state) {
  (void)state;
  for (int blanks = 0; blanks < 40; blanks++) {
    char text[256];
    snprintf(text, sizeof(text), " \t\r\n%*s\n%*s,", blanks, "", blanks / 2, "");
    struct padded of = padded(text);
    assert_int_equal(*scan_space(of.at), ',');
    of.at[of.n - 1] = 0;
    assert_ptr_equal(scan_space(of.at), of.at + of.n - 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_of_every_length),  cmocka_unit_test(numbers_at_the_edges),
      cmocka_unit_test(values_end_where_they_do), cmocka_unit_test(strings_end_at_their_quotes),
      cmocka_unit_test(blanks_are_passed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
