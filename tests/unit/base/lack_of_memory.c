/* SPDX-License-Identifier: MIT
 *
 * A lack of memory ends the program with one line that says how much was asked for.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked_memory.h"

enum { ASKED = 1 << 29 };

static void an_array(void) {
  free(memory_array(ASKED, 1));
}

static void a_text(void) {
  free(memory_printf("%*s", ASKED - 1, ""));
}

/* What a program says on stderr that may have a quarter of that. */
static void check_says_how_much(void (*ask)(void)) {
  int said[2], status;
  char line[512] = "";
  assert_int_equal(pipe(said), 0);
  pid_t child = fork();
  if (child == 0) {
    const struct rlimit little = {ASKED / 4, ASKED / 4};
    dup2(said[1], STDERR_FILENO);
    if (setrlimit(RLIMIT_AS, &little) == 0)
      ask();
    _exit(0);
  }
  close(said[1]);
  assert_true(read(said[0], line, sizeof(line) - 1) > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_not_equal(status, 0);
  assert_non_null(strstr(line, "no memory for 536870912 bytes more"));
  close(said[0]);
}

static void what_was_asked_for_is_said(void **state) {
  (void)state;
  check_says_how_much(an_array);
  check_says_how_much(a_text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_asked_for_is_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
