/* SPDX-License-Identifier: MIT
 *
 * The messages for users when the kernel refuses. The values of Yama's ptrace_scope are from its
 * documentation (Documentation/admin-guide/LSM/Yama.rst).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/refused.h"

static const char *with_scope(const char *text) {
  char path[] = "/tmp/tscope-scope-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  const char *words = describe_refusal_for(1000, 1000, path);
  unlink(path);
  return words;
}

static void says(const char *words, const char *part) {
  if (!strstr(words, part))
    fail_msg("'%s' lacks '%s'", words, part);
}

static void test_yama_says_who_may(void **state) {
  (void)state;
  says(with_scope("1\n"), "ptrace_scope is 1");
  says(with_scope("1\n"), "directory of its traces");
  says(with_scope("1\n"), "sudo");
  says(with_scope("2\n"), "ptrace_scope is 2");
  says(with_scope("2\n"), "CAP_SYS_PTRACE");
  says(with_scope("3\n"), "nobody");
  assert_null(strstr(with_scope("3\n"), "sudo")); /* it would not help */
}

static void test_yama_is_not_blamed_where_it_allows(void **state) {
  (void)state;
  assert_null(strstr(with_scope("0\n"), "Yama"));
  assert_null(strstr(with_scope("not a number"), "Yama"));
  assert_null(strstr(describe_refusal_for(1000, 1000, "/nonexistent"), "Yama"));
  says(describe_refusal_for(1000, 1000, "/nonexistent"), "CAP_SYS_PTRACE");
}

static void test_another_user(void **state) {
  (void)state;
  says(describe_refusal_for(1000, 1001, "/nonexistent"), "another user");
  assert_null(strstr(describe_refusal_for(1000, 0, "/nonexistent"),
                     "another user")); /* root in a container */
}

static void test_own_child_is_read(void **state) {
  (void)state;
  assert_false(is_reading_refused(getpid()));
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  assert_false(is_reading_refused(child)); /* Yama also allows a parent */
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_yama_says_who_may),
      cmocka_unit_test(test_yama_is_not_blamed_where_it_allows),
      cmocka_unit_test(test_another_user),
      cmocka_unit_test(test_own_child_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
