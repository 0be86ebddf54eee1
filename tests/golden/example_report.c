/* SPDX-License-Identifier: MIT
 *
 * Writes the report on an invented run: example_report EXAMPLE [tscope-report's output options] -
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "example_results.h"
#include "report/options.h"
#include "report/text/terminal.h"

int main(int argc, char **argv) {
  struct options options;
  char why[256];
  setlocale(LC_CTYPE, "");
  if (argc < 2 || !options_parse(argc - 1, argv + 1, &options, why, sizeof(why))) {
    fprintf(stderr, "usage: example_report EXAMPLE [OPTION]... -: %s\n", argc < 2 ? "" : why);
    return 2;
  }
  struct results *results = example_make(argv[1]);
  if (!results) {
    fprintf(stderr, "no example %s\n", argv[1]);
    return 2;
  }
  results->tokens_per_step = options.tokens_per_step;
  struct report_view view = {0};
  terminal_detect(&options.terminal, REPORT_MIN_WIDTH, REPORT_MAX_WIDTH, fileno(stdout), &view);
  int error = options.backend->write(results, &view, stdout);
  example_free(results);
  return error ? 1 : 0;
}
