/* SPDX-License-Identifier: MIT
 *
 * The manual pages against the tables they describe: report_manual DOCS/man.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/options.h"
#include "settings/env.def"
#include "top/top_options.h"

static const char *folder;

static char *page(const char *name) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *in = fopen(path, "r");
  assert_non_null(in);
  char *text = calloc(1, 1 << 16);
  assert_true(fread(text, 1, (1 << 16) - 1, in) > 0);
  fclose(in);
  return text;
}

/* As roff writes it: hyphens that are to stay hyphens. */
static void put_roff(FILE *out, const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    fprintf(out, text[i] == '-' ? "\\-" : "%c", text[i]);
}

static unsigned count(const char *text, const char *part) {
  unsigned n = 0;
  while ((text = strstr(text, part)) != NULL) {
    n++;
    text += strlen(part);
  }
  return n;
}

/* "  --width COLUMNS   60 to ..." as ".TP / .B \-\-width \fICOLUMNS\fR / 60 to ..." */
static char *option_as_roff(const char *line) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  const char *meaning = strstr(line + 2, "  ");
  meaning += strspn(meaning, " ");
  size_t name = strcspn(line + 2, " ");
  fputs(".TP\n.B ", out);
  put_roff(out, line + 2, name);
  if (line[2 + name + 1] != ' ') {
    const char *argument = line + 2 + name + 1;
    fprintf(out, " \\fI%.*s\\fR", (int)strcspn(argument, " "), argument);
  }
  fputc('\n', out);
  put_roff(out, meaning, strlen(meaning));
  fputc('\n', out);
  fclose(out);
  return text;
}

static void compare_options(void (*print_help)(FILE *), const char *name) {
  char *help = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&help, &bytes);
  print_help(out);
  fclose(out);
  char *manual = page(name), *rest = help;
  unsigned n = 0;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    if (strncmp(line, "  --", 4) != 0)
      continue;
    char *roff = option_as_roff(line);
    if (!strstr(manual, roff))
      fail_msg("%s does not have\n%s", name, roff);
    free(roff);
    n++;
  }
  assert_true(n > 0);
  assert_int_equal(count(manual, ".TP\n.B \\-\\-"), n);
  free(manual);
  free(help);
}

static void options_are_those_of_help(void **state) {
  (void)state;
  compare_options(options_print_help, "tscope-report.1");
  compare_options(top_options_help, "tscope-top.1");
}

/* Code in backquotes is bold. */
static char *variable_as_roff(const char *name, const char *standard, const char *meaning) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  bool bold = false;
  fprintf(out, ".TP\n.B %s", name);
  if (*standard)
    fprintf(out, " \\fR(%s)", standard);
  fputc('\n', out);
  for (const char *c = meaning; *c; c++) {
    if (*c == '`')
      fputs((bold = !bold) ? "\\fB" : "\\fR", out);
    else
      put_roff(out, c, 1);
  }
  fputc('\n', out);
  fclose(out);
  return text;
}

static void variables_are_those_of_the_shim(void **state) {
  static const struct {
    const char *name, *standard, *meaning;
  } variables[] = {
#define X(member, type, name, standard, values, meaning) {name, standard, meaning},
      TSCOPE_ENV(X)
#undef X
  };
  enum { N = sizeof(variables) / sizeof(variables[0]) };
  (void)state;
  char *manual = page("tscope.7");
  for (size_t i = 0; i < N; i++) {
    char *roff = variable_as_roff(variables[i].name, variables[i].standard, variables[i].meaning);
    if (!strstr(manual, roff))
      fail_msg("tscope.7 does not have\n%s", roff);
    free(roff);
  }
  assert_int_equal(count(manual, ".TP\n.B TSCOPE"), N);
  free(manual);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_are_those_of_help),
      cmocka_unit_test(variables_are_those_of_the_shim),
  };
  if (argc != 2)
    return 2;
  folder = argv[1];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
