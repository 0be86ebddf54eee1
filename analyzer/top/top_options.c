/* SPDX-License-Identifier: MIT */
#include "top/top_options.h"

#include "base/command_line.h"
#include "format/default_directory.h"
#include "top/top_options.def"

#define OPTIONS struct top_options
static const struct command_option rows[] = {TSCOPE_TOP_OPTIONS(OPTION_GROUP, OPTION_ROW)};
static const struct command_line line = COMMAND_LINE("tscope-top", rows);

void top_options_help(FILE *out) {
  fputs("usage: tscope-top [OPTION]... [DIR]\n\n"
        "Shows what a job does while it runs, from the traces that it writes into DIR (else\n"
        "TSCOPE_DIR, else " TSCOPE_DEFAULT_DIRECTORY
        " or, if that is another user's,\n" TSCOPE_DEFAULT_DIRECTORY
        "-UID). It only reads and does not touch the job.\n\n",
        out);
  command_line_print_options(&line, out);
  fputs("\nOn the page: q quits, space freezes, s sorts by the next key, arrows choose a rank,\n"
        "Enter shows it, ? explains the columns.\n",
        out);
}

bool top_options_parse(int argc, char **argv, struct top_options *options, char *why,
                       size_t why_bytes) {
  *options = (struct top_options){0};
  int first = command_line_parse(&line, argc, argv, options, why, why_bytes);
  if (first < 0)
    return false;
  if (argc - first > 1) {
    snprintf(why, why_bytes, "only one directory; \"%s\" is too many", argv[first + 1]);
    return false;
  }
  options->directory = argc > first ? argv[first] : directory_to_read("tscope-top");
  return true;
}

struct report_view top_find_display(const struct top_options *options, int fd) {
  struct report_view view = {0};
  terminal_detect(&options->terminal, TOP_MIN_WIDTH, TOP_MAX_WIDTH, fd, &view);
  view.links = false;
  return view;
}
