/* SPDX-License-Identifier: MIT
 *
 * What the place that a text goes to can show.
 */
#pragma once

#include "report/report.h"

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* What the command line says about it. */
struct terminal_wishes {
  unsigned width; /* 0 if not given */
  enum color_when color;
  bool ascii;
};

/* Whether it is a terminal that shows more than lines of text. */
bool terminal_draws(int fd);

/* Fills in width, utf8, color and links for a text written to `fd`. If no width is given it is that
 * of COLUMNS or the terminal, within `least` and `most`. Needs setlocale() done. */
void terminal_detect(const struct terminal_wishes *wishes, unsigned least, unsigned most, int fd,
                     struct report_view *view);
