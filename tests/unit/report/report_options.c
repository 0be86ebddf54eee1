/* SPDX-License-Identifier: MIT
 *
 * The command line: what is accepted, what is refused, and the messages.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/default_directory.h"
#include "report/options.h"
#include "report/text/terminal.h"

static struct options options;
static char why[256];

#define PARSE(...) parse((char *[]){"tscope-report", __VA_ARGS__, NULL})

static bool parse(char **argv) {
  int argc = 0;
  while (argv[argc])
    argc++;
  return options_parse(argc, argv, &options, why, sizeof(why));
}

static void given_options_are_used(void **state) {
  (void)state;
  assert_true(PARSE("/tmp/t"));
  assert_string_equal(options.paths[0], "/tmp/t");
  assert_ptr_equal(options.backend, &report_text);
  assert_true(isnan(options.flops_per_step) && isnan(options.peak_tflops));
  assert_int_equal(options.n_rules, 0);
  assert_true(PARSE("dir", "--format", "json", "--params=7B", "--tokens-per-step", "4M", "--run",
                    "x", "--steps", "10:", "--width=132", "--ascii", "--color", "never",
                    "--fail-on", "warning", "--threads", "2", "--include-warmup"));
  assert_int_equal(options.n_paths, 1);
  assert_string_equal(options.paths[0], "dir");
  assert_ptr_equal(options.backend, &report_json);
  assert_true(options.params == 7e9 && options.tokens_per_step == 4e6);
  assert_string_equal(options.steps, "10:");
  assert_int_equal(options.terminal.width, 132);
  assert_int_equal(options.terminal.color, COLOR_NEVER);
  assert_int_equal(options.n_rules, 1);
  assert_int_equal(options.rules[0].kind, GATE_FAIL_ON);
  assert_string_equal(options.rules[0].text, "warning");
  assert_int_equal(options.threads, 2);
  assert_true(options.include_warmup && options.terminal.ascii);
}

static void without_a_path_it_reads_where_the_shim_writes(void **state) {
  char path[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  unsigned owner;
  (void)state;
  unsetenv("TSCOPE_DIR");
  tscope_directory_to_read(path, &owner);
  assert_true(parse((char *[]){"tscope-report", NULL}));
  assert_int_equal(options.n_paths, 1);
  assert_string_equal(options.paths[0], path);
  setenv("TSCOPE_DIR", "/data/traces", 1);
  assert_true(parse((char *[]){"tscope-report", NULL}));
  assert_string_equal(options.paths[0], "/data/traces");
  unsetenv("TSCOPE_DIR");
}

static void diff_takes_runs_of_two_kinds(void **state) {
  (void)state;
  assert_true(PARSE("diff", "a", "b"));
  assert_true(options.diff && options.n_paths == 2 && options.n_before == 1);
  assert_true(
      PARSE("diff", "a1", "--format", "json", "a2", "--", "b1", "--width", "100", "b2", "b3"));
  assert_int_equal(options.n_paths, 5);
  assert_int_equal(options.n_before, 2);
  assert_int_equal(options.terminal.width, 100);
  static const char *const paths[] = {"a1", "a2", "b1", "b2", "b3"};
  for (size_t i = 0; i < 5; i++)
    assert_string_equal(options.paths[i], paths[i]);
  assert_true(PARSE("diff", "a", "--", "b"));
  assert_true(options.n_paths == 2 && options.n_before == 1);
  assert_false(PARSE("diff", "a", "b", "c"));
  assert_non_null(strstr(why, "with -- between"));
  assert_false(PARSE("diff", "a", "b", "--"));
  assert_false(PARSE("diff", "--", "a", "b"));
}

static void refusals_say_what_to_do(void **state) {
  (void)state;
  assert_true(PARSE("a", "--ascii", "b"));
  assert_int_equal(options.n_paths, 2);
  assert_string_equal(options.paths[1], "b");
  assert_false(PARSE("--frobnicate", "a"));
  assert_non_null(strstr(why, "--frobnicate is not an option"));
  assert_false(PARSE("a", "--width"));
  assert_non_null(strstr(why, "--width needs a value"));
  static char *const bad[][2] = {
      {"--width", "59"},
      {"--width", "161"},
      {"--width", "-80"},
      {"--width", "80x"},
      {"--steps", ":"},
      {"--steps", "9:3"},
      {"--steps", "a:b"},
      {"--steps", "7-9"},
      {"--format", "yaml"},
      {"--color", "maybe"},
      {"--fail-on", "error"},
      {"--threads", "0"},
      {"--fail-on", "critical:"},
      {"--fail-on", "critical:DIST,"},
      {"--fail-on", "critical:DIS"},
      {"--fail-on", "DIST.STRAGGLE"},
      {"--fail-on", "severe:DIST"},
      {"--ignore", "critical"},
      {"--ignore", "DIST,,MEMORY"},
      {"--expect", "steps.median_ms"},
      {"--expect", "<= 3"},
      {"--expect", "a <= b"},
      {"--expect", "a <= 3 4"},
      {"--expect", "a like 1 2"},
      {"--expect", "a within 5 of"},
      {"--expect", "a within 5 % 3"},
      {"--junit", ""},
      {"--params", "-7B"},
      {"--params", "0"},
      {"--params", "7X"},
      {"--params", "inf"},
      {"--peak-tflops", ""},
      {"--threads", ""},
      {"--run", ""},
      {"--output", ""},
  };
  for (size_t i = 0; i < LENGTH_OF(bad); i++) {
    assert_false(PARSE("a", bad[i][0], bad[i][1]));
    assert_non_null(strstr(why, bad[i][0]));
    assert_non_null(strstr(why, " wants "));
    assert_null(strchr(why, '\n'));
  }
}

/* At every place before the paths, and only as a separate word. */
static void options_may_stand_before_diff(void **state) {
  (void)state;
  assert_true(PARSE("--format", "json", "diff", "--ascii", "a", "b"));
  assert_true(options.diff && options.terminal.ascii);
  assert_ptr_equal(options.backend, &report_json);
  assert_int_equal(options.n_paths, 2);
  assert_string_equal(options.paths[0], "a");
  assert_string_equal(options.paths[1], "b");
  assert_true(PARSE("--include-warmup", "--width=100", "--thr", "2", "diff", "a", "b"));
  assert_true(options.diff && options.include_warmup && options.threads == 2);
  assert_true(PARSE("--run", "diff", "a")); /* the name of a run */
  assert_false(options.diff);
  assert_string_equal(options.run, "diff");
  assert_true(PARSE("a", "diff"));
  assert_false(options.diff);
  assert_true(PARSE("--steps", "100:100", "a"));
  assert_true(PARSE("--steps", "7", "a"));
}

static struct report_view look(unsigned width) {
  struct report_view view = {0};
  assert_true(PARSE("a"));
  options.terminal.width = width;
  terminal_detect(&options.terminal, REPORT_MIN_WIDTH, REPORT_MAX_WIDTH, -1, &view);
  return view;
}

static void window_and_colour_follow_the_environment(void **state) {
  (void)state;
  setenv("TERM", "xterm", 1);
  unsetenv("COLUMNS");
  unsetenv("NO_COLOR");
  unsetenv("FORCE_COLOR");
  assert_int_equal(look(0).width, 80);
  assert_false(look(0).color); /* not a terminal */
  setenv("COLUMNS", "100", 1);
  assert_int_equal(look(0).width, 100);
  assert_int_equal(look(72).width, 72);
  setenv("COLUMNS", "20", 1);
  assert_int_equal(look(0).width, REPORT_MIN_WIDTH);
  setenv("COLUMNS", "9999999999", 1);
  assert_int_equal(look(0).width, REPORT_MAX_WIDTH);
  setenv("FORCE_COLOR", "1", 1);
  assert_true(look(0).color);
  setenv("NO_COLOR", "1", 1);
  assert_false(look(0).color);
  setenv("NO_COLOR", "", 1);
  assert_true(look(0).color);
  setenv("FORCE_COLOR", "0", 1);
  assert_false(look(0).color);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(given_options_are_used),
      cmocka_unit_test(without_a_path_it_reads_where_the_shim_writes),
      cmocka_unit_test(diff_takes_runs_of_two_kinds),
      cmocka_unit_test(refusals_say_what_to_do),
      cmocka_unit_test(options_may_stand_before_diff),
      cmocka_unit_test(window_and_colour_follow_the_environment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
