/* SPDX-License-Identifier: MIT
 *
 * Places in a report as links of the terminal: which are, what is written, and that nothing in a
 * file's name acts on the terminal.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/text/pen.h"
#include "scratch.h"

static char folder[] = "/tmp/tscope-links-XXXXXX";
static char plain[256], odd[256], gone[256], stalls[256];
static struct line_result at[3];
static struct stack_node tree[1] = {{.file = stalls}};
static struct results results = {.lines = {.at = at, .n_at = 3},
                                 .stalls = {.tree = tree, .n_tree = 1}};

static int make_files(void **state) {
  (void)state;
  scratch_make(folder);
  snprintf(plain, sizeof(plain), "%s/train.py", folder);
  snprintf(odd, sizeof(odd), "%s/od\033]0\ad%%.py", folder);
  snprintf(gone, sizeof(gone), "%s/gone.py", folder);
  snprintf(stalls, sizeof(stalls), "%s/save.py", folder);
  scratch_text(folder, "train.py", "");
  scratch_text(folder, "save.py", "");
  scratch_text(folder, strrchr(odd, '/') + 1, "");
  at[0].file = plain;
  at[1].file = odd;
  at[2].file = gone;
  return 0;
}

static int remove_files(void **state) {
  (void)state;
  scratch_remove(folder);
  return 0;
}

/* What the pen writes of a text in a field of so many columns. */
static char *written(const char *text, unsigned columns, bool links) {
  static char *bytes;
  size_t n;
  free(bytes);
  FILE *out = open_memstream(&bytes, &n);
  struct pen pen = {.out = out, .width = 200, .utf8 = true, .linked = links ? &results : NULL};
  pen_left(&pen, STYLE_PLAIN, text, columns);
  fclose(out);
  return bytes;
}

static void a_place_is_a_link_to_its_file(void **state) {
  (void)state;
  char host[256] = "", wanted[1024];
  assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
  snprintf(wanted, sizeof(wanted),
           "step (\033]8;;file://%s%s#12\033\\train.py:12\033]8;;\033\\), then", host, plain);
  assert_string_equal(written("step (train.py:12), then", 100, true), wanted);
  assert_string_equal(written("step (train.py:12), then", 100, false), "step (train.py:12), then");
  snprintf(wanted, sizeof(wanted), "\033]8;;file://%s%s#9\033\\save.py:9\033]8;;\033\\ save", host,
           stalls);
  assert_string_equal(written("save.py:9 save", 100, true), wanted); /* only in a stack */
}

static void what_is_no_place_or_does_not_fit_is_text(void **state) {
  (void)state;
  static const char *const texts[] = {"train.py",   "train.py:",    "12:30",      "other.py:3",
                                      "rain.py:12", "train.py:12a", "gone.py:12", ":12"};
  for (size_t i = 0; i < LENGTH_OF(texts); i++)
    assert_string_equal(written(texts[i], 100, true), texts[i]);
  assert_string_equal(written("train.py:12", 8, true), "train.p…");
}

static void nothing_in_a_name_acts_on_the_terminal(void **state) {
  (void)state;
  char address[1024], text[300];
  snprintf(text, sizeof(text), "%s:7", strrchr(odd, '/') + 1);
  assert_int_equal(place_link(&results, text, strlen(text), address, sizeof(address)),
                   strlen(text));
  assert_null(strchr(address, '\033'));
  assert_non_null(strstr(address, "/od%1B%5D0%07d%25.py#7"));
  assert_null(strstr(written(text, 100, true), "\033]0"));
  assert_int_equal(place_link(&results, text, strlen(text), address, 40), 0); /* no room */
}

int main(void) {
  setlocale(LC_ALL, "C.UTF-8");
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_place_is_a_link_to_its_file),
                                     cmocka_unit_test(what_is_no_place_or_does_not_fit_is_text),
                                     cmocka_unit_test(nothing_in_a_name_acts_on_the_terminal)};
  return cmocka_run_group_tests(tests, make_files, remove_files);
}
