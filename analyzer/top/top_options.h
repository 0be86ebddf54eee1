/* SPDX-License-Identifier: MIT
 *
 * The command line of tscope-top, read by the table in top_options.def.
 */
#pragma once

#include "report/text/terminal.h"
#include "top/top_page.h"

#define TOP_MIN_WIDTH 40
#define TOP_MAX_WIDTH 1000

enum top_format { TOP_TEXT, TOP_JSON };

struct top_options {
  const char *directory, *run, *prometheus, *html; /* all but the first NULL if not given */
  double interval_s;                               /* 0 if not given */
  struct terminal_wishes terminal;
  enum top_format format;
  enum top_sort sort; /* TOP_SORT_AUTO if not given */
  bool once, version, help;
};

/* False when the command line makes no sense; `why` then says so in one line. */
bool top_options_parse(int argc, char **argv, struct top_options *options, char *why,
                       size_t why_bytes);
void top_options_help(FILE *out);

/* What the place that a page goes to can show. Needs setlocale() done. */
struct report_view top_find_display(const struct top_options *options, int fd);
